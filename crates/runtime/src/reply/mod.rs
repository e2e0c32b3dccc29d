//! The answer of a call: an ordered stream of chunks through a bounded channel, then its outcome.
//!
//! A slow client slows the query instead of using memory: the sender waits until the channel has room.

mod answer_meta;
mod body;
mod input;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::{
    Completion, Content, ContentRole, Error, ErrorKind, InputAnswer, InputRequest, JsonSchema, LogLevel,
};
use tokio::sync::{mpsc, oneshot};

pub use self::answer_meta::{AdapterDetail, AnswerMeta, WriteSummary};
pub use self::body::{BodyFile, BodyMetadata, BodyVersion};
use crate::job::Job;

/// Handlers keep text chunks near 64 KiB, so an answer uses at most a few hundred KiB of memory.
const CHUNK_BUFFER: usize = 4;

/// A piece of an answer.
#[derive(Debug, Clone)]
pub enum Chunk {
    /// More text of the open block; opens a block if none is open.
    Text(String),
    /// Closes the open text block.
    EndOfText,
    /// A complete block. Closes the open text block.
    Block(Content),
    /// A message of a prompt.
    PromptMessage(ContentRole, Content),
    /// The answer as structured data that conforms to the tool's output schema.
    Structured(Box<RawValue>),
    /// The start of an answer that is a body of its own, in the format of the call.
    Body(BodyMetadata),
    /// More bytes of the open body.
    Bytes(Bytes),
    /// The answer to a completion.
    Completion(Completion),
    /// A notification beside the answer.
    Notification(ReplyNotification),
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

/// How a call ended.
#[derive(Debug)]
pub enum Outcome {
    /// Without an error, with data about the answer.
    Done(AnswerMeta),
    /// With an error. Chunks sent before it remain valid.
    Failed(Error),
}

/// The result of [`Reply::next`].
#[derive(Debug)]
pub enum ReplyEvent {
    /// A piece of the answer.
    Chunk(Chunk),
    /// The end of the answer; nothing follows.
    End(Outcome),
}

/// The result of [`Reply::next_message`], for adapters that can answer input requests.
#[derive(Debug)]
pub enum ReplyMessage {
    /// A piece of the answer, or its end.
    Event(ReplyEvent),
    /// An input request of the handler, which waits for the answer. Only in calls with live input.
    InputRequest(PendingInputRequest),
}

/// A pending input request. Dropping it reports to the handler that there is no answer.
#[derive(Debug)]
pub struct PendingInputRequest {
    /// The key of the request within its call.
    pub key: String,
    /// The requested input.
    pub request: InputRequest,
    /// The channel for the answer.
    pub answer_sender: oneshot::Sender<InputAnswer>,
}

/// The receiver of an answer, for the adapter. Dropping it cancels the job.
#[derive(Debug)]
pub struct Reply {
    job: Arc<Job>,
    receiver: mpsc::Receiver<ReplyMessage>,
    ended: bool,
}

impl Reply {
    pub(crate) fn channel(job: Arc<Job>, output_schema: Option<Arc<JsonSchema>>) -> (ReplySender, Self) {
        let (sender, receiver) = mpsc::channel(CHUNK_BUFFER);
        let reply = Self { job: job.clone(), receiver, ended: false };
        (ReplySender { job, sender, output_schema }, reply)
    }

    /// The job of this answer.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// The next chunk of the answer, or its end; `None` after the end. Input requests are dropped, which reports to
    /// their handler that there is no answer.
    pub async fn next(&mut self) -> Option<ReplyEvent> {
        loop {
            if let ReplyMessage::Event(event) = self.next_message().await? {
                return Some(event);
            }
        }
    }

    /// The next chunk of the answer, its end, or an input request; `None` after the end.
    pub async fn next_message(&mut self) -> Option<ReplyMessage> {
        if self.ended {
            return None;
        }
        let received = loop {
            if let Some(notification) = self.job.client_log.pop() {
                return Some(ReplyMessage::Event(ReplyEvent::Chunk(Chunk::Notification(notification))));
            }
            tokio::select! {
                biased;
                () = self.job.client_log.added() => {}
                message = self.receiver.recv() => break message,
            }
        };
        let message = received.unwrap_or_else(|| {
            // The registry sends an end for every job. Without one, the runtime is shutting down.
            let error = Error::new(ErrorKind::Unavailable, "the server is shutting down");
            ReplyMessage::Event(ReplyEvent::End(Outcome::Failed(error)))
        });
        self.ended = matches!(message, ReplyMessage::Event(ReplyEvent::End(_)));
        Some(message)
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.ended {
            self.job.cancel();
        }
    }
}

/// The sender of an answer, for the handler.
#[derive(Debug, Clone)]
pub struct ReplySender {
    job: Arc<Job>,
    sender: mpsc::Sender<ReplyMessage>,
    output_schema: Option<Arc<JsonSchema>>,
}

impl ReplySender {
    /// The job of this answer.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Sends more text of the open block. Secrets are searched in each piece separately: send text that belongs
    /// together in one piece, or [redact](Job::redact_text) it before you split it.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read; this applies to every method. `Forbidden` if the text contains a
    /// secret and secrets are rejected; this applies to every method that sends text.
    pub async fn send_text(&self, text: impl Into<String>) -> Result<(), Error> {
        let text = self.job.redact_text(text.into())?.into_owned();
        self.send_redacted_text(text).await
    }

    /// Sends more text of the open block whose secrets are already masked.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read.
    pub async fn send_redacted_text(&self, text: String) -> Result<(), Error> {
        self.job.count_bytes(text.len());
        self.send(Chunk::Text(text)).await
    }

    /// Closes the open text block.
    pub async fn end_text(&self) -> Result<(), Error> {
        self.send(Chunk::EndOfText).await
    }

    /// Sends a complete block.
    pub async fn send_block(&self, content: Content) -> Result<(), Error> {
        let content = self.job.redact_content(content)?;
        self.job.count_bytes(content.byte_count());
        self.send(Chunk::Block(content)).await
    }

    /// Starts an answer that is a body of its own; only for calls with a format.
    pub async fn begin_body(&self, head: BodyMetadata) -> Result<(), Error> {
        self.job.set_body_begun();
        self.send(Chunk::Body(head)).await
    }

    /// Sends more bytes of the open body.
    pub async fn send_bytes(&self, bytes: Bytes) -> Result<(), Error> {
        self.job.count_bytes(bytes.len());
        self.send(Chunk::Bytes(bytes)).await
    }

    /// Sends a message of a prompt.
    pub async fn send_prompt_message(&self, role: ContentRole, content: Content) -> Result<(), Error> {
        let content = self.job.redact_content(content)?;
        self.job.count_bytes(content.byte_count());
        self.send(Chunk::PromptMessage(role, content)).await
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
        let json = self.job.redact_json(json)?;
        let tool = self.job.target().name();
        let broken = |reason: String| Error::internal(format!("{tool} broke its output schema: {reason}"));
        if let Some(schema) = &self.output_schema {
            let value: Value = serde_json::from_str(&json).map_err(|error| broken(error.to_string()))?;
            schema.check(&value).map_err(|violations| broken(format!("{violations:?}")))?;
        }
        let json = RawValue::from_string(json).map_err(|error| broken(error.to_string()))?;
        self.send(Chunk::Structured(json)).await
    }

    /// Ends the answer without an error while the handler continues as a background job, for at most `time`. Neither
    /// the adapter nor its client can end it then, except through the list of jobs. Chunks sent after this call are
    /// lost.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read, or if the job was cancelled before the client received the end.
    /// The job does not continue in the background then.
    pub async fn end_early(&self, metadata: AnswerMeta, time: Duration) -> Result<(), Error> {
        self.send_missing_nodes_note().await?;
        let metadata = self.job.with_missing_nodes(metadata);
        // Before the end is sent: a client that receives it may drop the call.
        self.job.extend(time);
        self.job.set_in_background(true);
        let sent = self.send_event(ReplyEvent::End(Outcome::Done(metadata))).await;
        sent.inspect_err(|_| self.job.set_in_background(false))
    }

    /// Sends a note with the nodes whose rows the answer lacks, unless its content names them already.
    ///
    /// # Errors
    /// `Cancelled` if the reply is no longer read.
    pub async fn send_missing_nodes_note(&self) -> Result<(), Error> {
        match self.job.take_unstated_nodes() {
            Some(missing) => self.send_block(Content::text(missing.to_string())).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn send_completion(&self, mut completion: Completion) -> Result<(), Error> {
        for value in &mut completion.values {
            *value = self.job.redact_text(std::mem::take(value))?.into_owned();
        }
        self.send(Chunk::Completion(completion.truncated())).await
    }

    /// Sends progress, if the caller requests it. Values that are not finite, do not rise, or follow too soon are
    /// dropped.
    pub async fn send_progress(&self, done: f64, total: Option<f64>, message: Option<String>) -> Result<(), Error> {
        if !self.job.wants_progress || !done.is_finite() || !self.job.progress_throttle.lock().admits(done) {
            return Ok(());
        }
        let total = total.filter(|total| total.is_finite());
        self.send(Chunk::Notification(ReplyNotification::Progress { done, total, message })).await
    }

    /// Sends a log message, if the caller requests messages of this level.
    pub async fn send_log(&self, level: LogLevel, logger: Option<String>, data: Value) -> Result<(), Error> {
        if self.job.log_level.is_none_or(|log_level| level < log_level) {
            return Ok(());
        }
        self.send(Chunk::Notification(ReplyNotification::Log { level, logger, data })).await
    }

    fn send(&self, chunk: Chunk) -> impl Future<Output = Result<(), Error>> + Send + '_ {
        self.send_event(ReplyEvent::Chunk(chunk))
    }

    fn send_event(&self, event: ReplyEvent) -> impl Future<Output = Result<(), Error>> + Send + '_ {
        self.push(ReplyMessage::Event(event))
    }

    pub(crate) async fn push(&self, message: ReplyMessage) -> Result<(), Error> {
        // Usually the channel has room.
        let reserved = if self.job.is_stopped() { None } else { self.sender.try_reserve().ok() };
        let permit = match reserved {
            Some(permit) => permit,
            None => self.reserve().await?,
        };
        permit.send(message);
        Ok(())
    }

    /// Waits until the channel has room.
    async fn reserve(&self) -> Result<mpsc::Permit<'_, ReplyMessage>, Error> {
        let cancelled = || Error::new(ErrorKind::Cancelled, "the call was cancelled");
        tokio::select! {
            biased;
            () = self.job.cancelled() => Err(cancelled()),
            reserved = self.sender.reserve() => reserved.map_err(|_| cancelled()),
        }
    }

    /// Ends the answer. Waits until the channel has room, unless the receiver is dropped.
    pub(crate) async fn end(&self, outcome: Outcome) {
        // An error means that the receiver is dropped and needs no end.
        let _ = self.sender.send(ReplyMessage::Event(ReplyEvent::End(outcome))).await;
    }
}
