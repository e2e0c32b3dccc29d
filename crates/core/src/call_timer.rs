//! How long a call may still run: a clock that stands still while somebody is asked.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Stands for "no deadline": a longer timeout cannot be added to every instant.
const TIMEOUT_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The clock of one call.
#[derive(Debug)]
pub(crate) struct CallTimer {
    state: Mutex<TimerState>,
    /// Told when the deadline moves, which may be towards us.
    deadline_changed: Notify,
}

#[derive(Debug)]
struct TimerState {
    /// When the call is ended; while the clock stands still, when the answer must have come.
    deadline: Instant,
    /// What the call has left when the clock goes on.
    remaining: Duration,
    /// Questions that are open.
    open_pauses: usize,
}

impl CallTimer {
    /// A clock that runs out after `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        let reading = TimerState { deadline: deadline_after(timeout), remaining: Duration::ZERO, open_pauses: 0 };
        Self { state: Mutex::new(reading), deadline_changed: Notify::new() }
    }

    /// When it runs out.
    pub(crate) fn deadline(&self) -> Instant {
        self.state.lock().deadline
    }

    /// Whether it stands still.
    pub(crate) fn is_paused(&self) -> bool {
        self.state.lock().open_pauses > 0
    }

    /// Lets the call run for `time` from now on at least, or from when the clock goes on.
    pub(crate) fn extend(&self, time: Duration) {
        let mut reading = self.state.lock();
        if reading.open_pauses > 0 {
            reading.remaining = reading.remaining.max(time.min(TIMEOUT_MAX));
            return;
        }
        reading.deadline = reading.deadline.max(deadline_after(time));
        self.deadline_changed.notify_one();
    }

    /// Stands still, for `input_timeout` at most.
    pub(crate) fn pause(&self, answer_within: Duration) {
        let mut reading = self.state.lock();
        if reading.open_pauses == 0 {
            reading.remaining = reading.deadline.saturating_duration_since(Instant::now());
        }
        reading.open_pauses += 1;
        reading.deadline = deadline_after(answer_within);
        self.deadline_changed.notify_one();
    }

    /// Goes on, when no other question is open.
    pub(crate) fn resume(&self) {
        let mut reading = self.state.lock();
        reading.open_pauses -= 1;
        if reading.open_pauses == 0 {
            reading.deadline = deadline_after(reading.remaining);
            self.deadline_changed.notify_one();
        }
    }

    /// Resolves when it has run out.
    pub(crate) async fn expired(&self) {
        while Instant::now() < self.deadline() {
            tokio::select! {
                () = tokio::time::sleep_until(self.deadline()) => {}
                () = self.deadline_changed.notified() => {}
            }
        }
    }
}

fn deadline_after(time: Duration) -> Instant {
    Instant::now() + time.min(TIMEOUT_MAX)
}
