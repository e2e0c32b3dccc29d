//! The requests of the client: their unchanged bytes with the few members that the bridge reads, those that are not
//! answered yet, so that the client can cancel them, and the transport that sends them.
//!
//! Also the errors of those that cannot be delivered or whose answer cannot be used, and the handshake of a legacy client,
//! stored so that it can be repeated with a restarted server.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tidegate_core::ErrorKind;
use tidegate_mcp::{DecodeError, IncomingMessage, RequestId, RpcError, RpcNotification, RpcRequest};
use tokio_util::sync::CancellationToken;

use super::ServerAddress;
use super::server_message::ReceiveError;
use crate::server::{ServerMessage, ServerRefusal};

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

/// Why the delivery of a call failed. A call that may have run must not be repeated blindly.
#[derive(Debug, Clone, Error)]
pub(super) enum BridgeError {
    #[error("the server could not be reached within {waited:?}: {reason}; the call was not sent")]
    Unreachable { waited: Duration, reason: String },
    #[error("{reason}; the call was not sent")]
    Tls { reason: String },
    #[error("{reason}; the call did not run")]
    NoHttp { reason: String },
    #[error("the connection was lost while the call was under way ({reason}); it may have run")]
    ConnectionLost { reason: String },
    #[error(transparent)]
    Rejected(#[from] ServerRefusal),
    #[error("there is no MCP endpoint at that URL ({status}); the usual path of Tidegate is {usual_path}{message}")]
    NoEndpoint { status: u16, usual_path: &'static str, message: ServerMessage },
    #[error("the server rejected the call ({status}){message}")]
    Refused { status: u16, message: ServerMessage },
    #[error("the server failed ({status}); the call may have run{message}")]
    Failed { status: u16, message: ServerMessage },
    #[error("the answer of the server is invalid: {what}; the call may have run")]
    InvalidAnswer { what: String },
    #[error("{what}; the call may have run")]
    TooLarge { what: String },
    #[error(
        "the server restarted with MCP {now}, but this client negotiated {before}; \
         restart the client or its connection; the call was not sent"
    )]
    VersionChanged { before: String, now: String },
    #[error("the server restarted and rejected the client's handshake: {reason}; the call was not sent")]
    HandshakeRefused { reason: String },
}

impl From<ReceiveError> for BridgeError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::TooLarge(_) => Self::TooLarge { what: error.to_string() },
            ReceiveError::ConnectionLost(reason) => Self::ConnectionLost { reason },
            ReceiveError::Malformed(_) | ReceiveError::NotUtf8 | ReceiveError::MalformedEvents(_) => {
                Self::InvalidAnswer { what: error.to_string() }
            }
        }
    }
}

impl BridgeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Rejected(ServerRefusal::TokenRequired { .. } | ServerRefusal::TokenRejected { .. }) => {
                ErrorKind::Unauthenticated
            }
            Self::Rejected(ServerRefusal::AccessDenied { .. }) => ErrorKind::Forbidden,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            _ => ErrorKind::Unavailable,
        }
    }

    fn may_have_run(&self) -> bool {
        matches!(
            self,
            Self::ConnectionLost { .. } | Self::Failed { .. } | Self::InvalidAnswer { .. } | Self::TooLarge { .. }
        )
    }

    /// The error for the client; it names the server.
    pub(super) fn to_rpc_error(&self, address: &ServerAddress) -> RpcError {
        let mut error = RpcError::new(RpcError::REFUSED, format!("{address}: {self}"));
        error.data = Some(json!({"kind": self.kind().name(), "mayHaveRun": self.may_have_run()}));
        error
    }
}

/// The client's own messages, unchanged, and the parameters that the server negotiated.
#[derive(Debug, Clone)]
pub(super) struct Handshake {
    pub(super) initialize: Bytes,
    pub(super) id: RequestId,
    /// The notification that completes the handshake, once the client has sent it.
    pub(super) initialized: Option<Bytes>,
    pub(super) negotiated: NegotiatedProtocol,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NegotiatedProtocol {
    pub(super) version: String,
    lists: Vec<&'static str>,
}

impl Handshake {
    /// The handshake of `request`, which the server answered with `negotiated`; `None` for a batch.
    pub(super) fn new(request: &ClientRequest, negotiated: NegotiatedProtocol) -> Option<Self> {
        let [id] = request.ids.as_slice() else { return None };
        Some(Self { initialize: request.line.clone(), id: id.clone(), initialized: None, negotiated })
    }
}

impl NegotiatedProtocol {
    /// Parses an answer to `initialize`. The error is the server's message, or why the answer is invalid.
    pub(super) fn parse(answer: &[u8]) -> Result<Self, ServerMessage> {
        let answer: Value =
            serde_json::from_slice(answer).map_err(|error| ServerMessage::new(&error.to_string(), None))?;
        let Some(version) = answer["result"]["protocolVersion"].as_str() else {
            let error = answer.get("error").map(Value::to_string);
            let reason = error.as_deref().unwrap_or("the answer names no protocol version");
            return Err(ServerMessage::new(reason, None));
        };
        let capabilities = &answer["result"]["capabilities"];
        let mut lists = vec!["tools", "resources", "prompts"];
        lists.retain(|list| capabilities[list]["listChanged"] == true);
        Ok(Self { version: version.to_owned(), lists })
    }

    /// Checks that a restarted server that answers `self` has the protocol version of `before`.
    pub(super) fn check_compatible(&self, before: &Self) -> Result<(), BridgeError> {
        if self.version == before.version {
            return Ok(());
        }
        Err(BridgeError::VersionChanged { before: before.version.clone(), now: self.version.clone() })
    }

    /// Notifications that make a client reload its lists, since changes may have been missed.
    pub(super) fn list_changed_notifications(&self) -> impl Iterator<Item = Bytes> {
        self.lists
            .iter()
            .map(|list| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{list}/list_changed\"}}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifies_only_lists_with_list_changed() {
        let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":
            {"tools":{"listChanged":true},"prompts":{},"logging":{},"resources":{"listChanged":true,"subscribe":true}}}}"#;
        let negotiated = NegotiatedProtocol::parse(answer).unwrap();
        assert_eq!(negotiated.version, "2025-11-25");
        let message: Vec<Bytes> = negotiated.list_changed_notifications().collect();
        assert_eq!(
            message,
            [
                &br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#[..],
                br#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
            ]
        );
    }

    #[test]
    fn initialize_error_keeps_the_server_message() {
        let refused = NegotiatedProtocol::parse(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#)
            .unwrap_err();
        assert_eq!(refused.to_string(), r#"; the server reports: {"code":-32602,"message":"no"}"#);
    }
}
