//! A message of the client that is passed on: its bytes as they came, and the little that is looked at.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use tidegate_mcp::{DecodeError, IncomingMessage, RequestId, RpcNotification, RpcRequest};

use super::calls::OpenCall;

/// A request, or a batch of them.
#[derive(Debug, Clone)]
pub(super) struct ClientCall {
    /// The client's own line.
    pub(super) line: Bytes,
    /// The ids that are to be answered: one, or several of a batch.
    pub(super) ids: Vec<RequestId>,
    pub(super) is_batch: bool,
    /// What a modern request says of itself.
    pub(super) modern: Option<ModernMetadata>,
    /// How far it has come.
    pub(super) open: Arc<OpenCall>,
}

/// What a modern request says of itself; over HTTP its headers say it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModernMetadata {
    pub(super) version: String,
    pub(super) method: String,
    /// The tool, prompt, resource or task that it names.
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
    /// The call that `line` makes, which was read as `request`.
    pub(super) fn from_request(line: Bytes, request: &RpcRequest) -> Self {
        let modern = request.meta.protocol_version.clone().map(|version| {
            let method = request.method.clone();
            // Params that cannot be read are the server's to refuse.
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

    /// The call that a batch makes.
    pub(super) fn from_batch(line: Bytes, messages: &[Result<IncomingMessage, DecodeError>]) -> Self {
        let ids = messages.iter().filter_map(|message| match message {
            Ok(IncomingMessage::Request(request)) => Some(request.id.clone()),
            Err(rejection) => rejection.id.clone(),
            Ok(_) => None,
        });
        Self { line, ids: ids.collect(), is_batch: true, modern: None, open: Arc::default() }
    }

    /// Whether it opens a stream of notifications, which lasts until one of both sides ends it.
    pub(super) fn is_stream(&self) -> bool {
        self.modern.as_ref().is_some_and(|modern| modern.method == "subscriptions/listen")
    }

    /// Whether `id`, as an answer has it, is one of those that are to be answered.
    pub(super) fn position_of(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|request_id| is_same_id(request_id.as_json(), id))
    }
}

impl ModernMetadata {
    /// What a modern notification says of itself.
    pub(super) fn from_notification(notification: &RpcNotification) -> Option<Self> {
        let version = notification.params::<NotificationMeta>().ok()?.meta.version?;
        Some(Self { version, method: notification.method.clone(), name: None })
    }
}

/// Servers may write the same id in other characters (`"\u0061"` for `"a"`).
pub(super) fn is_same_id(requested: &str, answered: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    requested == answered || (value(requested).is_some() && value(requested) == value(answered))
}
