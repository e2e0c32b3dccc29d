//! A message of the client that is forwarded: its unchanged bytes, and the few members that the bridge reads.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use tidegate_mcp::{DecodeError, IncomingMessage, RequestId, RpcNotification, RpcRequest};

use super::calls::OpenCall;

/// A request, or a batch.
#[derive(Debug, Clone)]
pub(super) struct ClientCall {
    /// The line of the client, unchanged.
    pub(super) line: Bytes,
    /// The ids that need an answer: one, or several of a batch.
    pub(super) ids: Vec<RequestId>,
    pub(super) is_batch: bool,
    /// The metadata of a modern request.
    pub(super) modern: Option<ModernMetadata>,
    /// The progress of the call.
    pub(super) open: Arc<OpenCall>,
}

/// The metadata of a modern request, which its HTTP headers mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModernMetadata {
    pub(super) version: String,
    pub(super) method: String,
    /// The tool, prompt, resource or task that the request names.
    pub(super) name: Option<String>,
}

#[derive(Deserialize, Default)]
struct NamedParams {
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "taskId")]
    task_id: Option<String>,
}

#[derive(Deserialize)]
struct NotificationMeta {
    #[serde(rename = "_meta", default)]
    meta: MetaMembers,
}

#[derive(Deserialize, Default)]
struct MetaMembers {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

impl ClientCall {
    /// The call of the request in `line`.
    pub(super) fn from_request(line: Bytes, request: &RpcRequest) -> Self {
        let modern = request.meta.protocol_version.clone().map(|version| {
            let method = request.method.clone();
            // Invalid parameters are for the server to reject.
            let named = request.params::<NamedParams>().unwrap_or_default();
            let name = match method.as_str() {
                "tools/call" | "prompts/get" => named.name,
                "resources/read" => named.uri,
                "tasks/get" | "tasks/update" | "tasks/cancel" => named.task_id,
                _ => None,
            };
            ModernMetadata { version, method, name }
        });
        Self { line, ids: vec![request.id.clone()], is_batch: false, modern, open: Arc::default() }
    }

    /// The call of a batch.
    pub(super) fn from_batch(line: Bytes, messages: &[Result<IncomingMessage, DecodeError>]) -> Self {
        let ids = messages.iter().filter_map(|message| match message {
            Ok(IncomingMessage::Request(request)) => Some(request.id.clone()),
            Err(rejection) => rejection.id.clone(),
            Ok(_) => None,
        });
        Self { line, ids: ids.collect(), is_batch: true, modern: None, open: Arc::default() }
    }

    /// Whether it opens a notification stream, which lasts until one side ends it.
    pub(super) fn is_stream(&self) -> bool {
        self.modern.as_ref().is_some_and(|modern| modern.method == "subscriptions/listen")
    }

    /// The position of `id`, in the form of an answer, among the ids of the call.
    pub(super) fn position_of(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|request_id| is_same_id(request_id.as_json(), id))
    }
}

impl ModernMetadata {
    /// The metadata of a modern notification.
    pub(super) fn from_notification(notification: &RpcNotification) -> Option<Self> {
        let version = notification.params::<NotificationMeta>().ok()?.meta.version?;
        Some(Self { version, method: notification.method.clone(), name: None })
    }
}

/// Compares ids as JSON values: servers may encode the same id differently (`"\u0061"` for `"a"`).
pub(super) fn is_same_id(requested: &str, answered: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    requested == answered || (value(requested).is_some() && value(requested) == value(answered))
}
