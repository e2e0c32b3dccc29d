//! The requests of the client: their unchanged bytes with the few members that the bridge reads, those that are not
//! answered yet, so that the client can cancel them, and the transport that sends them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use tidegate_mcp::{DecodeError, IncomingMessage, RequestId, RpcError, RpcNotification, RpcRequest};
use tokio_util::sync::CancellationToken;

use super::error::BridgeError;

#[derive(Debug, Clone)]
pub(super) struct ClientRequest {
    /// The line of the client, unchanged.
    pub(super) line: Bytes,
    /// The ids that need an answer: one, or several of a batch.
    pub(super) ids: Vec<RequestId>,
    pub(super) is_batch: bool,
    pub(super) modern: Option<ModernMetadata>,
    pub(super) state: Arc<RequestState>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModernMetadata {
    pub(super) version: String,
    pub(super) method: String,
    /// The tool, prompt, resource or task that the request names.
    pub(super) name: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct RequestState {
    is_cancelled: AtomicBool,
    may_have_been_sent: AtomicBool,
    /// Fires when nothing waits for its answer any more.
    pub(super) ended: CancellationToken,
}

#[derive(Debug, Default)]
pub(super) struct PendingRequests(Mutex<HashMap<String, PendingRequest>>);

#[derive(Debug, Clone)]
struct PendingRequest {
    state: Arc<RequestState>,
    is_modern: bool,
    /// Whether it is a notification stream, which only the server would end.
    is_stream: bool,
}

#[derive(Debug)]
pub(super) struct PendingRequestGuard {
    requests: Arc<PendingRequests>,
    ids: Vec<String>,
}

impl PendingRequests {
    /// Adds a request until the guard is dropped; `-32600` when one of its ids is in use.
    pub(super) fn add(self: &Arc<Self>, request: &ClientRequest) -> Result<PendingRequestGuard, RpcError> {
        let mut guard = PendingRequestGuard { requests: self.clone(), ids: Vec::new() };
        let (is_modern, is_stream) = (request.modern.is_some(), request.is_stream());
        for id in request.ids.iter().map(RequestId::as_json) {
            let mut pending = self.0.lock();
            if pending.contains_key(id) {
                // The guard removes its ids on drop, so it must not be dropped under the lock.
                drop(pending);
                return Err(RpcError::invalid_request(format!("a request with the id {id} is open already")));
            }
            pending.insert(id.to_owned(), PendingRequest { state: request.state.clone(), is_modern, is_stream });
            guard.ids.push(id.to_owned());
        }
        Ok(guard)
    }

    /// Cancels the request `id` and returns whether it is modern; `None` if it is already answered.
    pub(super) fn cancel(&self, id: &str) -> Option<(Arc<RequestState>, bool)> {
        let PendingRequest { state, is_modern, .. } = self.0.lock().get(id).cloned()?;
        state.is_cancelled.store(true, Ordering::Release);
        Some((state, is_modern))
    }

    /// Ends the notification streams: their clients receive nothing more.
    pub(super) fn end_streams(&self) {
        for stream in self.0.lock().values().filter(|request| request.is_stream) {
            stream.state.is_cancelled.store(true, Ordering::Release);
            stream.state.ended.cancel();
        }
    }
}

impl Drop for PendingRequestGuard {
    fn drop(&mut self) {
        let mut pending = self.requests.0.lock();
        for id in &self.ids {
            pending.remove(id);
        }
    }
}

impl RequestState {
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    pub(super) fn may_have_been_sent(&self) -> bool {
        self.may_have_been_sent.load(Ordering::Acquire)
    }

    /// Set before the request is sent, and reset when it is certain that no part of it was sent.
    pub(super) fn set_may_have_been_sent(&self, may_have_been_sent: bool) {
        self.may_have_been_sent.store(may_have_been_sent, Ordering::Release);
    }
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

impl ClientRequest {
    pub(super) fn new(line: Bytes, request: &RpcRequest) -> Self {
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
        Self { modern, ..Self::legacy(line, request.id.clone()) }
    }

    pub(super) fn legacy(line: Bytes, id: RequestId) -> Self {
        Self { line, ids: vec![id], is_batch: false, modern: None, state: Arc::default() }
    }

    pub(super) fn from_batch(line: Bytes, messages: &[Result<IncomingMessage, DecodeError>]) -> Self {
        let ids = messages.iter().filter_map(|message| match message {
            Ok(IncomingMessage::Request(request)) => Some(request.id.clone()),
            Err(rejection) => rejection.id.clone(),
            Ok(_) => None,
        });
        Self { line, ids: ids.collect(), is_batch: true, modern: None, state: Arc::default() }
    }

    fn is_stream(&self) -> bool {
        self.modern.as_ref().is_some_and(|modern| modern.method == "subscriptions/listen")
    }

    /// The position of `id`, in the form of an answer, among the ids of the request.
    pub(super) fn position_of(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|request_id| is_same_id(request_id.as_json(), id))
    }
}

impl ModernMetadata {
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

/// The connection to the server, over either transport.
#[async_trait]
pub(super) trait ServerTransport: Send + Sync {
    /// Runs the background work, such as listening, until it is dropped.
    async fn run_background(&self);

    /// Sends `request` once, and forwards its answer to the client.
    async fn send(&self, request: &ClientRequest) -> Result<(), BridgeError>;

    /// Sends the client's handshake, and stores it with the negotiated parameters, so that it can be repeated.
    async fn initialize(&self, request: &ClientRequest) -> Result<(), BridgeError>;

    /// Forwards the notification that completes the client's handshake.
    async fn initialized(&self, line: Bytes);

    /// Forwards a message that has no answer. A modern notification has metadata.
    async fn notify(&self, line: &Bytes, modern: Option<&ModernMetadata>);

    fn cancels_by_dropping(&self, _is_modern: bool) -> bool {
        false
    }

    /// Ends the session or the connection.
    async fn end(&self);
}
