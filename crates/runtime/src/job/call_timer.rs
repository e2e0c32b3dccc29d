//! The time of a call: its start, and its remaining run time by a timer that pauses while the call waits for input.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Used for "no deadline". A longer timeout could overflow when it is added to an instant.
const TIMEOUT_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct CallTimer {
    pub(super) started_at: SystemTime,
    /// The same time by a monotonic clock.
    pub(super) started: Instant,
    state: Mutex<TimerState>,
    /// Notified when the deadline changes; it can become earlier.
    deadline_changed: Notify,
}

#[derive(Debug)]
struct TimerState {
    /// When the call ends; while the timer is paused, when the answer must have arrived.
    deadline: Instant,
    remaining: Duration,
    open_pauses: usize,
}

impl CallTimer {
    pub(crate) fn new(timeout: Duration) -> Self {
        let state = TimerState { deadline: deadline_after(timeout), remaining: Duration::ZERO, open_pauses: 0 };
        let (started_at, started) = (SystemTime::now(), Instant::now());
        Self { started_at, started, state: Mutex::new(state), deadline_changed: Notify::new() }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.state.lock().deadline
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.state.lock().open_pauses > 0
    }

    /// Extends the deadline so that the call can run for at least `time` from now, or from when the timer resumes.
    pub(crate) fn extend(&self, time: Duration) {
        let mut state = self.state.lock();
        if state.open_pauses > 0 {
            state.remaining = state.remaining.max(time.min(TIMEOUT_MAX));
            return;
        }
        state.deadline = state.deadline.max(deadline_after(time));
        self.deadline_changed.notify_one();
    }

    pub(crate) fn pause(&self, answer_within: Duration) {
        let mut state = self.state.lock();
        if state.open_pauses == 0 {
            state.remaining = state.deadline.saturating_duration_since(Instant::now());
        }
        state.open_pauses += 1;
        state.deadline = deadline_after(answer_within);
        self.deadline_changed.notify_one();
    }

    pub(crate) fn resume(&self) {
        let mut state = self.state.lock();
        state.open_pauses -= 1;
        if state.open_pauses == 0 {
            state.deadline = deadline_after(state.remaining);
            self.deadline_changed.notify_one();
        }
    }

    pub(crate) async fn expired(&self) {
        while Instant::now() < self.deadline() {
            tokio::select! {
                () = tokio::time::sleep_until(self.deadline()) => {}
                () = self.deadline_changed.notified() => {}
            }
        }
    }

    /// The error of a call that has reached its deadline.
    pub(crate) fn timeout_error(&self) -> Error {
        if self.is_paused() {
            let message = "the call requested input and received none within the time limit";
            return Error::new(ErrorKind::TimedOut, message);
        }
        let seconds = (self.deadline() - self.started).as_secs_f64();
        Error::new(ErrorKind::TimedOut, format!("the call exceeded its time limit of {seconds:.1} s"))
            .with_hint("Ask for less: filter, aggregate, or set a smaller limit.")
    }
}

fn deadline_after(time: Duration) -> Instant {
    Instant::now() + time.min(TIMEOUT_MAX)
}
