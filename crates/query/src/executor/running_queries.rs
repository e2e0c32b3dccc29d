//! Which answers are worth storing for a repetition. Storing one takes some milliseconds, and on a busy server the time of
//! a query includes that of the others.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_results::CacheKey;

/// A query that takes less time is fast.
const SLOW_AFTER: Duration = Duration::from_millis(20);
const FAST_QUERIES_MAX: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

static PROCESSORS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// The queries that run now.
#[derive(Debug)]
pub(super) struct RunningQueries {
    running: AtomicUsize,
    /// The last queries that were slow only because of others.
    fast: Mutex<LruCache<CacheKey, ()>>,
}

/// A query that runs until this is dropped.
#[derive(Debug)]
pub(super) struct RunningQuery {
    queries: Arc<RunningQueries>,
    started: Instant,
}

impl Default for RunningQueries {
    fn default() -> Self {
        Self { running: AtomicUsize::new(0), fast: Mutex::new(LruCache::new(FAST_QUERIES_MAX)) }
    }
}

impl RunningQueries {
    pub(super) fn enter(self: &Arc<Self>) -> RunningQuery {
        self.running.fetch_add(1, Ordering::Relaxed);
        RunningQuery { queries: self.clone(), started: Instant::now() }
    }
}

impl RunningQuery {
    /// Whether the answer of `key` is worth storing: the query is slow by itself, or slow because of others and repeated.
    pub(super) fn is_worth_storing(&self, key: CacheKey) -> bool {
        let elapsed = self.started.elapsed();
        let RunningQueries { running, fast } = &*self.queries;
        let own_time = own_time(elapsed, running.load(Ordering::Relaxed), *PROCESSORS);
        own_time >= SLOW_AFTER || (elapsed >= SLOW_AFTER && fast.lock().put(key, ()).is_some())
    }
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        self.queries.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// About the time that a query would have taken alone, if all that run now share the processors.
fn own_time(elapsed: Duration, running: usize, processors: usize) -> Duration {
    let share = u32::try_from(running.div_ceil(processors)).unwrap_or(u32::MAX);
    elapsed / share.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_share_the_processors() {
        let time = |running| own_time(Duration::from_millis(100), running, 2).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 50].map(time), [100, 100, 100, 50, 50, 4]);
    }

    #[test]
    fn slow_queries_and_repeated_ones_are_worth_it() {
        let queries = Arc::new(RunningQueries::default());
        let query_since = |elapsed: Duration| {
            let mut query = queries.enter();
            query.started -= elapsed;
            query
        };
        // Nothing has elapsed since a time in the future, however slow the machine is.
        let fast_query = || {
            let mut query = queries.enter();
            query.started += Duration::from_secs(3_600);
            query
        };
        let [first, second] = ["a", "b"].map(|part| CacheKey::from_parts(&[part]));
        assert!(!fast_query().is_worth_storing(first));
        assert!(query_since(Duration::from_millis(50)).is_worth_storing(first));
        // Then each processor has a thousand other queries.
        let others: Vec<RunningQuery> = (0..1_000 * *PROCESSORS).map(|_| queries.enter()).collect();
        let repeated = query_since(Duration::from_millis(50));
        assert_eq!([first, second, first].map(|key| repeated.is_worth_storing(key)), [false, false, true]);
        assert!(!fast_query().is_worth_storing(first), "fast in any case");
        drop((others, repeated));
        assert_eq!(queries.running.load(Ordering::Relaxed), 0);
    }
}
