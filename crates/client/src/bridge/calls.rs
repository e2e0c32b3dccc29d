//! The calls of the client that are not answered yet, so that the client can cancel them.

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
