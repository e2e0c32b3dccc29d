//! Memory limits of queries: one for the node, one for each tenant, one for each query; and the memory that the sorts
//! of several queries share.
//!
//! Each query has its own fair pool, whose operators share the query's limit and spill beyond it. What they reserve
//! also counts against the limits of the tenant and the node. So many queries together cannot exceed those, and one
//! query that requests too much fails alone.
//!
//! A sort can spill, but it needs some memory to do so. The sorts of a query therefore reserve a part of the query's
//! limit together before they read more than a few batches. They wait for that while other queries hold the memory.
//!
//! A query that sorts alone uses what the limits permit, and spills beyond that. If each of fifty queries did, none of
//! them would come near a limit, and together they would hold gigabytes. So if several queries sort, each has a part
//! that is small but enough to sort and to merge, and they grow beyond their parts only while all of them together are
//! within a share of the node. They spill instead.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, UnboundedMemoryPool,
};
use parking_lot::Mutex;
use tidegate_core::MemoryRefusal;
use tidegate_query::{MemoryShare, NodeMemory};
use tokio::sync::OnceCell;

/// The end of the error when the node's or the tenant's memory is exhausted. It distinguishes that error from the limit
/// of one query.
pub(crate) const SHARED_MEMORY_USED_UP: &str = "queries share is used up";

/// Bytes that one partition of a sort reserves before it reads more than a few batches, if the limits permit.
const SORT_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct EngineMemory {
    query_limit_bytes: usize,
    /// Maximum time that the sorts of a query wait for memory.
    wait: Duration,
    pub(crate) node: Arc<NodeMemory>,
}

impl EngineMemory {
    pub(crate) fn new(limit_bytes: usize, query_limit_bytes: usize, wait: Duration) -> Self {
        Self { query_limit_bytes, wait, node: Arc::new(NodeMemory::new(limit_bytes)) }
    }

    pub(crate) fn create_query_pool(&self, tenant: Option<&str>) -> Arc<QueryMemoryPool> {
        let unbounded: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        Arc::new(QueryMemoryPool {
            own: FairSpillPool::new(self.query_limit_bytes),
            limit_bytes: self.query_limit_bytes,
            wait: self.wait,
            shared: self.node.share(tenant),
            charged: Mutex::default(),
            sorts_bytes: OnceCell::new(),
            sorter_bytes_max: OnceLock::new(),
            sorts: MemoryConsumer::new("sorts").register(&unbounded),
        })
    }
}

/// The error of an operator, which then spills and continues if it can.
fn used_up(refusal: MemoryRefusal) -> DataFusionError {
    let owner = if refusal.is_of_tenant { "the tenant's" } else { "all" };
    DataFusionError::ResourcesExhausted(format!("{refusal}: the memory that {owner} {SHARED_MEMORY_USED_UP}"))
}

#[derive(Debug)]
pub(crate) struct QueryMemoryPool {
    own: FairSpillPool,
    limit_bytes: usize,
    wait: Duration,
    shared: MemoryShare,
    charged: Mutex<ChargedBytes>,
    /// The memory that the sorts have reserved together.
    sorts_bytes: OnceCell<usize>,
    /// What one partition of a sort reserves at most, if less than [`SORT_BYTES`].
    sorter_bytes_max: OnceLock<usize>,
    /// Identifies the sorts to `own`. A reservation in this pool would keep the pool alive forever.
    sorts: MemoryReservation,
}

/// What the query counts against the shared limits: the larger of the two.
#[derive(Debug, Default)]
struct ChargedBytes {
    reserved_bytes: usize,
    prepaid_bytes: usize,
}

impl ChargedBytes {
    fn bytes(&self) -> usize {
        self.reserved_bytes.max(self.prepaid_bytes)
    }
}

impl QueryMemoryPool {
    /// The memory of each of `sorters` parallel sorts before the query reserves any.
    pub(crate) fn sort_bytes_max(&self, sorters: usize) -> usize {
        SORT_BYTES.min(self.limit_bytes / 2 / sorters.max(1))
    }

    /// Limits what one partition of a sort reserves. Only the first call has an effect.
    pub(crate) fn limit_sorters(&self, bytes: usize) {
        let _ = self.sorter_bytes_max.set(bytes);
    }

    /// Reserves memory for all `sorters` of the query, and returns the number of bytes for each. Waits for a limited
    /// time while other queries hold the memory. Only the first call reserves; a new plan of the query may have another
    /// number of sorts.
    pub(crate) async fn reserve_for_sorts(&self, sorters: usize) -> Result<usize> {
        let sorters = sorters.max(1);
        let sorts_bytes = self.sorts_bytes.get_or_try_init(|| self.wait_for_sorts(sorters)).await?;
        Ok((sorts_bytes / sorters).min(SORT_BYTES))
    }

    async fn wait_for_sorts(&self, sorters: usize) -> Result<usize> {
        let reserved = self.shared.retry_within(self.wait, || self.try_reserve_for_sorts(sorters));
        reserved.await.map_err(used_up)
    }

    fn try_reserve_for_sorts(&self, sorters: usize) -> Result<usize, MemoryRefusal> {
        let mut charged = self.charged.lock();
        let free = self.limit_bytes.saturating_sub(self.own.reserved());
        let sorter_bytes_max = self.sorter_bytes_max.get().copied().unwrap_or(SORT_BYTES);
        let sorts_bytes = sorter_bytes_max.min(free / 2 / sorters) * sorters;
        // The operators above the sorts merge their rows and cannot spill.
        let limit = self.shared.limit_bytes();
        let prepaid_bytes = (charged.reserved_bytes + sorts_bytes + sorts_bytes / 2).min(limit);
        let reserved_bytes = charged.reserved_bytes + sorts_bytes;
        self.try_charge(&mut charged, ChargedBytes { reserved_bytes, prepaid_bytes })?;
        // Within `free`, so the limit holds. It is released when this pool is dropped.
        self.own.grow(&self.sorts, sorts_bytes);
        Ok(sorts_bytes)
    }

    /// Whether a sort may reserve `bytes` more than its part. A quarter of the query's limit is left to other operators,
    /// and memory of the node for which queries wait is left to them.
    pub(crate) fn check_more_for_sort(&self, bytes: usize) -> Result<()> {
        if self.shared.has_waiters() {
            let reason = format!("queries wait for memory: the memory that all {SHARED_MEMORY_USED_UP}");
            return Err(DataFusionError::ResourcesExhausted(reason));
        }
        let sum = self.own.reserved().saturating_add(bytes);
        if sum > self.limit_bytes / 4 * 3 {
            let reason = format!("sorts would use {sum} of the {} bytes of one query", self.limit_bytes);
            return Err(DataFusionError::ResourcesExhausted(reason));
        }
        Ok(())
    }

    fn try_charge(&self, charged: &mut ChargedBytes, new: ChargedBytes) -> Result<(), MemoryRefusal> {
        self.shared.try_charge(new.bytes().saturating_sub(charged.bytes()))?;
        *charged = new;
        Ok(())
    }
}

impl Drop for QueryMemoryPool {
    fn drop(&mut self) {
        self.shared.release(self.charged.get_mut().bytes());
    }
}

impl MemoryPool for QueryMemoryPool {
    fn name(&self) -> &str {
        "query"
    }

    tidegate_pgsql::delegate_to! { own =>
        fn register(&self, consumer: &MemoryConsumer);
        fn unregister(&self, consumer: &MemoryConsumer);
        fn reserved(&self) -> usize;
        fn memory_limit(&self) -> MemoryLimit;
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        let mut charged = self.charged.lock();
        let before = charged.bytes();
        charged.reserved_bytes += additional;
        self.shared.charge(charged.bytes() - before);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        let mut charged = self.charged.lock();
        let before = charged.bytes();
        charged.reserved_bytes -= shrink;
        self.shared.release(before - charged.bytes());
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.own.try_grow(reservation, additional)?;
        let mut charged = self.charged.lock();
        let new =
            ChargedBytes { reserved_bytes: charged.reserved_bytes + additional, prepaid_bytes: charged.prepaid_bytes };
        let outcome = self.try_charge(&mut charged, new);
        if outcome.is_err() {
            self.own.shrink(reservation, additional);
        }
        outcome.map_err(used_up)
    }
}

impl fmt::Display for QueryMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes of sorts for each thread of a query.
const BYTES_PER_THREAD: usize = 32 << 20;
/// The part of the memory of all queries.
const MEMORY_SHARE: usize = 4;
/// What one partition of a sort has at least.
const SORTER_BYTES_MIN: usize = 1 << 20;
/// Number of spilled files that one merge reads at the same time, if one query sorts and if many do. Each file has
/// batches in memory.
pub(crate) const MERGED_FILES_MAX: usize = 64;
const MERGED_FILES_MIN: usize = 4;

#[derive(Debug)]
pub(crate) struct SortShare {
    bytes_max: usize,
    sorts: Mutex<RunningSorts>,
}

#[derive(Debug, Default)]
struct RunningSorts {
    /// Queries that sort more than some rows.
    queries: usize,
    /// Their parts, and what sorts have beyond them.
    bytes: usize,
}

/// The sorts of one plan.
#[derive(Debug)]
pub(crate) struct PlanSorts {
    /// The number of partitions of all sorts.
    sorters: usize,
    share: Arc<SortShare>,
    /// From the first sort on that reserves memory.
    part: OnceLock<SortPart>,
}

/// The part of one query. It is returned when this is dropped.
#[derive(Debug)]
struct SortPart {
    share: Arc<SortShare>,
    bytes: usize,
    sorter_bytes: usize,
}

impl SortShare {
    /// For queries with so many threads, which have `memory_bytes` together.
    pub(crate) fn new(threads: usize, memory_bytes: usize) -> Self {
        let bytes_max = (threads.max(1) * BYTES_PER_THREAD).min(memory_bytes / MEMORY_SHARE);
        Self { bytes_max, sorts: Mutex::default() }
    }

    /// Whether a sort may have `bytes` more, or should spill instead.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let sorts = self.sorts.lock();
        sorts.queries <= 1 || sorts.bytes + bytes <= self.bytes_max
    }

    /// Counts what a sort has beyond its part.
    pub(crate) fn grow(&self, bytes: usize) {
        self.sorts.lock().bytes += bytes;
    }

    pub(crate) fn shrink(&self, bytes: usize) {
        self.sorts.lock().bytes -= bytes;
    }

    fn add_query(self: &Arc<Self>, sorters: usize, sorter_bytes_max: usize, sorter_bytes_min: usize) -> SortPart {
        let mut sorts = self.sorts.lock();
        // The rest is for the next queries, and for sorts that need more than their parts.
        let quarter = self.bytes_max.saturating_sub(sorts.bytes) / 4 / sorters;
        let sorter_bytes = match sorts.queries {
            0 => sorter_bytes_max,
            _ => quarter.max(SORTER_BYTES_MIN).max(sorter_bytes_min).min(sorter_bytes_max),
        };
        let bytes = sorters * sorter_bytes;
        sorts.queries += 1;
        sorts.bytes += bytes;
        SortPart { share: self.clone(), bytes, sorter_bytes }
    }
}

impl PlanSorts {
    pub(crate) fn new(sorters: usize, share: Arc<SortShare>) -> Self {
        Self { sorters: sorters.max(1), share, part: OnceLock::new() }
    }

    pub(crate) fn sorters(&self) -> usize {
        self.sorters
    }

    pub(crate) fn share(&self) -> &Arc<SortShare> {
        &self.share
    }

    /// The memory of each partition: `bytes_max` if no other query sorts, else less, but at least `bytes_min` if that is
    /// not more.
    pub(crate) fn sorter_bytes(&self, bytes_max: usize, bytes_min: usize) -> usize {
        self.part.get_or_init(|| self.share.add_query(self.sorters, bytes_max, bytes_min)).sorter_bytes
    }

    /// How many spilled files a merge that begins now may read at the same time.
    pub(crate) fn merged_files_max(&self) -> usize {
        let queries = self.share.sorts.lock().queries;
        (MERGED_FILES_MAX / queries.max(1)).max(MERGED_FILES_MIN)
    }
}

impl Drop for SortPart {
    fn drop(&mut self) {
        let mut sorts = self.share.sorts.lock();
        sorts.queries -= 1;
        sorts.bytes -= self.bytes;
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
        let memory = EngineMemory::new(150, 100, Duration::ZERO);
        let first = reservation(&memory.create_query_pool(None), "first");
        let second = reservation(&memory.create_query_pool(None), "second");
        first.try_grow(101).unwrap_err();
        first.try_grow(100).unwrap();
        let refusal = second.try_grow(60).unwrap_err().to_string();
        assert!(refusal.contains(SHARED_MEMORY_USED_UP), "{refusal}");
        second.try_grow(50).unwrap();
        drop(first);
        second.try_grow(50).unwrap();
        assert_eq!(memory.node.used_bytes(), 100);
        drop(second);
        assert_eq!(memory.node.used_bytes(), 0);
    }

    #[test]
    fn queries_of_a_tenant_share_half_of_the_node_memory() {
        let memory = EngineMemory::new(200, 80, Duration::ZERO);
        let first = reservation(&memory.create_query_pool(Some("acme")), "first");
        let second = reservation(&memory.create_query_pool(Some("acme")), "second");
        let other = reservation(&memory.create_query_pool(Some("other")), "other");
        first.try_grow(80).unwrap();
        let refusal = second.try_grow(21).unwrap_err().to_string();
        assert!(refusal.contains("the tenant's"), "{refusal}");
        second.try_grow(20).unwrap();
        other.try_grow(80).unwrap();
        drop((first, second));
        assert_eq!(memory.node.used_bytes(), 80);
        reservation(&memory.create_query_pool(Some("acme")), "third").try_grow(80).unwrap();
        assert_eq!(memory.node.used_bytes(), 80, "refused memory is not counted");
    }

    #[tokio::test]
    async fn sorts_wait_for_memory_of_other_queries() {
        let memory = EngineMemory::new(100, 100, Duration::from_secs(60));
        let (first, second) = (memory.create_query_pool(None), memory.create_query_pool(None));
        assert_eq!(first.reserve_for_sorts(2).await.unwrap(), 25);
        assert_eq!(memory.node.used_bytes(), 75, "half as much again for the operators above the sorts");
        let above = reservation(&first, "above");
        above.try_grow(25).unwrap();
        assert_eq!(memory.node.used_bytes(), 75, "it is prepaid");
        let mut waiting = Box::pin(second.reserve_for_sorts(2));
        assert!(futures::poll!(&mut waiting).is_pending());
        first.check_more_for_sort(1).unwrap_err();
        drop((above, first));
        assert_eq!(waiting.await.unwrap(), 25);
        drop(second);
        assert_eq!(memory.node.used_bytes(), 0);
    }

    #[tokio::test]
    async fn tenant_that_waits_for_its_share_stops_no_other_tenant() {
        let memory = EngineMemory::new(400, 100, Duration::from_secs(60));
        let create = |tenant| memory.create_query_pool(Some(tenant));
        let (first, second, third, other) = (create("acme"), create("acme"), create("acme"), create("other"));
        first.reserve_for_sorts(1).await.unwrap();
        second.reserve_for_sorts(1).await.unwrap();
        let mut waiting = Box::pin(third.reserve_for_sorts(1));
        assert!(futures::poll!(&mut waiting).is_pending());
        other.check_more_for_sort(1).unwrap();
        first.check_more_for_sort(1).unwrap_err();
        drop(first);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn wait_for_memory_is_bounded() {
        let memory = EngineMemory::new(100, 100, Duration::from_millis(1));
        let (first, second) = (memory.create_query_pool(None), memory.create_query_pool(None));
        let held = reservation(&first, "held");
        held.try_grow(60).unwrap();
        let refusal = second.reserve_for_sorts(1).await.unwrap_err().to_string();
        assert!(refusal.contains(SHARED_MEMORY_USED_UP), "{refusal}");
        first.check_more_for_sort(15).unwrap();
        drop(held);
        assert_eq!(second.reserve_for_sorts(1).await.unwrap(), 50, "a refusal is not final");
    }

    const MIB: usize = 1 << 20;

    #[test]
    fn parts_of_many_queries_are_little_more_than_the_share() {
        let share = Arc::new(SortShare::new(2, 1 << 30));
        let mut plans = Vec::new();
        let mut bytes = 0;
        for _ in 0..50 {
            let sorts = PlanSorts::new(2, share.clone());
            bytes += 2 * sorts.sorter_bytes(16 * MIB, 0);
            assert_eq!(share.sorts.lock().bytes, bytes);
            plans.push(sorts);
        }
        assert!(bytes <= (64 + 50 * 2) * MIB, "{bytes} bytes");
        assert!(!share.has_room(MIB));
        assert_eq!(plans[0].sorter_bytes(1, 0), 16 * MIB, "a query keeps its part");
        assert_eq!(plans[49].merged_files_max(), MERGED_FILES_MIN);
        plans.truncate(1);
        assert_eq!(plans[0].merged_files_max(), MERGED_FILES_MAX);
        assert!(share.has_room(10 << 30), "a query that sorts alone is bound by the limits of queries only");
        plans.clear();
        assert_eq!(share.sorts.lock().bytes, 0);
    }

    #[test]
    fn wide_rows_have_a_larger_part() {
        let share = Arc::new(SortShare::new(1, 64 * MIB));
        let (first, second, third) =
            (PlanSorts::new(1, share.clone()), PlanSorts::new(1, share.clone()), PlanSorts::new(1, share.clone()));
        assert_eq!(first.sorter_bytes(16 * MIB, 0), 16 * MIB);
        assert_eq!(second.sorter_bytes(16 * MIB, 8 * MIB), 8 * MIB);
        assert_eq!(third.sorter_bytes(16 * MIB, 40 * MIB), 16 * MIB, "never more than alone");
    }

    #[test]
    fn growth_of_several_sorts_is_bounded_together() {
        let share = Arc::new(SortShare::new(1, 1 << 30));
        let (first, second) = (PlanSorts::new(1, share.clone()), PlanSorts::new(1, share.clone()));
        first.sorter_bytes(16 * MIB, 0);
        share.grow(100 * MIB);
        second.sorter_bytes(16 * MIB, 0);
        assert!(!share.has_room(1));
        share.shrink(100 * MIB);
        assert!(share.has_room(8 * MIB));
    }
}
