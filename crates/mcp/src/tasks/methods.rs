//! The methods `tasks/get`, `tasks/update` and `tasks/cancel`.

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::{ClientCapabilities, Error};

use super::record::TaskId;
use crate::bounded;
use crate::jsonrpc::{ResponseMessage, RpcError};
use crate::request::InFlightRequest;
use crate::service::McpService;

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
