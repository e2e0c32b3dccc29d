//! How many queries run at once: the time of each includes that of the others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

static PROCESSORS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// Counts the queries that run now.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningQueries(Arc<AtomicUsize>);

/// A query that runs until this is dropped.
#[derive(Debug)]
pub(super) struct RunningQuery {
    queries: RunningQueries,
    started: Instant,
}

impl RunningQueries {
    pub(super) fn enter(&self) -> RunningQuery {
        self.0.fetch_add(1, Ordering::Relaxed);
        RunningQuery { queries: self.clone(), started: Instant::now() }
    }
}

impl RunningQuery {
    /// About the time that the query would have taken alone, if all that run now share the processors.
    pub(super) fn own_time(&self) -> Duration {
        let running = self.queries.0.load(Ordering::Relaxed);
        own_time(self.started.elapsed(), running, *PROCESSORS)
    }
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        self.queries.0.fetch_sub(1, Ordering::Relaxed);
    }
}

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
    fn a_query_runs_until_it_is_dropped() {
        let queries = RunningQueries::default();
        let (first, second) = (queries.enter(), queries.enter());
        assert_eq!(queries.0.load(Ordering::Relaxed), 2);
        drop((first, second));
        assert_eq!(queries.0.load(Ordering::Relaxed), 0);
    }
}
