//! Things that may go wrong with every request and are told now and then.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often the same is told.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Whether it is time to tell something again.
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
    /// How often it happened since it was told last, this time included; none if it was told a moment ago.
    pub(crate) fn record_occurrence(&self) -> Option<u64> {
        let mut message = self.state.lock();
        message.suppressed += 1;
        if message.last_logged.is_some_and(|at| at.elapsed() < LOG_INTERVAL) {
            return None;
        }
        message.last_logged = Some(Instant::now());
        Some(std::mem::take(&mut message.suppressed))
    }

    /// It went well again: says whether anybody was told of the contrary, and what comes next is told at once.
    pub(crate) fn clear(&self) -> bool {
        let mut message = self.state.lock();
        message.suppressed = 0;
        message.last_logged.take().is_some()
    }
}
