//! Pending server requests to a legacy client.
//!
//! [MCP 2025-11-25, Elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation), sampling and roots

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::{InputAnswer, InputRequestKind};
use tidegate_runtime::PendingInputRequest;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::jsonrpc::RpcResponse;
use crate::messages::{encode_input_request, encode_server_request, parse_input_answer};

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
