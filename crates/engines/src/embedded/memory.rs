//! The memory of all queries: one bound for the node, one for each query.
//!
//! Each query gets a fair pool of its own, in which its operators share what the query may have
//! and spill beyond it. What they take is charged to the node's bound as well, so that many
//! queries together cannot exceed it, and one query that asks for too much dies alone.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// How a refusal for want of the node's memory begins, so that it can be told from one for want of the query's.
pub(crate) const NODE_MEMORY_USED_UP: &str = "the memory of all queries together is used up";

/// What all queries of an engine may hold together.
#[derive(Debug)]
pub(crate) struct NodeMemory {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
}

impl NodeMemory {
    pub(crate) fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { limit_bytes, used_bytes: AtomicUsize::new(0) })
    }

    /// Bytes that queries hold now.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    fn try_take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit_bytes);
        self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn take(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The memory of one query.
#[derive(Debug)]
pub(crate) struct QueryMemory {
    own: FairSpillPool,
    node: Arc<NodeMemory>,
}

impl QueryMemory {
    pub(crate) fn new(limit_bytes: usize, node: Arc<NodeMemory>) -> Arc<Self> {
        Arc::new(Self { own: FairSpillPool::new(limit_bytes), node })
    }
}

impl MemoryPool for QueryMemory {
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
        self.node.take(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.node.give_back(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.own.try_grow(reservation, additional)?;
        if self.node.try_take(additional) {
            return Ok(());
        }
        self.own.shrink(reservation, additional);
        // An operator that can spill does so on this error and goes on.
        Err(DataFusionError::ResourcesExhausted(format!(
            "{NODE_MEMORY_USED_UP}: {} of {} bytes",
            self.node.used_bytes(),
            self.node.limit_bytes
        )))
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.own.memory_limit()
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(memory: &Arc<QueryMemory>, name: &str) -> MemoryReservation {
        let pool: Arc<dyn MemoryPool> = memory.clone();
        MemoryConsumer::new(name).register(&pool)
    }

    #[test]
    fn a_query_is_bounded_by_its_own_limit_and_by_the_nodes() {
        let node = NodeMemory::new(150);
        let first = reservation(&QueryMemory::new(100, node.clone()), "first");
        let second = reservation(&QueryMemory::new(100, node.clone()), "second");
        first.try_grow(101).unwrap_err();
        first.try_grow(100).unwrap();
        let refusal = second.try_grow(60).unwrap_err().to_string();
        assert!(refusal.contains(NODE_MEMORY_USED_UP), "{refusal}");
        second.try_grow(50).unwrap();
        drop(first);
        second.try_grow(50).unwrap();
        assert_eq!(node.used_bytes(), 100);
        drop(second);
        assert_eq!(node.used_bytes(), 0);
    }
}
