//! The memory of one partition of a sort.
//!
//! DataFusion's sorter fails, instead of spilling, when memory is short at certain moments: with its first batch, and
//! while it merges. In a pool that it shares with other partitions and operators, these take the memory that it needs
//! then. So each partition has a pool of its own. The pool has a part that no other operator can take, and grows beyond
//! it while the query's pool permits.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

use super::memory::QueryMemoryPool;

/// The pool grows in steps of this size.
const STEP_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct SorterPool {
    query: Arc<dyn MemoryPool>,
    /// What the pool reserved from the query's pool, beyond the part of the sort.
    more: MemoryReservation,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The part of the sort, which is reserved for it.
    own_bytes: usize,
    /// Batches that wait to be sorted. The sorter spills them when this cannot grow.
    spillable_bytes: usize,
    unspillable_bytes: usize,
    /// What merging the waiting batches needs in addition to what the sorter reserves for them.
    merge_bytes: usize,
}

impl State {
    fn used_bytes(&self) -> usize {
        self.spillable_bytes + self.unspillable_bytes
    }

    fn reservation_mut(&mut self, reservation: &MemoryReservation) -> &mut usize {
        if reservation.consumer().can_spill() { &mut self.spillable_bytes } else { &mut self.unspillable_bytes }
    }
}

impl SorterPool {
    pub(crate) fn new(query: Arc<dyn MemoryPool>) -> Self {
        let more = MemoryConsumer::new("sort").register(&query);
        Self { query, more, state: Mutex::default() }
    }

    fn query_pool(&self) -> Result<&QueryMemoryPool> {
        self.query.downcast_ref().ok_or_else(|| internal_datafusion_err!("a sort runs outside of a query"))
    }

    /// The memory that each of `sorters` can expect.
    pub(crate) fn sort_bytes_max(&self, sorters: usize) -> Result<usize> {
        Ok(self.query_pool()?.sort_bytes_max(sorters))
    }

    /// Gives the pool its part of the memory that all `sorters` of the query reserve. Waits for a limited time while
    /// other queries hold the memory.
    pub(crate) async fn reserve(&self, sorters: usize) -> Result<()> {
        let bytes = self.query_pool()?.reserve_for_sorts(sorters).await?;
        self.state.lock().own_bytes = bytes;
        Ok(())
    }

    /// Enlarges the pool of a small sort to `bytes`, without waiting, even while others wait. Returns whether it succeeded.
    pub(crate) fn try_enlarge(&self, bytes: usize) -> bool {
        let state = self.state.lock();
        let capacity = state.own_bytes + self.more.size();
        bytes <= capacity || self.more.try_grow((bytes - capacity).next_multiple_of(STEP_BYTES)).is_ok()
    }

    fn try_grow_by(&self, bytes: usize) -> Result<()> {
        let bytes = bytes.next_multiple_of(STEP_BYTES);
        self.query_pool()?.check_more_for_sort(bytes)?;
        self.more.try_grow(bytes)
    }

    /// Counts a batch that the sorter receives next.
    pub(crate) fn add_merge_bytes(&self, bytes: usize) {
        self.state.lock().merge_bytes += bytes;
    }

    /// Returns memory to the query. Call it only while the sorter neither sorts nor begins to merge: a sorted batch
    /// is not counted while it is passed to the merge.
    pub(crate) fn release_excess(&self) {
        let state = self.state.lock();
        let needed = 2 * (state.used_bytes() + state.merge_bytes) + STEP_BYTES;
        let excess = (state.own_bytes + self.more.size()).saturating_sub(needed).min(self.more.size());
        if excess >= 4 * STEP_BYTES {
            self.more.shrink(excess);
        }
    }
}

impl MemoryPool for SorterPool {
    fn name(&self) -> &str {
        "sorter"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.state.lock().reservation_mut(reservation) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut state = self.state.lock();
        *state.reservation_mut(reservation) -= shrink;
        if state.spillable_bytes == 0 {
            // The batches were spilled, or are being merged.
            state.merge_bytes = 0;
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state.lock();
        let mut needed = state.used_bytes().saturating_add(additional);
        if reservation.consumer().can_spill() {
            // An eighth in reserve: sizes before sorting are estimates.
            needed = needed.saturating_add(needed / 8).saturating_add(state.merge_bytes);
        }
        let capacity = state.own_bytes + self.more.size();
        if needed > capacity {
            self.try_grow_by(needed - capacity)?;
        }
        *state.reservation_mut(reservation) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.state.lock().used_bytes()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.query.memory_limit()
    }
}

impl fmt::Display for SorterPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
