//! Limits how often a repeated failure is logged.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The least time between two log lines for the same failure.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Counts failures and decides when the next one is logged.
#[derive(Default)]
pub(crate) struct LogThrottle {
    state: Mutex<ThrottleState>,
}

#[derive(Default)]
struct ThrottleState {
    last_logged: Option<Instant>,
    suppressed: u64,
}

impl LogThrottle {
    /// Counts a failure. Returns the number since the last log line, or `None` within the log interval.
    pub(crate) fn record_occurrence(&self) -> Option<u64> {
        let mut state = self.state.lock();
        state.suppressed += 1;
        if state.last_logged.is_some_and(|at| at.elapsed() < LOG_INTERVAL) {
            return None;
        }
        state.last_logged = Some(Instant::now());
        Some(std::mem::take(&mut state.suppressed))
    }

    /// Resets the count after a success. Returns whether a failure was logged; the next one is logged at once.
    pub(crate) fn clear(&self) -> bool {
        let mut state = self.state.lock();
        state.suppressed = 0;
        state.last_logged.take().is_some()
    }
}
