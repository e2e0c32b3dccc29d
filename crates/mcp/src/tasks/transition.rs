//! The transition of a call to a task: after a time without output, or when its handler requests it.

use std::sync::Arc;
use std::time::Duration;

use tidegate_runtime::{Job, Reply};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::recorder::TaskRefusal;
use super::store::TaskStore;
use crate::encode::ResponseEnvelope;
use crate::jsonrpc::RpcError;

pub(crate) enum TransitionOutcome {
    /// A task: the members of its `CreateTaskResult`.
    Task(String),
    /// The call continues: there is no room for a task, and it can do without.
    ContinuesAsCall(Reply),
    /// The call failed: there is no room for a task, and its handler requires one.
    Failed(RpcError),
}

pub(crate) struct TaskTransition {
    tasks: Arc<TaskStore>,
    deadline: Instant,
    was_requested: bool,
    pending: Option<PendingTask>,
}

/// A task that is being stored in a task of its own: dropping the future that waits leaves no partial task.
struct PendingTask {
    job: Arc<Job>,
    creation: JoinHandle<Result<String, Box<TaskRefusal>>>,
}

impl TaskTransition {
    /// A call that becomes one of `tasks` after this time without output.
    pub(crate) fn new(tasks: Arc<TaskStore>, after: Duration) -> Self {
        Self { tasks, deadline: Instant::now() + after, was_requested: false, pending: None }
    }

    pub(crate) async fn requested(&mut self, job: &Job) {
        job.task_requested().await;
        self.was_requested = true;
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Starts to create a task from the call of `reply`; `message` is the progress so far.
    pub(crate) fn begin(&mut self, reply: Reply, envelope: ResponseEnvelope, message: Option<String>) {
        let job = reply.job().clone();
        let creation = self.tasks.recorders.spawn(self.tasks.clone().create_task(reply, envelope, message));
        self.pending = Some(PendingTask { job, creation });
    }

    /// Waits for the outcome; never resolves before the transition has begun.
    pub(crate) async fn finish(&mut self) -> TransitionOutcome {
        let Some(pending) = &mut self.pending else { return std::future::pending().await };
        let created = (&mut pending.creation).await;
        self.pending = None;
        match created {
            Ok(Ok(members)) => TransitionOutcome::Task(members),
            Ok(Err(refused)) if self.was_requested => TransitionOutcome::Failed(refused.error),
            Ok(Err(refused)) => TransitionOutcome::ContinuesAsCall(refused.reply),
            // The runtime is shutting down.
            Err(_) => TransitionOutcome::Failed(RpcError::new(RpcError::INTERNAL_ERROR, "the server is shutting down")),
        }
    }
}

impl Drop for TaskTransition {
    /// A task whose handle was never sent is cancelled.
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            pending.job.cancel();
        }
    }
}
