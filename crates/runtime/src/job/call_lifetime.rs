//! How long a call lives: until its handler has ended. It ends before when it is cancelled, by its client, by others, or at
//! its deadline. It continues after its request has been answered in the background, or as a task.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::Error;
use tokio_util::sync::CancellationToken;

use super::Job;

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
