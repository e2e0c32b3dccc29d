//! Who reads the answer of a call that became a task, until it has ended.

use std::sync::Arc;

use chrono::Utc;
use serde_json::value::RawValue;
use tidegate_core::{Chunk, Error, ErrorKind, Notice, Outcome, Owner, Reply, ReplyEvent, Said};
use uuid::Uuid;

use super::entry::Entry;
use super::record::{Ending, Facts, Status, TaskId};
use super::table::Tasks;
use crate::encode::{CallToolEncoder, Envelope, ReplyEncoder, ResultType};
use crate::jsonrpc::RpcError;

/// A call that did not become a task: its answer, to be read on, and why.
pub(crate) struct Refused {
    pub(crate) reply: Reply,
    pub(crate) error: RpcError,
}

impl Tasks {
    /// Makes a task of the call that `reply` answers, and gives the members of its `CreateTaskResult`. From then on the
    /// answer is read here. `message` says how far it is.
    pub(crate) async fn take(
        self: Arc<Self>,
        reply: Reply,
        envelope: Envelope,
        message: Option<String>,
    ) -> Result<String, Box<Refused>> {
        let job = reply.job().clone();
        let now = Utc::now();
        let facts = Facts {
            id: TaskId(Uuid::new_v4()),
            owner: Owner::of(job.caller()),
            roles: job.principal().roles.clone(),
            tool: job.target().name().to_owned(),
            databases: job.databases(),
            row_policies: job.row_policy_stamp(),
            bytes: 0,
            status: Status::Working,
            message,
            created: now,
            updated: now,
            time_to_live_ms: self.limits.time_to_live.as_millis() as u64,
        };
        let (id, members) = (facts.id, facts.members());
        if let Err(error) = self.insert(Entry::new(facts, Some(job.clone()))).await {
            return Err(Box::new(Refused { reply, error }));
        }
        job.go_on_as_task();
        let keeper = Keeper { id, tasks: self.clone(), reply, encoder: encoder(&envelope), result: Vec::new() };
        self.keepers.spawn(keeper.keep());
        Ok(members)
    }
}

/// The result of a task stands within another one.
fn encoder(envelope: &Envelope) -> CallToolEncoder {
    CallToolEncoder::new(Envelope { is_nested: true, ..envelope.clone() }.of_type(ResultType::Complete))
}

struct Keeper {
    id: TaskId,
    tasks: Arc<Tasks>,
    reply: Reply,
    encoder: CallToolEncoder,
    result: Vec<u8>,
}

impl Keeper {
    async fn keep(mut self) {
        while let Some(said) = self.reply.next_said().await {
            match said {
                Said::Asked(asked) => drop(self.tasks.with(self.id, |entry| entry.ask(asked))),
                Said::Event(ReplyEvent::Chunk(Chunk::Notice(notice))) => self.hear(&notice),
                Said::Event(ReplyEvent::Chunk(chunk)) => {
                    let piece = self.encoder.chunk(chunk);
                    self.result.extend_from_slice(&piece);
                    if self.result.len() > self.tasks.limits.result_bytes_max {
                        return self.too_long().await;
                    }
                }
                Said::Event(ReplyEvent::End(outcome)) => return self.end(outcome).await,
            }
        }
    }

    fn hear(&self, notice: &Notice) {
        if let Notice::Progress { message: Some(message), .. } = notice {
            self.tasks.with(self.id, |entry| entry.say(message.clone()));
        }
    }

    async fn end(mut self, outcome: Outcome) {
        let (id, tasks) = (self.id, self.tasks.clone());
        match &outcome {
            Outcome::Failed(error) if error.kind() == ErrorKind::Cancelled => {
                tasks.end(id, Status::Cancelled, Some(error.to_string()), Ending::default()).await;
            }
            // A fault of ours is none of the tool's, nor is what the client has to mend.
            Outcome::Failed(error) if is_no_result(error) => {
                let error = RpcError::from_error(error, None, self.encoder.dialect());
                let ending = Ending { result: None, error: error.to_raw() };
                tasks.end(id, Status::Failed, Some(error.message), ending).await;
            }
            // It ended to be run again just before its call became a task, which is not run again.
            Outcome::Failed(error) if error.kind() == ErrorKind::InputRequired => {
                let error = Error::new(ErrorKind::Unavailable, "the call was to ask for something as it became a task")
                    .with_hint("Call again.");
                self.result = CallToolEncoder::failure(self.encoder.envelope(), &error).to_vec();
                self.complete().await;
            }
            _ => {
                let (last, _) = self.encoder.end(outcome);
                self.result.extend_from_slice(&last);
                // What was given as data stands in the last piece alone.
                if self.result.len() > tasks.limits.result_bytes_max {
                    return self.too_long().await;
                }
                self.complete().await;
            }
        }
    }

    /// Only an entry without a budget answers so much inline.
    async fn too_long(mut self) {
        let max = self.tasks.limits.result_bytes_max;
        let error = Error::new(ErrorKind::TooLarge, format!("the result is longer than {max} bytes"))
            .with_hint("Ask for less, or with delivery: \"blocks\".");
        self.result = CallToolEncoder::failure(self.encoder.envelope(), &error).to_vec();
        self.complete().await;
    }

    async fn complete(self) {
        let result = String::from_utf8(self.result).ok().and_then(|text| RawValue::from_string(text).ok());
        self.tasks.end(self.id, Status::Completed, None, Ending { result, error: None }).await;
    }
}

/// Whether a failure is an error of the task, not a result that tells of it.
fn is_no_result(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Internal | ErrorKind::Incapable | ErrorKind::Unauthenticated)
        || !error.scopes().is_empty()
}
