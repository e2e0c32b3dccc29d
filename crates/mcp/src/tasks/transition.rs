//! How a call becomes a task: when it has said nothing for long, or when its handler says so.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Job, Reply};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::keeper::Refused;
use super::table::Tasks;
use crate::encode::Envelope;
use crate::jsonrpc::RpcError;

/// What came of a call that was to become a task.
pub(crate) enum Became {
    /// A task: the members of its `CreateTaskResult`.
    Task(String),
    /// Still itself: there is no room for a task, and the call can do without.
    Itself(Reply),
    /// Nothing: there is no room for a task, and its handler wants one.
    Nothing(RpcError),
}

/// A call that may become a task.
pub(crate) struct Transition {
    tasks: Arc<Tasks>,
    at: Instant,
    was_wished: bool,
    /// While the task is written down.
    becoming: Option<Becoming>,
}

/// A task that is written down, beside whoever waits for it: nobody who stops waiting leaves half of one behind.
struct Becoming {
    job: Arc<Job>,
    taken: JoinHandle<Result<String, Box<Refused>>>,
}

impl Transition {
    /// Of a call that becomes one of `tasks` after so long without a word.
    pub(crate) fn new(tasks: Arc<Tasks>, after: Duration) -> Self {
        Self { tasks, at: Instant::now() + after, was_wished: false, becoming: None }
    }

    /// Resolves when its handler wishes it.
    pub(crate) async fn wished(&mut self, job: &Job) {
        job.wants_to_be_task().await;
        self.was_wished = true;
    }

    /// When it is time.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Begins to make a task of the call that `reply` answers; `message` says how far it is.
    pub(crate) fn begin(&mut self, reply: Reply, envelope: Envelope, message: Option<String>) {
        let job = reply.job().clone();
        let taken = self.tasks.keepers.spawn(self.tasks.clone().take(reply, envelope, message));
        self.becoming = Some(Becoming { job, taken });
    }

    /// Waits for what comes of it; never resolves before it has begun.
    pub(crate) async fn end(&mut self) -> Became {
        let Some(becoming) = &mut self.becoming else { return std::future::pending().await };
        let taken = (&mut becoming.taken).await;
        self.becoming = None;
        match taken {
            Ok(Ok(members)) => Became::Task(members),
            Ok(Err(refused)) if self.was_wished => Became::Nothing(refused.error),
            Ok(Err(refused)) => Became::Itself(refused.reply),
            // The runtime is going down.
            Err(_) => Became::Nothing(RpcError::new(RpcError::INTERNAL_ERROR, "the server is shutting down")),
        }
    }
}

impl Drop for Transition {
    /// Of a task whose handle never left nobody hears: it ends.
    fn drop(&mut self) {
        if let Some(becoming) = &self.becoming {
            becoming.job.cancel();
        }
    }
}
