//! The open requests of one connection or session, so that they can be cancelled.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::jsonrpc::{RequestId, RpcError};

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
