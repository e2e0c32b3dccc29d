//! What each query may use while many run at the same time.
//!
//! Each partition of a query has batches, pages and hash tables of its own, so that the memory of many queries is a
//! multiple of their partitions and batches. Few queries have all partitions and whole batches. The queries that begin
//! while many run have fewer and shorter ones, which costs no time, because the others occupy the processors.

use std::ptr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::decode_budget::ReaderPause;

/// So many queries for each thread run as one alone would.
const QUERIES_PER_THREAD: usize = 4;

/// The queries that are planned or run.
#[derive(Debug)]
pub(crate) struct QueryLoad {
    threads: usize,
    readers: Mutex<Vec<Weak<ReaderPause>>>,
}

/// The part of the node for a query that begins now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadShare {
    threads: usize,
    queries: usize,
}

impl QueryLoad {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), readers: Mutex::default() }
    }

    /// Counts the query of `reader` until it ends. Queries whose readers pause do not count.
    pub(crate) fn add(&self, reader: &Arc<ReaderPause>) -> LoadShare {
        let mut readers = self.readers.lock();
        readers.retain(|other| other.strong_count() > 0);
        // A query that is planned again counts once.
        if !readers.iter().any(|other| ptr::eq(Weak::as_ptr(other), Arc::as_ptr(reader))) {
            readers.push(Arc::downgrade(reader));
        }
        let queries = readers.iter().filter_map(Weak::upgrade).filter(|reader| !reader.is_long()).count();
        LoadShare { threads: self.threads, queries }
    }
}

impl LoadShare {
    /// The part of `all`, which is at least `least`.
    pub(crate) fn of(self, all: usize, least: usize) -> usize {
        let part = all.saturating_mul(QUERIES_PER_THREAD * self.threads) / self.queries.max(1);
        part.clamp(least.min(all), all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_falls_with_the_number_of_queries() {
        let load = QueryLoad::new(2);
        let mut readers: Vec<Arc<ReaderPause>> = Vec::new();
        let mut shares = Vec::new();
        for _ in 0..50 {
            let reader = Arc::default();
            let share = load.add(&reader);
            shares.push((share.of(2, 1), share.of(8_192, 2_048)));
            readers.push(reader);
        }
        assert_eq!(shares[..8], [(2, 8_192); 8]);
        assert_eq!(shares[15], (1, 4_096));
        assert_eq!(shares[49], (1, 2_048));
        assert!(shares.is_sorted_by(|before, after| before >= after));
        assert_eq!(load.add(&readers[0]).of(8_192, 1), 8_192 * 8 / 50, "a query counts once");
        readers.truncate(3);
        assert_eq!(load.add(&readers[0]).of(8_192, 1), 8_192);
    }
}
