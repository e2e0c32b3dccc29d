//! The memory of a node: what the operators of queries hold, and the rows of bodies while they are decoded and written.
//!
//! All of it counts against one limit, and that of a tenant against half of it as well. It is counted, not allocated here.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{MemoryRefusal, MemoryReservation, tenant_share};
use tokio::sync::Notify;

/// A reservation of at most so many bytes is never refused, so that queries that hold all memory do not stop small writes.
/// A call has at
/// most two, and the number of running calls bounds what exceeds the limit by that.
const ALWAYS_RESERVED_BYTES: usize = 256 << 10;

/// The memory that all work of a node shares.
#[derive(Debug)]
pub struct NodeMemory {
    node: Arc<SharedLimit>,
    /// Of the tenants with work.
    tenants: Mutex<HashMap<String, Weak<SharedLimit>>>,
    released: Arc<Notify>,
}

/// The memory of the work of one tenant, or of callers without a tenant. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MemoryShare {
    tenant: Option<Arc<SharedLimit>>,
    node: Arc<SharedLimit>,
    /// Wakes work that waits for memory.
    released: Arc<Notify>,
}

/// The memory of one body of rows. It is returned when this is dropped.
#[derive(Debug)]
pub struct NodeReservation {
    share: MemoryShare,
    bytes: usize,
}

#[derive(Debug)]
struct SharedLimit {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    /// How much work waits because this limit is reached.
    waiting: AtomicUsize,
}

impl NodeMemory {
    /// Memory of `limit_bytes`, of which nothing is in use.
    pub fn new(limit_bytes: usize) -> Self {
        Self { node: SharedLimit::new(limit_bytes), tenants: Mutex::default(), released: Arc::default() }
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.node.used_bytes.load(Ordering::SeqCst)
    }

    /// The memory for work of `tenant`.
    pub fn share(&self, tenant: Option<&str>) -> MemoryShare {
        let tenant = tenant.map(|tenant| self.tenant_limit(tenant));
        MemoryShare { tenant, node: self.node.clone(), released: self.released.clone() }
    }

    /// An empty reservation for rows of `tenant`.
    pub fn reserve(&self, tenant: Option<&str>) -> NodeReservation {
        NodeReservation { share: self.share(tenant), bytes: 0 }
    }

    fn tenant_limit(&self, tenant: &str) -> Arc<SharedLimit> {
        let mut tenants = self.tenants.lock();
        if let Some(limit) = tenants.get(tenant).and_then(Weak::upgrade) {
            return limit;
        }
        tenants.retain(|_, limit| limit.strong_count() > 0);
        let limit = SharedLimit::new(tenant_share(self.node.limit_bytes));
        tenants.insert(tenant.to_owned(), Arc::downgrade(&limit));
        limit
    }
}

impl Default for NodeMemory {
    /// Memory without a limit.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl MemoryShare {
    /// The smallest limit.
    pub fn limit_bytes(&self) -> usize {
        self.tenant.as_ref().map_or(self.node.limit_bytes, |tenant| tenant.limit_bytes.min(self.node.limit_bytes))
    }

    /// Counts `bytes` more.
    ///
    /// # Errors
    /// A limit does not admit them. Nothing was counted.
    pub fn try_charge(&self, bytes: usize) -> Result<(), MemoryRefusal> {
        if bytes == 0 {
            return Ok(());
        }
        if let Some(tenant) = &self.tenant {
            tenant.try_charge(bytes, true)?;
        }
        let of_node = self.node.try_charge(bytes, false);
        if let (Err(_), Some(tenant)) = (&of_node, &self.tenant) {
            tenant.release(bytes);
        }
        of_node
    }

    /// Counts `bytes` more, whether or not the limits admit them.
    pub fn charge(&self, bytes: usize) {
        for limit in self.limits() {
            limit.used_bytes.fetch_add(bytes, Ordering::SeqCst);
        }
    }

    /// Counts `bytes` less.
    pub fn release(&self, bytes: usize) {
        self.limits().for_each(|limit| limit.release(bytes));
        if self.has_waiters() {
            self.released.notify_waiters();
        }
    }

    /// Whether work waits for memory that this share could release.
    pub fn has_waiters(&self) -> bool {
        self.limits().any(|limit| limit.waiting.load(Ordering::SeqCst) > 0)
    }

    /// The outcome of the first `attempt` that is not refused. After a refusal, it is tried again when memory is released,
    /// but not longer than `within`.
    ///
    /// # Errors
    /// The last refusal.
    pub async fn retry_within<T>(
        &self,
        within: Duration,
        mut attempt: impl FnMut() -> Result<T, MemoryRefusal>,
    ) -> Result<T, MemoryRefusal> {
        let mut refusal = match attempt() {
            Ok(outcome) => return Ok(outcome),
            Err(refusal) => refusal,
        };
        let waiting = async {
            loop {
                let refused_by_tenant = refusal.is_of_tenant;
                let _waiting = WaiterGuard::new(self.limit_of(refused_by_tenant));
                let mut released = pin!(self.released.notified());
                // From here on, no release is missed.
                released.as_mut().enable();
                match attempt() {
                    Ok(outcome) => return outcome,
                    Err(again) => refusal = again,
                }
                if refusal.is_of_tenant == refused_by_tenant {
                    released.await;
                }
            }
        };
        let outcome = tokio::time::timeout(within, waiting).await;
        outcome.map_err(|_| refusal)
    }

    fn limit_of(&self, is_of_tenant: bool) -> &SharedLimit {
        match &self.tenant {
            Some(tenant) if is_of_tenant => tenant,
            _ => &self.node,
        }
    }

    fn limits(&self) -> impl Iterator<Item = &SharedLimit> {
        self.tenant.iter().chain([&self.node]).map(|limit| &**limit)
    }
}

impl NodeReservation {
    /// The size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the size of the reservation, and waits at most `within` for the memory.
    ///
    /// # Errors
    /// Other work holds the memory for longer, or a limit is smaller than `bytes`. The reservation stays as it was.
    pub async fn resize_within(&mut self, bytes: usize, within: Duration) -> Result<(), MemoryRefusal> {
        if bytes > self.share.limit_bytes() {
            return self.resize(bytes);
        }
        let share = self.share.clone();
        share.retry_within(within, || self.resize(bytes)).await
    }
}

impl MemoryReservation for NodeReservation {
    fn resize(&mut self, bytes: usize) -> Result<(), MemoryRefusal> {
        match bytes.checked_sub(self.bytes) {
            None => self.share.release(self.bytes - bytes),
            Some(more) if bytes <= ALWAYS_RESERVED_BYTES => self.share.charge(more),
            Some(more) => {
                let refused = |refusal| MemoryRefusal { requested_bytes: bytes, ..refusal };
                self.share.try_charge(more).map_err(refused)?;
            }
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for NodeReservation {
    fn drop(&mut self) {
        self.share.release(self.bytes);
    }
}

impl SharedLimit {
    fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { limit_bytes, used_bytes: AtomicUsize::new(0), waiting: AtomicUsize::new(0) })
    }

    fn try_charge(&self, bytes: usize, is_of_tenant: bool) -> Result<(), MemoryRefusal> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit_bytes);
        match self.used_bytes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits) {
            Ok(_) => Ok(()),
            Err(used_bytes) => {
                let limit_bytes = self.limit_bytes;
                Err(MemoryRefusal { is_of_tenant, requested_bytes: bytes, used_bytes, limit_bytes })
            }
        }
    }

    fn release(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// Counts work that waits for a limit.
struct WaiterGuard<'a>(&'a SharedLimit);

impl<'a> WaiterGuard<'a> {
    fn new(limit: &'a SharedLimit) -> Self {
        limit.waiting.fetch_add(1, Ordering::SeqCst);
        Self(limit)
    }
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn bodies_are_refused_beyond_the_limit_unless_they_are_small() {
        let memory = NodeMemory::new(10 * MIB);
        let (mut large, mut small) = (memory.reserve(None), memory.reserve(None));
        large.resize(10 * MIB).unwrap();
        small.resize(ALWAYS_RESERVED_BYTES).unwrap();
        let refusal = small.resize(MIB).unwrap_err();
        assert_eq!((refusal.requested_bytes, refusal.limit_bytes), (MIB, 10 * MIB));
        assert_eq!(memory.used_bytes(), 10 * MIB + ALWAYS_RESERVED_BYTES, "a refused one stays as it was");
        large.resize(MIB).unwrap();
        small.resize(MIB).unwrap();
        assert_eq!(memory.used_bytes(), 2 * MIB);
        drop((large, small));
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn bodies_of_a_tenant_have_half_of_the_memory() {
        let memory = NodeMemory::new(10 * MIB);
        let mut first = memory.reserve(Some("acme"));
        let mut second = memory.reserve(Some("acme"));
        first.resize(4 * MIB).unwrap();
        assert!(second.resize(2 * MIB).unwrap_err().is_of_tenant);
        memory.reserve(Some("other")).resize(5 * MIB).unwrap();
        assert_eq!(memory.used_bytes(), 4 * MIB);
        drop(first);
        second.resize(5 * MIB).unwrap();
        // What the node refuses is not counted for the tenant.
        let mut rest = memory.reserve(None);
        rest.resize(5 * MIB).unwrap();
        assert!(!memory.reserve(Some("third")).resize(MIB).unwrap_err().is_of_tenant);
        drop((second, rest));
        assert_eq!(memory.used_bytes(), 0);
    }

    #[tokio::test]
    async fn work_that_waits_goes_on_when_a_body_ends() {
        let memory = NodeMemory::new(10 * MIB);
        let mut body = memory.reserve(None);
        body.resize(8 * MIB).unwrap();
        let mut second = memory.reserve(None);
        let refusal = second.resize_within(4 * MIB, Duration::ZERO).await.unwrap_err();
        assert_eq!(refusal.used_bytes, 8 * MIB);
        let share = memory.share(None);
        let mut waiting = Box::pin(share.retry_within(Duration::from_secs(60), || share.try_charge(4 * MIB)));
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(share.has_waiters());
        drop(body);
        waiting.await.unwrap();
        second.resize_within(4 * MIB, Duration::ZERO).await.unwrap();
        assert_eq!(memory.used_bytes(), 8 * MIB);
        second.resize_within(11 * MIB, Duration::from_secs(60)).await.unwrap_err();
    }
}
