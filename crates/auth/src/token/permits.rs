//! Limits concurrent introspections, in total and for each network. A client that sends many invalid tokens waits in
//! the queue of its own network and does not delay others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::quota_address;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

const QUERIES_MAX: usize = 32;
const QUERIES_PER_NETWORK_MAX: usize = 8;

pub(super) struct IntrospectionPermits {
    all: Semaphore,
    queues: Mutex<HashMap<Option<IpAddr>, Arc<Semaphore>>>,
}

/// One permit, released when it is dropped.
pub(super) struct IntrospectionPermit<'a> {
    _shared: Option<SemaphorePermit<'a>>,
    _of_network: Option<OwnedSemaphorePermit>,
    _queue: NetworkQueue<'a>,
}

struct NetworkQueue<'a> {
    permits: &'a IntrospectionPermits,
    network: Option<IpAddr>,
    semaphore: Arc<Semaphore>,
}

impl Default for IntrospectionPermits {
    fn default() -> Self {
        Self { all: Semaphore::new(QUERIES_MAX), queues: Mutex::default() }
    }
}

impl IntrospectionPermits {
    /// The queue of its network comes first, so that a waiting request holds no shared permit.
    pub(super) async fn acquire(&self, peer: Option<IpAddr>) -> IntrospectionPermit<'_> {
        let network = peer.map(quota_address);
        let semaphore = self
            .queues
            .lock()
            .entry(network)
            .or_insert_with(|| Arc::new(Semaphore::new(QUERIES_PER_NETWORK_MAX)))
            .clone();
        let queue = NetworkQueue { permits: self, network, semaphore };
        // The semaphores are never closed.
        let network_permit = queue.semaphore.clone().acquire_owned().await.ok();
        let shared_permit = self.all.acquire().await.ok();
        IntrospectionPermit { _shared: shared_permit, _of_network: network_permit, _queue: queue }
    }
}

impl Drop for NetworkQueue<'_> {
    fn drop(&mut self) {
        let mut queues = self.permits.queues.lock();
        // One reference is in the map, the other is this one.
        let is_last = Arc::strong_count(&self.semaphore) <= 2;
        if is_last {
            queues.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn one_network_cannot_take_all_permits() {
        let introspection_permits = IntrospectionPermits::default();
        let of = |peer: &str| introspection_permits.acquire(peer.parse().ok()).now_or_never();
        let of_one: Vec<_> = (0..=QUERIES_PER_NETWORK_MAX).map(|number| of(&format!("2001:db8::{number:x}"))).collect();
        assert_eq!(of_one.iter().flatten().count(), QUERIES_PER_NETWORK_MAX);
        let others: Vec<_> = (0..=QUERIES_MAX).map(|number| of(&format!("10.0.0.{number}"))).collect();
        assert_eq!(others.iter().flatten().count(), QUERIES_MAX - QUERIES_PER_NETWORK_MAX);
        drop(of_one);
        assert!(of("2001:db8::1").is_some());
        drop(others);
        assert!(introspection_permits.queues.lock().is_empty());
    }
}
