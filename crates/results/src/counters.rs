//! Metrics of the result store.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::{StoredResultStats, StoredResults};

use crate::quota::has_ended;
use crate::result_store::ResultStore;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct StoreCounters {
    blocks_written: AtomicU64,
    expired: AtomicU64,
    evicted: AtomicU64,
}

impl StoreCounters {
    pub(crate) fn count_block(&self) {
        self.blocks_written.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_expired(&self, results: usize) {
        self.expired.fetch_add(results as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_evicted(&self, results: usize) {
        self.evicted.fetch_add(results as u64, Ordering::Relaxed);
    }
}

impl StoredResults for ResultStore {
    fn stats(&self) -> StoredResultStats {
        let results = self.all();
        StoredResultStats {
            results: results.len() as u64,
            bytes: results.iter().map(|result| result.occupied_bytes()).sum(),
            running: results.iter().filter(|result| !has_ended(result)).count() as u64,
            blocks_written: self.counts.blocks_written.load(Ordering::Relaxed),
            expired: self.counts.expired.load(Ordering::Relaxed),
            evicted: self.counts.evicted.load(Ordering::Relaxed),
        }
    }
}
