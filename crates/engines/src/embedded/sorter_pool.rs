//! The memory of one partition of a sort.
//!
//! DataFusion's sorter fails, instead of spilling, when memory is short at certain moments: with its first batch, and
//! while it merges. In a pool that it shares with other partitions and operators, these take the memory that it needs
//! then. So each partition has a pool of its own. The pool has a part that no other operator can take, and grows beyond
//! it while the query's pool permits, and while the sorts of all queries together are within their share.

use std::fmt;
use std::mem;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

use super::memory::QueryMemoryPool;
use super::sort_share::PlanSorts;

/// The pool grows in steps of this size.
const STEP_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct SorterPool {
    query: Arc<dyn MemoryPool>,
    /// What the pool reserved from the query's pool, beyond the part of the sort.
    more: MemoryReservation,
    sorts: Arc<PlanSorts>,
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
    /// Whether the sorter spills its batches before it receives the next one.
    must_spill: bool,
}

impl State {
    fn used_bytes(&self) -> usize {
        self.spillable_bytes + self.unspillable_bytes
    }

    /// What the pool must have when the sorter reserves `additional` bytes for batches.
    fn needed_for_batches(&self, additional: usize) -> usize {
        let used = self.used_bytes().saturating_add(additional);
        // An eighth in reserve: sizes before sorting are estimates.
        used.saturating_add(used / 8).saturating_add(self.merge_bytes)
    }

    fn reservation_mut(&mut self, reservation: &MemoryReservation) -> &mut usize {
        if reservation.consumer().can_spill() { &mut self.spillable_bytes } else { &mut self.unspillable_bytes }
    }
}

impl SorterPool {
    pub(crate) fn new(query: Arc<dyn MemoryPool>, sorts: Arc<PlanSorts>) -> Self {
        let more = MemoryConsumer::new("sort").register(&query);
        Self { query, more, sorts, state: Mutex::default() }
    }

    fn query_pool(&self) -> Result<&QueryMemoryPool> {
        self.query.downcast_ref().ok_or_else(|| internal_datafusion_err!("a sort runs outside of a query"))
    }

    /// What the sort reserves if no other query sorts.
    pub(crate) fn sort_bytes_max(&self) -> Result<usize> {
        Ok(self.query_pool()?.sort_bytes_max(self.sorts.sorters()))
    }

    /// Gives the pool its part of the memory that all sorts of the query reserve, at least `bytes_min` if the limits
    /// permit, and returns its size. Waits for a limited time while other queries hold the memory.
    pub(crate) async fn reserve(&self, bytes_min: usize) -> Result<usize> {
        let query = self.query_pool()?;
        query.limit_sorters(self.sorts.sorter_bytes(self.sort_bytes_max()?, bytes_min));
        let bytes = query.reserve_for_sorts(self.sorts.sorters()).await?;
        self.state.lock().own_bytes = bytes;
        Ok(bytes)
    }

    /// Enlarges the pool of a small sort to `bytes`, without waiting, even while others wait. Returns whether it succeeded.
    pub(crate) fn try_enlarge(&self, bytes: usize) -> bool {
        let state = self.state.lock();
        let capacity = state.own_bytes + self.more.size();
        bytes <= capacity || self.try_grow_more((bytes - capacity).next_multiple_of(STEP_BYTES)).is_ok()
    }

    fn try_grow_by(&self, bytes: usize) -> Result<()> {
        let bytes = bytes.next_multiple_of(STEP_BYTES);
        self.query_pool()?.check_more_for_sort(bytes)?;
        self.try_grow_more(bytes)
    }

    fn try_grow_more(&self, bytes: usize) -> Result<()> {
        self.more.try_grow(bytes)?;
        self.sorts.share().grow(bytes);
        Ok(())
    }

    /// Counts a batch that the sorter receives next: `bytes`, and what merging it needs in addition. If that is more than
    /// the sorts of all queries may have together, the sorter spills first.
    pub(crate) fn announce_batch(&self, bytes: usize, merge_bytes: usize) {
        let mut state = self.state.lock();
        state.merge_bytes += merge_bytes;
        let lacking = state.needed_for_batches(bytes).saturating_sub(state.own_bytes + self.more.size());
        state.must_spill = lacking > 0 && !self.sorts.share().has_room(lacking);
    }

    /// Returns memory to the query. Call it only while the sorter neither sorts nor begins to merge: a sorted batch
    /// is not counted while it is passed to the merge.
    pub(crate) fn release_excess(&self) {
        let state = self.state.lock();
        let needed = 2 * (state.used_bytes() + state.merge_bytes) + STEP_BYTES;
        let excess = (state.own_bytes + self.more.size()).saturating_sub(needed).min(self.more.size());
        if excess >= 4 * STEP_BYTES {
            self.more.shrink(excess);
            self.sorts.share().shrink(excess);
        }
    }
}

impl Drop for SorterPool {
    fn drop(&mut self) {
        self.sorts.share().shrink(self.more.size());
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
        let can_spill = reservation.consumer().can_spill();
        if can_spill && mem::take(&mut state.must_spill) && state.spillable_bytes > 0 {
            let reason = "the sorter spills, because other queries sort".to_owned();
            return Err(DataFusionError::ResourcesExhausted(reason));
        }
        let needed = match can_spill {
            true => state.needed_for_batches(additional),
            false => state.used_bytes().saturating_add(additional),
        };
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
