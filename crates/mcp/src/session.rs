//! The session of a legacy client, created by its handshake: its open requests, so that they can be cancelled, and the
//! requests of the server that it has not answered.
//!
//! [MCP 2025-11-25, Elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation), sampling and roots

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::{ClientCapabilities, InputAnswer, InputRequestKind, LogLevel};
use tidegate_runtime::{ChangeListener, PendingInputRequest};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::jsonrpc::{RequestId, RpcError, RpcResponse};
use crate::messages::{encode_input_request, encode_server_request, parse_input_answer};
use crate::revision::Revision;

/// No log messages; above every level.
const NO_LOG_LEVEL: u8 = u8::MAX;

/// A legacy session: the negotiated revision and the state of the client.
#[derive(Debug)]
pub struct McpSession {
    revision: Revision,
    log_level: AtomicU8,
    in_flight: Arc<InFlightRequests>,
    pub(crate) client_capabilities: ClientCapabilities,
    pub(crate) server_requests: ServerRequests,
    pub(crate) watch: Arc<ChangeListener>,
}

impl McpSession {
    pub(crate) fn new(
        revision: Revision,
        client_capabilities: ClientCapabilities,
        in_flight: Arc<InFlightRequests>,
        watch: ChangeListener,
    ) -> Self {
        Self {
            revision,
            log_level: AtomicU8::new(NO_LOG_LEVEL),
            in_flight,
            client_capabilities,
            server_requests: ServerRequests::default(),
            watch: Arc::new(watch),
        }
    }

    /// The negotiated revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The open requests of the client.
    pub fn in_flight(&self) -> &Arc<InFlightRequests> {
        &self.in_flight
    }

    /// The least severe log message that the client requests; `None` until it sets a level.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        LogLevel::ALL.get(usize::from(self.log_level.load(Ordering::Relaxed))).copied()
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        // There are eight levels.
        self.log_level.store(level as u8, Ordering::Relaxed);
    }
}

const REQUESTS_MAX: usize = 1_024;

/// The open requests of one connection or session.
#[derive(Debug, Default)]
pub struct InFlightRequests {
    requests: Mutex<HashMap<RequestId, CancellationToken>>,
}

impl InFlightRequests {
    /// Registers a request until the guard is dropped.
    ///
    /// # Errors
    /// `-32600` if its id is in use or too many requests are open.
    pub fn register(self: &Arc<Self>, id: &RequestId) -> Result<InFlightGuard, RpcError> {
        let mut requests = self.requests.lock();
        if requests.len() >= REQUESTS_MAX {
            return Err(RpcError::invalid_request(format!("more than {REQUESTS_MAX} requests are open")));
        }
        if requests.contains_key(id) {
            return Err(RpcError::invalid_request(format!("a request with the id {} is open already", id.as_json())));
        }
        let token = CancellationToken::new();
        requests.insert(id.clone(), token.clone());
        Ok(InFlightGuard { table: self.clone(), id: id.clone(), token })
    }

    /// Cancels a request. Has no effect if it has been answered.
    pub fn cancel(&self, id: &RequestId) {
        if let Some(token) = self.requests.lock().get(id) {
            token.cancel();
        }
    }

    /// Cancels all requests.
    pub fn cancel_all(&self) {
        for token in self.requests.lock().values() {
            token.cancel();
        }
    }

    /// The number of open requests.
    pub fn len(&self) -> usize {
        self.requests.lock().len()
    }

    /// Whether there are no open requests.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The registration of an open request.
#[derive(Debug)]
pub struct InFlightGuard {
    table: Arc<InFlightRequests>,
    id: RequestId,
    token: CancellationToken,
}

impl InFlightGuard {
    /// Fires when the client cancels the request.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.table.requests.lock().remove(&self.id);
    }
}

/// The maximum number of pending server requests of one session. It is smaller than the maximum of open requests of a
/// connection: if all of these waited for answers, the server would read no further messages, and so no answers.
const PENDING_MAX: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct ServerRequests {
    last_id: AtomicU64,
    pending: Mutex<HashMap<u64, oneshot::Sender<InputAnswer>>>,
}

impl ServerRequests {
    /// `None` if too many requests are pending; the handler then receives no answer.
    pub(crate) fn create_request(&self, pending_input_request: PendingInputRequest) -> Option<Bytes> {
        let mut waiting = self.pending.lock();
        if waiting.len() >= PENDING_MAX {
            // Requests whose calls have ended.
            waiting.retain(|_, answer| !answer.is_closed());
        }
        if waiting.len() >= PENDING_MAX {
            return None;
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        waiting.insert(id, pending_input_request.answer_sender);
        let (method, mut params) = encode_input_request(&pending_input_request.request);
        if let InputRequestKind::Url { .. } = pending_input_request.request.kind {
            // With this id, a server that detects when the person is done can notify a legacy client.
            params["elicitationId"] = Uuid::new_v4().to_string().into();
        }
        Some(encode_server_request(id, method, &params))
    }

    /// Ignores unrequested responses. After an error or an invalid answer, the handler receives no answer.
    pub(crate) fn handle_response(&self, response: &RpcResponse) {
        let Some(id) = response.id.as_ref().and_then(|id| id.as_json().parse::<u64>().ok()) else { return };
        let Some(answer) = self.pending.lock().remove(&id) else { return };
        let result = response.result.as_deref().and_then(|result| serde_json::from_str(result.get()).ok());
        if let Some(Ok(input_answer)) = result.as_ref().map(parse_input_answer) {
            // Sending fails only if the call has ended.
            let _ = answer.send(input_answer);
        }
    }
}
