//! Tasks: calls whose request was answered with a handle, and whose result is fetched later. Here are their methods and the
//! notifications for one stream.
//!
//! A task is a job with a longer life. It is stored before its handle is sent, so a restart finds it. Its result stays
//! on disk until it expires, and only its metadata stays in memory.
//!
//! [Tasks extension 2026-07-28](https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md)

mod record;
mod recorder;
mod store;

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::{Caller, ClientCapabilities, Error};
use tidegate_runtime::Registry;

use crate::jsonrpc::{RequestId, ResponseMessage, RpcError};
use crate::messages;
use crate::service::{InFlightRequest, McpService, bounded_name};
use record::TaskId;
use store::TaskListener;

pub use record::TaskFolder;
pub(crate) use recorder::{TaskTransition, TransitionOutcome};
pub(crate) use store::{TaskLimits, TaskStore};

const ANSWERS_MAX: usize = 100;

#[derive(Deserialize)]
struct TaskParams {
    #[serde(rename = "taskId", deserialize_with = "bounded_name")]
    task_id: String,
}

#[derive(Deserialize)]
struct UpdateParams {
    #[serde(rename = "inputResponses")]
    responses: Map<String, Value>,
}

impl McpService {
    pub(crate) async fn get_task(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let id = self.find_task(request)?;
        let members = self.tasks.encode_detailed(id).await?;
        Ok(request.envelope.respond(&members, None))
    }

    pub(crate) fn update_task(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let id = self.find_task(request)?;
        let params: UpdateParams = request.rpc.params()?;
        if params.responses.len() > ANSWERS_MAX {
            return Err(RpcError::invalid_params(format!("inputResponses holds more than {ANSWERS_MAX} answers")));
        }
        for (key, result) in &params.responses {
            let answered = self.tasks.with_entry(id, |entry| entry.accept_answer(key, result));
            answered.unwrap_or(Ok(())).map_err(|problem| {
                RpcError::invalid_params(format!("inputResponses[{key:?}] does not answer its request: {problem}"))
            })?;
        }
        Ok(request.envelope.respond("", None))
    }

    /// Cancels a task. An ended task does not change.
    pub(crate) fn cancel_task(&self, request: &InFlightRequest<'_>) -> Result<ResponseMessage, RpcError> {
        let id = self.find_task(request)?;
        if let Some(job) = self.tasks.with_entry(id, |entry| entry.job.clone()).flatten() {
            job.cancel();
        }
        Ok(request.envelope.respond("", None))
    }

    pub(crate) fn require_tasks_extension(&self, request: &InFlightRequest<'_>) -> Result<(), RpcError> {
        if request.rpc.meta.client_capabilities.tasks {
            return Ok(());
        }
        let error =
            Error::missing_client_capability(ClientCapabilities { tasks: true, ..ClientCapabilities::default() });
        Err(request.to_rpc_error(&error))
    }

    fn find_task(&self, request: &InFlightRequest<'_>) -> Result<TaskId, RpcError> {
        self.require_tasks_extension(request)?;
        let params: TaskParams = request.rpc.params()?;
        self.tasks.find(&params.task_id, self.registry(), request.caller())
    }
}

pub(crate) struct TaskFeed {
    tasks: Arc<TaskStore>,
    registry: Arc<Registry>,
    listener: Arc<TaskListener>,
    stream: RequestId,
    ready_notification: Option<Bytes>,
}

impl TaskStore {
    /// A feed for those tasks of `texts` that `caller` owns, with their ids. It starts with the state of each task.
    pub(crate) fn listen(
        self: &Arc<Self>,
        texts: Vec<String>,
        registry: &Arc<Registry>,
        caller: &Caller,
        stream: &RequestId,
    ) -> (TaskFeed, Vec<String>) {
        let listener = Arc::new(TaskListener::default());
        let mut accepted = Vec::new();
        for text in texts {
            let Ok(id) = self.find(&text, registry, caller) else { continue };
            self.with_entry(id, |entry| entry.listeners.push(Arc::downgrade(&listener)));
            listener.mark_changed(id);
            accepted.push(text);
        }
        let (tasks, registry, stream) = (self.clone(), registry.clone(), stream.clone());
        (TaskFeed { tasks, registry, listener, stream, ready_notification: None }, accepted)
    }
}

impl TaskFeed {
    pub(crate) async fn changed(&self) {
        while self.ready_notification.is_none() && self.listener.next_changed().is_none() {
            self.listener.woken.notified().await;
        }
    }

    /// Prepares the next notification for `caller`, the current listener. Tasks that it no longer owns are skipped.
    pub(crate) async fn update_caller(&mut self, caller: &Caller) {
        while self.ready_notification.is_none()
            && let Some((id, times)) = self.listener.next_changed()
        {
            self.ready_notification = self.status_notification(id, caller).await.ok();
            // Only now, so that dropping the future loses nothing.
            self.listener.clear_delivered(id, times);
        }
    }

    pub(crate) fn next_message(&mut self) -> Option<Bytes> {
        self.ready_notification.take()
    }

    async fn status_notification(&self, id: TaskId, caller: &Caller) -> Result<Bytes, RpcError> {
        let id = self.tasks.find(&id.to_string(), &self.registry, caller)?;
        Ok(messages::encode_task_status(&self.tasks.encode_detailed(id).await?, &self.stream))
    }
}
