//! How a call becomes a task: when it has said nothing for long, or when its handler says so.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Job, Reply};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::recorder::TaskRefusal;
use super::store::TaskStore;
use crate::encode::ResponseEnvelope;
use crate::jsonrpc::RpcError;

/// What came of a call that was to become a task.
pub(crate) enum TransitionOutcome {
    /// A task: the members of its `CreateTaskResult`.
    Task(String),
    /// Still itself: there is no room for a task, and the call can do without.
    StillCall(Reply),
    /// Nothing: there is no room for a task, and its handler wants one.
    Failed(RpcError),
}

/// A call that may become a task.
pub(crate) struct TaskTransition {
    tasks: Arc<TaskStore>,
    deadline: Instant,
    was_requested: bool,
    /// While the task is written down.
    pending: Option<PendingTask>,
}

/// A task that is written down, beside whoever waits for it: nobody who stops waiting leaves half of one behind.
struct PendingTask {
    job: Arc<Job>,
    creation: JoinHandle<Result<String, Box<TaskRefusal>>>,
}

impl TaskTransition {
    /// Of a call that becomes one of `tasks` after so long without a word.
    pub(crate) fn new(tasks: Arc<TaskStore>, after: Duration) -> Self {
        Self { tasks, deadline: Instant::now() + after, was_requested: false, pending: None }
    }

    /// Resolves when its handler wishes it.
    pub(crate) async fn requested(&mut self, job: &Job) {
        job.task_requested().await;
        self.was_requested = true;
    }

    /// When it is time.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Begins to make a task of the call that `reply` answers; `message` says how far it is.
    pub(crate) fn begin(&mut self, reply: Reply, envelope: ResponseEnvelope, message: Option<String>) {
        let job = reply.job().clone();
        let taken = self.tasks.recorders.spawn(self.tasks.clone().create_task(reply, envelope, message));
        self.pending = Some(PendingTask { job, creation: taken });
    }

    /// Waits for what comes of it; never resolves before it has begun.
    pub(crate) async fn finish(&mut self) -> TransitionOutcome {
        let Some(becoming) = &mut self.pending else { return std::future::pending().await };
        let taken = (&mut becoming.creation).await;
        self.pending = None;
        match taken {
            Ok(Ok(members)) => TransitionOutcome::Task(members),
            Ok(Err(refused)) if self.was_requested => TransitionOutcome::Failed(refused.error),
            Ok(Err(refused)) => TransitionOutcome::StillCall(refused.reply),
            // The runtime is going down.
            Err(_) => TransitionOutcome::Failed(RpcError::new(RpcError::INTERNAL_ERROR, "the server is shutting down")),
        }
    }
}

impl Drop for TaskTransition {
    /// Of a task whose handle never left nobody hears: it ends.
    fn drop(&mut self) {
        if let Some(becoming) = &self.pending {
            becoming.job.cancel();
        }
    }
}
