//! How long a call lives: until its handler has ended. It ends before when it is cancelled, by its client, by others, or at
//! its deadline. It continues after its request has been answered in the background, or as a task.
//!
//! Its remaining run time is measured by a timer that pauses while the call waits for input.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Job;

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

    async fn expired(&self) {
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

#[derive(Debug)]
pub(crate) struct CallLifetime {
    pub(crate) cancellation: CancellationToken,
    /// Fires when the adapter cancels the call; ignored once its request has been answered.
    client_cancellation: CancellationToken,
    is_in_background: AtomicBool,
    /// Fires when the handler requests that the call continues as a task.
    pub(super) task_requested: CancellationToken,
    /// Fires when the call continues as a task. From then on, only the list of jobs can end it.
    pub(super) task_started: CancellationToken,
    timeout_error: OnceLock<Error>,
}

impl CallLifetime {
    pub(super) fn new(client_cancellation: CancellationToken) -> Self {
        Self {
            cancellation: CancellationToken::new(),
            client_cancellation,
            is_in_background: AtomicBool::new(false),
            task_requested: CancellationToken::new(),
            task_started: CancellationToken::new(),
            timeout_error: OnceLock::new(),
        }
    }

    /// Whether the answer has ended while the work continues.
    pub(crate) fn is_in_background(&self) -> bool {
        self.is_in_background.load(Ordering::Acquire)
    }

    pub(crate) fn set_in_background(&self, is_in_background: bool) {
        self.is_in_background.store(is_in_background, Ordering::Release);
    }

    /// Cancels the call when its adapter cancels it, unless its request has been answered by then; never resolves.
    pub(crate) async fn watch_client(&self) {
        self.client_cancellation.cancelled().await;
        if self.is_cancelled() {
            self.cancellation.cancel();
        }
        std::future::pending::<()>().await;
    }

    fn is_cancelled(&self) -> bool {
        let is_answered = || self.is_in_background() || self.task_started.is_cancelled();
        self.cancellation.is_cancelled() || (self.client_cancellation.is_cancelled() && !is_answered())
    }

    /// Set if the deadline has cancelled the call.
    pub(crate) fn timeout_error(&self) -> Option<&Error> {
        self.timeout_error.get()
    }
}

impl Job {
    /// Resolves when the job is cancelled, by its caller, an operator or its deadline.
    pub async fn cancelled(&self) {
        self.lifetime.cancellation.cancelled().await;
    }

    /// Whether the job is cancelled. Its caller may have cancelled it before [`Self::cancelled`] resolves.
    pub fn is_cancelled(&self) -> bool {
        self.lifetime.is_cancelled()
    }

    /// A token that fires when the job is cancelled, for work that outlives a borrow of the job.
    pub fn cancellation(&self) -> CancellationToken {
        self.lifetime.cancellation.clone()
    }

    /// Cancels the job.
    pub fn cancel(&self) {
        self.lifetime.cancellation.cancel();
    }

    /// Cancels the job at its deadline; never resolves.
    pub(crate) async fn watch_deadline(&self) {
        // When the call on whose behalf this one is made becomes a task, both have the time limit of tasks.
        let extend_with_task = async {
            if let Some(job) = self.ancestors().last().filter(|job| !std::ptr::eq(*job, self)) {
                job.lifetime.task_started.cancelled().await;
                self.extend(self.limits().task_timeout);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.timer.expired() => {}
            () = extend_with_task => {}
        }
        if !self.is_cancelled() {
            let _ = self.lifetime.timeout_error.set(self.timer.timeout_error());
            self.cancel();
        }
        std::future::pending::<()>().await;
    }
}
