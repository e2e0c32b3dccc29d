//! How long a call may still run: a clock that stands still while somebody is asked.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Stands for "no deadline": a longer timeout cannot be added to every instant.
const TIMEOUT_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The clock of one call.
#[derive(Debug)]
pub(crate) struct Clock {
    reading: Mutex<Reading>,
    /// Told when the deadline moves, which may be towards us.
    moved: Notify,
}

#[derive(Debug)]
struct Reading {
    /// When the call is ended; while the clock stands still, when the answer must have come.
    deadline: Instant,
    /// What the call has left when the clock goes on.
    left: Duration,
    /// Questions that are open.
    pauses: usize,
}

impl Clock {
    /// A clock that runs out after `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        let reading = Reading { deadline: after(timeout), left: Duration::ZERO, pauses: 0 };
        Self { reading: Mutex::new(reading), moved: Notify::new() }
    }

    /// When it runs out.
    pub(crate) fn deadline(&self) -> Instant {
        self.reading.lock().deadline
    }

    /// Whether it stands still.
    pub(crate) fn is_paused(&self) -> bool {
        self.reading.lock().pauses > 0
    }

    /// Lets the call run for `time` from now on at least, or from when the clock goes on.
    pub(crate) fn extend(&self, time: Duration) {
        let mut reading = self.reading.lock();
        if reading.pauses > 0 {
            reading.left = reading.left.max(time.min(TIMEOUT_MAX));
            return;
        }
        reading.deadline = reading.deadline.max(after(time));
        self.moved.notify_one();
    }

    /// Stands still, for `answer_within` at most.
    pub(crate) fn pause(&self, answer_within: Duration) {
        let mut reading = self.reading.lock();
        if reading.pauses == 0 {
            reading.left = reading.deadline.saturating_duration_since(Instant::now());
        }
        reading.pauses += 1;
        reading.deadline = after(answer_within);
        self.moved.notify_one();
    }

    /// Goes on, when no other question is open.
    pub(crate) fn resume(&self) {
        let mut reading = self.reading.lock();
        reading.pauses -= 1;
        if reading.pauses == 0 {
            reading.deadline = after(reading.left);
            self.moved.notify_one();
        }
    }

    /// Resolves when it has run out.
    pub(crate) async fn run_out(&self) {
        while Instant::now() < self.deadline() {
            tokio::select! {
                () = tokio::time::sleep_until(self.deadline()) => {}
                () = self.moved.notified() => {}
            }
        }
    }
}

fn after(time: Duration) -> Instant {
    Instant::now() + time.min(TIMEOUT_MAX)
}
