//! The memory that the sorts of several queries share.
//!
//! A query that sorts alone uses what the limits permit, and spills beyond that. If each of fifty queries did, none of
//! them would come near a limit, and together they would hold gigabytes. So if several queries sort, each has a part
//! that is small but enough to sort and to merge, and they grow beyond their parts only while all of them together are
//! within a share of the node. They spill instead.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

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
