//! Requests of ours to a legacy client, until it has answered them.
//!
//! [MCP 2025-11-25, Elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation), sampling and roots

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::{InputAnswer, InputRequestKind, PendingInputRequest};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::jsonrpc::RpcResponse;
use crate::wire::{encode_input_request, encode_server_request, parse_input_answer};

/// Requests of one session that wait for an answer; more are not asked. Fewer than the requests that a connection may have
/// open at once: were all of these to wait for answers, nothing would be heard any more, and so no answer.
const PENDING_MAX: usize = 32;

/// The requests of one session that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct ServerRequests {
    last_id: AtomicU64,
    pending: Mutex<HashMap<u64, oneshot::Sender<InputAnswer>>>,
}

impl ServerRequests {
    /// The request that asks what `asked` wants; none when too many wait, and then its handler is told so.
    pub(crate) fn create_request(&self, pending_input_request: PendingInputRequest) -> Option<Bytes> {
        let mut waiting = self.pending.lock();
        if waiting.len() >= PENDING_MAX {
            // Of calls that have ended meanwhile.
            waiting.retain(|_, answer| !answer.is_closed());
        }
        if waiting.len() >= PENDING_MAX {
            return None;
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        waiting.insert(id, pending_input_request.answer_sender);
        let (method, mut params) = encode_input_request(&pending_input_request.request);
        if let InputRequestKind::Url { .. } = pending_input_request.request.kind {
            // Legacy clients are told under it when the person is done, where a server knows.
            params["elicitationId"] = Uuid::new_v4().to_string().into();
        }
        Some(encode_server_request(id, method, &params))
    }

    /// Hands on what the client answered. What nobody asked for is passed over; an error and what is no answer tell the
    /// handler that there is none.
    pub(crate) fn handle_response(&self, response: &RpcResponse) {
        let Some(id) = response.id.as_ref().and_then(|id| id.as_json().parse::<u64>().ok()) else { return };
        let Some(answer) = self.pending.lock().remove(&id) else { return };
        let result = response.result.as_deref().and_then(|result| serde_json::from_str(result.get()).ok());
        if let Some(Ok(input_answer)) = result.as_ref().map(parse_input_answer) {
            // An error means that the call has ended.
            let _ = answer.send(input_answer);
        }
    }
}
