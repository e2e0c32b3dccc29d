//! The calls of the client: their unchanged bytes with the few members that the bridge reads, and those that are not
//! answered yet, so that the client can cancel them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use tidegate_mcp::{DecodeError, IncomingMessage, RequestId, RpcError, RpcNotification, RpcRequest};
use tokio_util::sync::CancellationToken;

/// The open calls, by id as JSON text.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    open: Mutex<HashMap<String, OpenCallEntry>>,
}

/// An open call and the properties of its request.
#[derive(Debug, Clone)]
struct OpenCallEntry {
    call: Arc<OpenCall>,
    is_modern: bool,
    /// Whether it is a notification stream, which only the server would end.
    is_stream: bool,
}

/// A call that is not answered yet.
#[derive(Debug, Default)]
pub(super) struct OpenCall {
    /// Whether the client has cancelled the call.
    is_cancelled: AtomicBool,
    /// Whether a part of it may have been sent.
    may_have_been_sent: AtomicBool,
    /// Fires when nothing waits for its answer any more.
    pub(super) ended: CancellationToken,
}

/// Keeps a call open until it is dropped.
#[derive(Debug)]
pub(super) struct ClientCallGuard {
    calls: Arc<OpenCalls>,
    ids: Vec<String>,
}

impl OpenCalls {
    /// Opens a call until the guard is dropped. A batch has several ids.
    ///
    /// # Errors
    /// `-32600` when an id is in use.
    pub(super) fn open(self: &Arc<Self>, call: &ClientCall) -> Result<ClientCallGuard, RpcError> {
        let mut guard = ClientCallGuard { calls: self.clone(), ids: Vec::new() };
        for id in &call.ids {
            let mut open = self.open.lock();
            if open.contains_key(id.as_json()) {
                // The guard removes its ids on drop, so it must not be dropped under the lock.
                drop(open);
                let message = format!("a request with the id {} is open already", id.as_json());
                return Err(RpcError::invalid_request(message));
            }
            let (is_modern, is_stream) = (call.modern.is_some(), call.is_stream());
            open.insert(id.as_json().to_owned(), OpenCallEntry { call: call.open.clone(), is_modern, is_stream });
            guard.ids.push(id.as_json().to_owned());
        }
        Ok(guard)
    }

    /// Cancels the call `id` and returns whether it is modern; `None` if it is already answered.
    pub(super) fn cancel(&self, id: &str) -> Option<(Arc<OpenCall>, bool)> {
        let OpenCallEntry { call, is_modern, .. } = self.open.lock().get(id).cloned()?;
        call.is_cancelled.store(true, Ordering::Release);
        Some((call, is_modern))
    }

    /// Ends the notification streams: their clients receive nothing more.
    pub(super) fn end_streams(&self) {
        for open in self.open.lock().values().filter(|open| open.is_stream) {
            open.call.is_cancelled.store(true, Ordering::Release);
            open.call.ended.cancel();
        }
    }
}

impl OpenCall {
    /// Whether the client has cancelled the call.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Whether a part of it may have been sent.
    pub(super) fn may_have_been_sent(&self) -> bool {
        self.may_have_been_sent.load(Ordering::Acquire)
    }

    /// Set before the call is sent, and reset when it is certain that no part of it was sent.
    pub(super) fn set_may_have_been_sent(&self, is_under_way: bool) {
        self.may_have_been_sent.store(is_under_way, Ordering::Release);
    }
}

impl Drop for ClientCallGuard {
    fn drop(&mut self) {
        let mut open = self.calls.open.lock();
        for id in &self.ids {
            open.remove(id);
        }
    }
}

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
