//! The calls of the client that are not answered yet, so that it can take them back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tidegate_mcp::{RequestId, RpcError};
use tokio_util::sync::CancellationToken;

/// The open calls, by id as JSON text.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Mutex<HashMap<String, Arc<OpenCall>>>,
}

/// One call that is not answered.
#[derive(Debug)]
pub(super) struct OpenCall {
    /// Whether the call needs nothing but to be dropped to be cancelled at the server.
    pub(super) is_modern: bool,
    /// The client wants no answer any more.
    is_taken_back: AtomicBool,
    /// Fires when nothing more is to be awaited for it.
    pub(super) ended: CancellationToken,
}

/// Keeps a call open.
#[derive(Debug)]
pub(super) struct OpenGuard {
    calls: Arc<Calls>,
    ids: Vec<String>,
    pub(super) call: Arc<OpenCall>,
}

impl Calls {
    /// Opens a call until the guard is dropped; a batch has several ids.
    ///
    /// # Errors
    /// `-32600` when an id is in use.
    pub(super) fn open(self: &Arc<Self>, ids: &[RequestId], is_modern: bool) -> Result<OpenGuard, RpcError> {
        let call =
            Arc::new(OpenCall { is_modern, is_taken_back: AtomicBool::new(false), ended: CancellationToken::new() });
        let mut guard = OpenGuard { calls: self.clone(), ids: Vec::new(), call: call.clone() };
        for id in ids {
            let mut open = self.open.lock();
            if open.contains_key(id.as_json()) {
                // The guard takes back what it has, so it must not be dropped under the lock.
                drop(open);
                let message = format!("a request with the id {} is open already", id.as_json());
                return Err(RpcError::invalid_request(message));
            }
            open.insert(id.as_json().to_owned(), call.clone());
            guard.ids.push(id.as_json().to_owned());
        }
        Ok(guard)
    }

    /// Takes back the call of that id; none if it is answered already.
    pub(super) fn take_back(&self, id: &str) -> Option<Arc<OpenCall>> {
        let call = self.open.lock().get(id).cloned()?;
        call.is_taken_back.store(true, Ordering::Release);
        Some(call)
    }
}

impl OpenCall {
    /// Whether the client wants no answer any more.
    pub(super) fn is_taken_back(&self) -> bool {
        self.is_taken_back.load(Ordering::Acquire)
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        let mut open = self.calls.open.lock();
        for id in &self.ids {
            open.remove(id);
        }
    }
}
