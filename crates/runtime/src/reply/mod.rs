//! The reply to a call: the parts of its answer, and what its handler says meanwhile, through one bounded channel; then
//! its end.
//!
//! A slow client slows the query instead of using memory: the sender waits until the channel has room.

mod answer;
mod running_call;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::{
    Completion, Content, ContentRole, Error, ErrorKind, InputAnswer, InputRequest, JsonSchema, LogLevel,
};
use tokio::sync::{mpsc, oneshot};

use crate::job::Job;

pub use self::answer::{
    AdapterDetail, Answer, AnswerMeta, BodyFile, BodyMetadata, BodyVersion, ReceiverOutcome, WriteSummary,
    WrittenRecords,
};
pub use self::running_call::RunningCall;

/// Handlers keep texts near 64 KiB, so an answer uses at most a few hundred KiB of memory.
const PARTS_WAITING_MAX: usize = 4;

/// A part of a reply, in the order in which an adapter receives them.
#[derive(Debug)]
pub enum ReplyPart {
    /// More text of the open item; opens an item if none is open.
    Text(String),
    /// Closes the open text item.
    EndOfText,
    /// A complete item. Closes the open text item.
    Item(Content),
    /// A message of a prompt.
    PromptMessage(ContentRole, Content),
    /// The answer as structured data that conforms to the tool's output schema.
    Structured(Box<RawValue>),
    /// The start of a raw body, in the format of the call.
    Body(BodyMetadata),
    /// More bytes of the open body.
    Bytes(Bytes),
    /// The answer to a completion.
    Completion(Completion),
    /// A notification beside the answer.
    Notification(ReplyNotification),
    /// An input request of the handler, which waits for the answer. Only in calls with live input. Dropping it reports
    /// to the handler that there is no answer.
    InputRequest(PendingInputRequest),
    /// The end; nothing follows. Parts before an error remain valid.
    End(Result<AnswerMeta, Error>),
}

/// A notification of a call, beside its answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyNotification {
    /// The progress of the call.
    Progress {
        /// Strictly increasing.
        done: f64,
        /// The value of `done` at the end, if known.
        total: Option<f64>,
        /// A message for people.
        message: Option<String>,
    },
    /// A log message.
    Log {
        /// The severity.
        level: LogLevel,
        /// The part of the server that logs.
        logger: Option<String>,
        /// The message.
        data: Value,
    },
}

/// A pending input request.
#[derive(Debug)]
pub struct PendingInputRequest {
    /// The key of the request within its call.
    pub key: String,
    /// The requested input.
    pub request: InputRequest,
    /// The channel for the answer.
    pub answer_sender: oneshot::Sender<InputAnswer>,
}

/// The receiver of a reply, for the adapter. Dropping it cancels the job.
#[derive(Debug)]
pub struct Reply {
    job: Arc<Job>,
    receiver: mpsc::Receiver<ReplyPart>,
    ended: bool,
}

impl Reply {
    pub(crate) fn channel(job: Arc<Job>, output_schema: Option<Arc<JsonSchema>>) -> (ReplySender, Self) {
        let (sender, receiver) = mpsc::channel(PARTS_WAITING_MAX);
        let reply = Self { job: job.clone(), receiver, ended: false };
        (ReplySender { call: RunningCall::new(job, sender), output_schema }, reply)
    }

    /// The job of this answer.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// The next part; `None` after the end.
    pub async fn next(&mut self) -> Option<ReplyPart> {
        if self.ended {
            return None;
        }
        let received = loop {
            if let Some(notification) = self.job.client_log.pop() {
                return Some(ReplyPart::Notification(notification));
            }
            tokio::select! {
                biased;
                () = self.job.client_log.added() => {}
                part = self.receiver.recv() => break part,
            }
        };
        let part = received.unwrap_or_else(|| {
            // The registry sends an end for every job. Without one, the runtime is shutting down.
            ReplyPart::End(Err(Error::new(ErrorKind::Unavailable, "the server is shutting down")))
        });
        self.ended = matches!(part, ReplyPart::End(_));
        Some(part)
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.ended {
            self.job.cancel();
        }
    }
}

/// The sender of an answer that is [written](Answer::written) in pieces.
#[derive(Debug, Clone)]
pub struct ReplySender {
    call: RunningCall,
    output_schema: Option<Arc<JsonSchema>>,
}

impl ReplySender {
    /// The call that is answered.
    pub fn call(&self) -> &RunningCall {
        &self.call
    }

    /// The job of the call.
    pub fn job(&self) -> &Arc<Job> {
        self.call.job()
    }

    /// Sends more text of the open item. Secrets are searched in each piece separately: send text that belongs
    /// together in one piece, or [redact](crate::AnswerProtector::redact_text) it before you split it.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read; this applies to every method. `Forbidden` if the text contains a
    /// secret and secrets are rejected; this applies to every method that sends text.
    pub async fn send_text(&self, text: impl Into<String>) -> Result<(), Error> {
        let text = self.call.protection().redact_text(text.into())?.into_owned();
        self.send_redacted_text(text).await
    }

    /// Sends more text of the open item whose secrets are already masked.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read.
    pub async fn send_redacted_text(&self, text: String) -> Result<(), Error> {
        self.call.usage().count_bytes(text.len());
        self.call.send(ReplyPart::Text(text)).await
    }

    /// Closes the open text item.
    pub async fn end_text(&self) -> Result<(), Error> {
        self.call.send(ReplyPart::EndOfText).await
    }

    /// Sends a complete item.
    pub async fn send_item(&self, content: Content) -> Result<(), Error> {
        let content = self.call.protection().redact_content(content)?;
        self.call.usage().count_bytes(content.byte_count());
        self.call.send(ReplyPart::Item(content)).await
    }

    /// Starts an answer that is a body of its own; only for calls with a format.
    pub async fn begin_body(&self, head: BodyMetadata) -> Result<(), Error> {
        self.call.set_body_begun();
        self.call.send(ReplyPart::Body(head)).await
    }

    /// Sends more bytes of the open body.
    pub async fn send_bytes(&self, bytes: Bytes) -> Result<(), Error> {
        self.call.usage().count_bytes(bytes.len());
        self.call.send(ReplyPart::Bytes(bytes)).await
    }

    /// Sends a message of a prompt.
    pub async fn send_prompt_message(&self, role: ContentRole, content: Content) -> Result<(), Error> {
        let content = self.call.protection().redact_content(content)?;
        self.call.usage().count_bytes(content.byte_count());
        self.call.send(ReplyPart::PromptMessage(role, content)).await
    }

    /// Sends the answer as structured data.
    ///
    /// # Errors
    /// Also if `value` does not conform to the tool's output schema. That is an internal error, because it is a fault
    /// of the handler.
    pub async fn send_structured(&self, value: &Value) -> Result<(), Error> {
        self.send_structured_json(value.to_string()).await
    }

    /// Sends the answer as structured data that is already JSON text. Its numbers keep all their digits.
    ///
    /// # Errors
    /// As [`ReplySender::send_structured`], and if it is not JSON.
    pub async fn send_structured_json(&self, json: String) -> Result<(), Error> {
        let json = self.call.protection().redact_json(json)?;
        let tool = self.call.target().name();
        let broken = |reason: String| Error::internal(format!("{tool} broke its output schema: {reason}"));
        if let Some(schema) = &self.output_schema {
            let value: Value = serde_json::from_str(&json).map_err(|error| broken(error.to_string()))?;
            schema.check(&value).map_err(|violations| broken(format!("{violations:?}")))?;
        }
        let json = RawValue::from_string(json).map_err(|error| broken(error.to_string()))?;
        self.call.send(ReplyPart::Structured(json)).await
    }

    /// Ends the answer without an error while the handler continues as a background job, for at most `time`. Neither
    /// the adapter nor its client can end it then, except through the list of jobs. Parts sent after this call are
    /// lost.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read, or if the job was cancelled before the client received the end.
    /// The job does not continue in the background then.
    pub async fn end_early(&self, metadata: AnswerMeta, time: Duration) -> Result<(), Error> {
        self.send_missing_nodes_note().await?;
        let metadata = AnswerMeta { missing_nodes: self.call.missing_nodes(), ..metadata };
        // Before the end is sent: a client that receives it may drop the call.
        self.call.extend(time);
        self.call.lifetime.set_in_background(true);
        let sent = self.call.send(ReplyPart::End(Ok(metadata))).await;
        sent.inspect_err(|_| self.call.lifetime.set_in_background(false))
    }

    /// Sends a note with the nodes whose rows the answer lacks, unless its content names them already.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read.
    pub async fn send_missing_nodes_note(&self) -> Result<(), Error> {
        match self.call.take_unstated_nodes() {
            Some(missing) => self.send_item(Content::text(missing.to_string())).await,
            None => Ok(()),
        }
    }

    /// Sends a part, not the end, of the answer to a call that is made on behalf of this one. Its secrets are masked
    /// already.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read.
    pub async fn forward(&self, part: ReplyPart) -> Result<(), Error> {
        match &part {
            ReplyPart::Text(text) => self.call.usage().count_bytes(text.len()),
            ReplyPart::Item(content) | ReplyPart::PromptMessage(_, content) => {
                self.call.usage().count_bytes(content.byte_count());
            }
            ReplyPart::Bytes(bytes) => self.call.usage().count_bytes(bytes.len()),
            ReplyPart::Body(_) => self.call.set_body_begun(),
            ReplyPart::Notification(ReplyNotification::Progress { done, total, message }) => {
                return self.call.progress(*done, *total, message.clone()).await;
            }
            _ => {}
        }
        self.call.send(part).await
    }

    pub(crate) async fn send_completion(&self, mut completion: Completion) -> Result<(), Error> {
        for value in &mut completion.values {
            *value = self.call.protection().redact_text(std::mem::take(value))?.into_owned();
        }
        self.call.send(ReplyPart::Completion(completion.truncated())).await
    }

    /// Ends the reply.
    pub(crate) async fn end(&self, end: Result<AnswerMeta, Error>) {
        self.call.end(ReplyPart::End(end)).await;
    }
}
