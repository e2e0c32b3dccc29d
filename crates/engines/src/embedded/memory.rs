//! Memory limits of queries: one for the node, one for each tenant, one for each query.
//!
//! Each query has its own fair pool, whose operators share the query's limit and spill beyond it. What they reserve
//! also counts against the limits of the tenant and the node. So many queries together cannot exceed those, and one
//! query that requests too much fails alone.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;
use tidegate_core::tenant_share;

/// The end of the error when the node's or the tenant's memory is exhausted. It distinguishes that error from the limit
/// of one query.
pub(crate) const SHARED_MEMORY_USED_UP: &str = "queries share is used up";

#[derive(Debug)]
pub(crate) struct EngineMemory {
    query_limit_bytes: usize,
    node: Arc<SharedMemoryPool>,
    /// Of the tenants with running queries.
    tenants: Mutex<HashMap<String, Weak<SharedMemoryPool>>>,
}

#[derive(Debug)]
struct SharedMemoryPool {
    /// Which queries share it, for error messages.
    owner: &'static str,
    limit_bytes: usize,
    used_bytes: AtomicUsize,
}

impl EngineMemory {
    pub(crate) fn new(limit_bytes: usize, query_limit_bytes: usize) -> Self {
        Self { query_limit_bytes, node: SharedMemoryPool::new("all", limit_bytes), tenants: Mutex::default() }
    }

    pub(crate) fn used_bytes(&self) -> usize {
        self.node.used_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn create_query_pool(&self, tenant: Option<&str>) -> Arc<QueryMemoryPool> {
        let shared = tenant.map(|tenant| self.tenant_pool(tenant)).into_iter().chain([self.node.clone()]).collect();
        Arc::new(QueryMemoryPool { own: FairSpillPool::new(self.query_limit_bytes), shared })
    }

    fn tenant_pool(&self, tenant: &str) -> Arc<SharedMemoryPool> {
        let mut tenants = self.tenants.lock();
        if let Some(memory) = tenants.get(tenant).and_then(Weak::upgrade) {
            return memory;
        }
        tenants.retain(|_, memory| memory.strong_count() > 0);
        let memory = SharedMemoryPool::new("the tenant's", tenant_share(self.node.limit_bytes));
        tenants.insert(tenant.to_owned(), Arc::downgrade(&memory));
        memory
    }
}

impl SharedMemoryPool {
    fn new(owner: &'static str, limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { owner, limit_bytes, used_bytes: AtomicUsize::new(0) })
    }

    fn try_charge(&self, bytes: usize) -> Result<()> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit_bytes);
        match self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            // An operator that can spill does so on this error and continues.
            Err(used) => Err(DataFusionError::ResourcesExhausted(format!(
                "of {} bytes, {used} are in use: the memory that {} {SHARED_MEMORY_USED_UP}",
                self.limit_bytes, self.owner
            ))),
        }
    }

    fn charge(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct QueryMemoryPool {
    own: FairSpillPool,
    /// Of the tenant, of the node.
    shared: Vec<Arc<SharedMemoryPool>>,
}

impl MemoryPool for QueryMemoryPool {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.own.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.own.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        self.shared.iter().for_each(|shared| shared.charge(additional));
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.shared.iter().for_each(|shared| shared.release(shrink));
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.own.try_grow(reservation, additional)?;
        for (taken, shared) in self.shared.iter().enumerate() {
            if let Err(refusal) = shared.try_charge(additional) {
                self.shared[..taken].iter().for_each(|shared| shared.release(additional));
                self.own.shrink(reservation, additional);
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.own.memory_limit()
    }
}

impl fmt::Display for QueryMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(memory: &Arc<QueryMemoryPool>, name: &str) -> MemoryReservation {
        let pool: Arc<dyn MemoryPool> = memory.clone();
        MemoryConsumer::new(name).register(&pool)
    }

    #[test]
    fn query_is_bounded_by_its_own_and_the_node_limit() {
        let memory = EngineMemory::new(150, 100);
        let first = reservation(&memory.create_query_pool(None), "first");
        let second = reservation(&memory.create_query_pool(None), "second");
        first.try_grow(101).unwrap_err();
        first.try_grow(100).unwrap();
        let refusal = second.try_grow(60).unwrap_err().to_string();
        assert!(refusal.contains(SHARED_MEMORY_USED_UP), "{refusal}");
        second.try_grow(50).unwrap();
        drop(first);
        second.try_grow(50).unwrap();
        assert_eq!(memory.used_bytes(), 100);
        drop(second);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn queries_of_a_tenant_share_half_of_the_node_memory() {
        let memory = EngineMemory::new(200, 80);
        let first = reservation(&memory.create_query_pool(Some("acme")), "first");
        let second = reservation(&memory.create_query_pool(Some("acme")), "second");
        let other = reservation(&memory.create_query_pool(Some("other")), "other");
        first.try_grow(80).unwrap();
        let refusal = second.try_grow(21).unwrap_err().to_string();
        assert!(refusal.contains("the tenant's"), "{refusal}");
        second.try_grow(20).unwrap();
        other.try_grow(80).unwrap();
        drop((first, second));
        assert_eq!(memory.used_bytes(), 80);
        reservation(&memory.create_query_pool(Some("acme")), "third").try_grow(80).unwrap();
        assert_eq!(memory.used_bytes(), 80, "refused memory is not counted");
    }
}
