//! The calls of the client that are not answered yet, so that it can take them back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tidegate_mcp::RpcError;
use tokio_util::sync::CancellationToken;

use super::request::ClientCall;

/// The open calls, by id as JSON text.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    open: Mutex<HashMap<String, OpenCallEntry>>,
}

/// An open call, and what is known of its request.
#[derive(Debug, Clone)]
struct OpenCallEntry {
    call: Arc<OpenCall>,
    is_modern: bool,
    /// It is a stream of notifications, which the server alone would end.
    is_stream: bool,
}

/// One call that is not answered.
#[derive(Debug, Default)]
pub(super) struct OpenCall {
    /// The client wants no answer any more.
    is_cancelled: AtomicBool,
    /// Something of it may have been sent.
    may_have_been_sent: AtomicBool,
    /// Fires when nothing more is to be awaited for it.
    pub(super) ended: CancellationToken,
}

/// Keeps a call open.
#[derive(Debug)]
pub(super) struct ClientCallGuard {
    calls: Arc<OpenCalls>,
    ids: Vec<String>,
}

impl OpenCalls {
    /// Opens a call until the guard is dropped; a batch has several ids.
    ///
    /// # Errors
    /// `-32600` when an id is in use.
    pub(super) fn open(self: &Arc<Self>, call: &ClientCall) -> Result<ClientCallGuard, RpcError> {
        let mut guard = ClientCallGuard { calls: self.clone(), ids: Vec::new() };
        for id in &call.ids {
            let mut open = self.open.lock();
            if open.contains_key(id.as_json()) {
                // The guard takes back what it has, so it must not be dropped under the lock.
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

    /// Takes back the call of that id, and says whether it is modern; none if it is answered already.
    pub(super) fn cancel(&self, id: &str) -> Option<(Arc<OpenCall>, bool)> {
        let OpenCallEntry { call, is_modern, .. } = self.open.lock().get(id).cloned()?;
        call.is_cancelled.store(true, Ordering::Release);
        Some((call, is_modern))
    }

    /// Ends the streams of notifications: whoever opened them hears nothing more.
    pub(super) fn end_streams(&self) {
        for open in self.open.lock().values().filter(|open| open.is_stream) {
            open.call.is_cancelled.store(true, Ordering::Release);
            open.call.ended.cancel();
        }
    }
}

impl OpenCall {
    /// Whether the client wants no answer any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Whether something of it may have been sent.
    pub(super) fn may_have_been_sent(&self) -> bool {
        self.may_have_been_sent.load(Ordering::Acquire)
    }

    /// To be said before it is sent, and again when it is certain that nothing of it was.
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
