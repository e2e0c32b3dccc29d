//! `tasks/get`, `tasks/update` and `tasks/cancel`.

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::{Abilities, Error, Metadata};

use super::record::TaskId;
use crate::answer::Message;
use crate::bounded;
use crate::encode::Envelope;
use crate::jsonrpc::{Request, RpcError};
use crate::service::{Peer, Service, empty};
use crate::wire::input_answer;

/// Answers that one update may bring.
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

impl Service {
    pub(crate) async fn get_task(
        &self,
        request: &Request,
        envelope: &Envelope,
        peer: &Peer,
    ) -> Result<Message, RpcError> {
        let id = self.task(request, envelope, peer)?;
        let members = self.tasks.detailed(id).await?;
        Ok(Message::result(envelope.whole(&members, &Metadata::new(), None)))
    }

    pub(crate) fn update_task(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<Message, RpcError> {
        let id = self.task(request, envelope, peer)?;
        let params: UpdateParams = request.params()?;
        if params.responses.len() > ANSWERS_MAX {
            return Err(RpcError::invalid_params(format!("inputResponses holds more than {ANSWERS_MAX} answers")));
        }
        let wrong = |key: &str, wrong: String| {
            RpcError::invalid_params(format!("inputResponses[{key:?}] does not answer what was asked: {wrong}"))
        };
        for (key, result) in &params.responses {
            let answered = self.tasks.with(id, |entry| {
                // What is not asked for, or no longer, is passed over.
                if entry.asks_for(key) { entry.answer(key, input_answer(result)?) } else { Ok(()) }
            });
            answered.unwrap_or(Ok(())).map_err(|why| wrong(key, why))?;
        }
        Ok(empty(envelope))
    }

    /// Wishes a task to end; one that has ended stays as it is.
    pub(crate) fn cancel_task(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<Message, RpcError> {
        let id = self.task(request, envelope, peer)?;
        if let Some(job) = self.tasks.with(id, |entry| entry.job.clone()).flatten() {
            job.cancel();
        }
        Ok(empty(envelope))
    }

    /// # Errors
    /// `-32021` for a client that has not declared the extension.
    pub(crate) fn must_know_tasks(&self, request: &Request, envelope: &Envelope) -> Result<(), RpcError> {
        if request.meta.abilities.tasks {
            return Ok(());
        }
        let error = Error::incapable(Abilities { tasks: true, ..Abilities::default() });
        Err(RpcError::from_error(&error, None, envelope.dialect))
    }

    fn task(&self, request: &Request, envelope: &Envelope, peer: &Peer) -> Result<TaskId, RpcError> {
        self.must_know_tasks(request, envelope)?;
        let params: TaskParams = request.params()?;
        self.tasks.find(&params.task_id, self.registry(), &peer.caller)
    }
}
