//! The methods `tasks/get`, `tasks/update` and `tasks/cancel`.

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::{ClientCapabilities, Error};

use super::record::TaskId;
use crate::answer::OpenRequest;
use crate::bounded;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::service::{McpService, Peer};
use crate::wire::parse_input_answer;

/// The maximum number of answers in one update.
const ANSWERS_MAX: usize = 100;

#[derive(Deserialize)]
struct TaskParams {
    #[serde(rename = "taskId", deserialize_with = "bounded::name")]
    task_id: String,
}

#[derive(Deserialize)]
struct UpdateParams {
    #[serde(rename = "inputResponses")]
    responses: Map<String, Value>,
}

impl McpService {
    pub(crate) async fn get_task(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let id = self.find_task(open, peer)?;
        let members = self.tasks.encode_detailed(id).await?;
        Ok(open.envelope.respond(&members, None))
    }

    pub(crate) fn update_task(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let id = self.find_task(open, peer)?;
        let params: UpdateParams = open.request.params()?;
        if params.responses.len() > ANSWERS_MAX {
            return Err(RpcError::invalid_params(format!("inputResponses holds more than {ANSWERS_MAX} answers")));
        }
        let wrong = |key: &str, wrong: String| {
            RpcError::invalid_params(format!("inputResponses[{key:?}] does not answer its request: {wrong}"))
        };
        for (key, result) in &params.responses {
            let answered = self.tasks.with_entry(id, |entry| {
                // Answers to unknown and already answered requests are ignored.
                if entry.has_pending_input(key) {
                    entry.accept_answer(key, parse_input_answer(result)?)
                } else {
                    Ok(())
                }
            });
            answered.unwrap_or(Ok(())).map_err(|why| wrong(key, why))?;
        }
        Ok(open.envelope.respond("", None))
    }

    /// Cancels a task. An ended task does not change.
    pub(crate) fn cancel_task(&self, open: &OpenRequest, peer: &Peer) -> Result<ResponseMessage, RpcError> {
        let id = self.find_task(open, peer)?;
        if let Some(job) = self.tasks.with_entry(id, |entry| entry.job.clone()).flatten() {
            job.cancel();
        }
        Ok(open.envelope.respond("", None))
    }

    /// # Errors
    /// `-32021` if the client has not declared the extension.
    pub(crate) fn require_tasks_extension(&self, open: &OpenRequest) -> Result<(), RpcError> {
        if open.request.meta.client_capabilities.tasks {
            return Ok(());
        }
        let error =
            Error::missing_client_capability(ClientCapabilities { tasks: true, ..ClientCapabilities::default() });
        Err(RpcError::from_error(&error, None, open.envelope.dialect))
    }

    fn find_task(&self, open: &OpenRequest, peer: &Peer) -> Result<TaskId, RpcError> {
        self.require_tasks_extension(open)?;
        let params: TaskParams = open.request.params()?;
        self.tasks.find(&params.task_id, self.registry(), &peer.caller)
    }
}
