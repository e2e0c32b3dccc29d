//! The transition of a call to a task, after a time without output or when its handler requests it, and from then on its
//! answer, read until the call has ended.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use serde_json::value::RawValue;
use tidegate_core::{CallerIdentity, Error, ErrorKind};
use tidegate_runtime::{AnswerMeta, Job, Reply, ReplyNotification, ReplyPart};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

use super::record::{TaskId, TaskMetadata, TaskResult, TaskStatus};
use super::store::{TaskEntry, TaskStore};
use crate::encode::{CallToolEncoder, ReplyEncoder, ResponseEnvelope, ResultType};
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

/// A call that did not become a task: its reply, which continues, and the reason.
struct TaskRefusal {
    pub(crate) reply: Reply,
    pub(crate) error: RpcError,
}

impl TaskStore {
    /// Returns the members of `CreateTaskResult`. From then on, the task reads the reply. `message` is the progress.
    async fn create_task(
        self: Arc<Self>,
        reply: Reply,
        envelope: ResponseEnvelope,
        message: Option<String>,
    ) -> Result<String, Box<TaskRefusal>> {
        let job = reply.job().clone();
        let now = Utc::now();
        let metadata = TaskMetadata {
            id: TaskId(Uuid::new_v4()),
            owner: CallerIdentity::from_caller(job.caller()),
            roles: job.principal().roles.clone(),
            tool: job.target().name().to_owned(),
            databases: job.databases(),
            row_policies: job.row_policy_fingerprint(),
            bytes: 0,
            status: TaskStatus::Working,
            message,
            created: now,
            updated: now,
            time_to_live_ms: self.limits.time_to_live.as_millis() as u64,
        };
        let (id, members) = (metadata.id, metadata.members());
        if let Err(error) = self.insert(TaskEntry::new(metadata, Some(job.clone()))).await {
            return Err(Box::new(TaskRefusal { reply, error }));
        }
        job.continue_as_task();
        let store =
            TaskRecorder { id, tasks: self.clone(), reply, encoder: nested_encoder(&envelope), result: Vec::new() };
        self.recorders.spawn(store.record());
        Ok(members)
    }
}

/// The result of a task is part of another result.
fn nested_encoder(envelope: &ResponseEnvelope) -> CallToolEncoder {
    CallToolEncoder::new(
        ResponseEnvelope { is_nested: true, ..envelope.clone() }.with_result_type(ResultType::Complete),
    )
}

struct TaskRecorder {
    id: TaskId,
    tasks: Arc<TaskStore>,
    reply: Reply,
    encoder: CallToolEncoder,
    result: Vec<u8>,
}

impl TaskRecorder {
    async fn record(mut self) {
        while let Some(part) = self.reply.next().await {
            match part {
                ReplyPart::InputRequest(pending_input_request) => {
                    self.tasks.with_entry(self.id, |entry| entry.add_input_request(pending_input_request));
                }
                ReplyPart::Notification(notice) => self.on_notification(&notice),
                ReplyPart::End(end) => return self.end(end).await,
                part => {
                    let (bytes, _) = self.encoder.encode(part);
                    self.result.extend_from_slice(&bytes);
                    if self.result.len() > self.tasks.limits.result_bytes_max {
                        return self.complete_too_long().await;
                    }
                }
            }
        }
    }

    fn on_notification(&self, notice: &ReplyNotification) {
        if let ReplyNotification::Progress { message: Some(message), .. } = notice {
            self.tasks.with_entry(self.id, |entry| entry.set_message(message.clone()));
        }
    }

    async fn end(mut self, end: Result<AnswerMeta, Error>) {
        let (id, tasks) = (self.id, self.tasks.clone());
        match &end {
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                tasks.end(id, TaskStatus::Cancelled, Some(error.to_string()), TaskResult::default()).await;
            }
            // Faults of the server, and problems that the client must correct, are errors of the task, not of the tool.
            Err(error) if is_task_error(error) => {
                let error = RpcError::from_error(error, None, self.encoder.envelope.dialect);
                let result = TaskResult { result: None, error: error.to_raw() };
                tasks.end(id, TaskStatus::Failed, Some(error.message), result).await;
            }
            // The call ended in order to run again just before it became a task, and a task does not run again.
            Err(error) if error.kind() == ErrorKind::InputRequired => {
                let error = Error::new(ErrorKind::Unavailable, "the call requested input while it became a task")
                    .with_hint("Call again.");
                self.result = CallToolEncoder::encode_failure(self.encoder.envelope.clone(), &error).to_vec();
                self.complete().await;
            }
            _ => {
                let (last, _) = self.encoder.encode(ReplyPart::End(end));
                self.result.extend_from_slice(&last);
                // Structured content is written in the last piece only.
                if self.result.len() > tasks.limits.result_bytes_max {
                    return self.complete_too_long().await;
                }
                self.complete().await;
            }
        }
    }

    /// Only entries without a budget answer so much inline.
    async fn complete_too_long(mut self) {
        let max = self.tasks.limits.result_bytes_max;
        let error = Error::new(ErrorKind::TooLarge, format!("the result is longer than {max} bytes"))
            .with_hint("Request less, or use delivery: \"blocks\".");
        self.result = CallToolEncoder::encode_failure(self.encoder.envelope.clone(), &error).to_vec();
        self.complete().await;
    }

    async fn complete(self) {
        let result = String::from_utf8(self.result).ok().and_then(|text| RawValue::from_string(text).ok());
        self.tasks.end(self.id, TaskStatus::Completed, None, TaskResult { result, error: None }).await;
    }
}

fn is_task_error(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Internal | ErrorKind::MissingClientCapability | ErrorKind::Unauthenticated)
        || !error.scopes().is_empty()
        || error.protocol_error().is_some()
}
