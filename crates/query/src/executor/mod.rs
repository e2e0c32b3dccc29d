//! Executes queries and writes their answers.

mod answer;
mod cache_replay;
mod delivery;
mod export;
mod run;
mod running_queries;
mod summary;

use std::sync::Arc;

use tidegate_results::ResultStore;
use tidegate_runtime::event::EventDispatcher;

use self::running_queries::RunningQueries;
use crate::usage::UsageTracker;

pub use self::delivery::compute_query_id;

/// Runs queries and writes their answers.
///
/// Memory use is bounded whatever the size of the answer: text is sent in pieces of 64 KiB, and batch mode buffers at
/// most 1 MiB; a longer answer streams from there on. Parquet is sent in row groups, of which 64 MiB are buffered.
#[derive(Debug, Clone)]
pub struct Executor {
    events: EventDispatcher,
    /// The store for rows that do not fit inline.
    store: Option<Arc<ResultStore>>,
    usage: Arc<UsageTracker>,
    running: Arc<RunningQueries>,
}

impl Executor {
    /// An executor that reports each query to `events`.
    pub fn new(events: EventDispatcher) -> Self {
        Self { events, store: None, usage: Arc::default(), running: Arc::default() }
    }

    /// Stores rows that do not fit inline in `store`.
    #[must_use]
    pub fn with_store(self, store: Option<Arc<ResultStore>>) -> Self {
        Self { store, ..self }
    }

    /// Counts the used names in `usage_tracker`.
    #[must_use]
    pub fn with_usage(self, usage_tracker: Arc<UsageTracker>) -> Self {
        Self { usage: usage_tracker, ..self }
    }

    /// The usage of names by caller.
    pub fn usage(&self) -> &Arc<UsageTracker> {
        &self.usage
    }

    /// The store for rows that do not fit inline.
    pub fn store(&self) -> Option<&Arc<ResultStore>> {
        self.store.as_ref()
    }
}
