//! The answer of a call: an ordered stream of chunks through a bounded channel, then its outcome.
//!
//! A slow client slows the database and not the memory: the sender waits for a free place.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::call::LogLevel;
use crate::client_input::PendingInputRequest;
use crate::completion::Completion;
use crate::content::{Content, ContentRole};
use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::json_schema::JsonSchema;
use crate::limits::Budget;

/// Chunks that wait between handler and adapter. Handlers keep text chunks near 64 KiB, so this
/// bounds an answer's memory to a few hundred KiB.
const CHUNK_BUFFER: usize = 4;

/// Facts about an answer that travel in its `_meta`.
pub type Metadata = Map<String, Value>;

/// A piece of an answer.
#[derive(Debug, Clone)]
pub enum Chunk {
    /// More text of the block that is open; opens one when none is.
    Text(String),
    /// Closes the text block that is open.
    EndOfText,
    /// A whole block of its own. Closes the text block that is open.
    Block(Content),
    /// A message of a prompt.
    PromptMessage(ContentRole, Content),
    /// The answer as data that conforms to the tool's output schema.
    Structured(Box<RawValue>),
    /// The answer is a body of its own, as the call's format asked for it, and begins.
    Body(BodyHead),
    /// More bytes of the body that has begun.
    Bytes(Bytes),
    /// The answer to a completion.
    Completion(Completion),
    /// Something about the call, beside the answer.
    Notification(ReplyNotification),
}

/// What is known of a body before its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyHead {
    /// Its media type, with parameters.
    pub media_type: &'static str,
    /// Where it is cut.
    pub budget: Budget,
    /// What stays the same whenever it is asked for; none for rows of the moment.
    pub stable: Option<StableBody>,
    /// The file whose bytes the body is; none for rows.
    pub file: Option<BodyFile>,
}

/// What is known of a file whose bytes a body is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFile {
    /// What it is called, without folders.
    pub name: String,
    /// Its media type, as whoever declared it says.
    pub media_type: Option<String>,
}

/// What is known of a body that is the same whenever it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StableBody {
    /// Names its bytes: equal tags, equal bytes. Visible ASCII without quotes.
    pub tag: String,
    /// How many bytes it has, if that is known before they are sent.
    pub bytes: Option<u64>,
}

/// News of a call, beside its answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyNotification {
    /// How far it is.
    Progress {
        /// Strictly increasing.
        done: f64,
        /// What `last_progress` will be at the end, if known.
        total: Option<f64>,
        /// For people.
        message: Option<String>,
    },
    /// A log message.
    Log {
        /// How severe.
        level: LogLevel,
        /// Which part of the server speaks.
        logger: Option<String>,
        /// What it says.
        data: Value,
    },
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome {
    /// Well, with facts about the answer.
    Done(Metadata),
    /// With an error; chunks that were sent before it stand.
    Failed(Error),
}

/// What [`Reply::next`] gives.
#[derive(Debug)]
pub enum ReplyEvent {
    /// A piece of the answer.
    Chunk(Chunk),
    /// The end. Nothing comes after it.
    End(Outcome),
}

/// What [`Reply::next_message`] gives: whoever can answer questions hears these, too.
#[derive(Debug)]
pub enum ReplyMessage {
    /// A piece of the answer, or its end.
    Event(ReplyEvent),
    /// A question of the handler, which waits for the answer; only in calls that are asked live.
    InputRequest(PendingInputRequest),
}

/// The adapter's end of an answer. Dropping it cancels the job.
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

    /// The job that answers.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// The next piece of the answer, or its end; `None` after the end. A question gets no answer, which its handler is told.
    pub async fn next(&mut self) -> Option<ReplyEvent> {
        loop {
            if let ReplyMessage::Event(event) = self.next_message().await? {
                return Some(event);
            }
        }
    }

    /// The next piece of the answer, its end, or a question; `None` after the end.
    pub async fn next_message(&mut self) -> Option<ReplyMessage> {
        if self.ended {
            return None;
        }
        let reply_message = self.receiver.recv().await.unwrap_or_else(|| {
            // The registry sends an end for every job that it runs; without one the runtime is going down.
            let error = Error::new(ErrorKind::Unavailable, "the server is shutting down");
            ReplyMessage::Event(ReplyEvent::End(Outcome::Failed(error)))
        });
        self.ended = matches!(reply_message, ReplyMessage::Event(ReplyEvent::End(_)));
        Some(reply_message)
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.ended {
            self.job.cancel();
        }
    }
}

/// The handler's end of an answer.
#[derive(Debug, Clone)]
pub struct ReplySender {
    job: Arc<Job>,
    sender: mpsc::Sender<ReplyMessage>,
    output_schema: Option<Arc<JsonSchema>>,
}

impl ReplySender {
    /// The job that is answered.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// More text of the open block. Secrets are looked for in each piece by itself: send whole what belongs together, or
    /// [screen](Job::redact_text) it before it is cut.
    ///
    /// # Errors
    /// `CancelJob` when nobody listens any more; every method here. `Forbidden` when a secret must not leave; every method
    /// that sends text.
    pub async fn send_text(&self, text: impl Into<String>) -> Result<(), Error> {
        let text = self.job.redact_text(text.into())?.into_owned();
        self.send_redacted_text(text).await
    }

    /// More text of the open block, in which secrets were looked for already.
    ///
    /// # Errors
    /// `CancelJob` when nobody listens any more.
    pub async fn send_redacted_text(&self, text: String) -> Result<(), Error> {
        self.job.count_bytes(text.len());
        self.send(Chunk::Text(text)).await
    }

    /// Closes the open text block.
    pub async fn end_text(&self) -> Result<(), Error> {
        self.send(Chunk::EndOfText).await
    }

    /// A whole block.
    pub async fn send_block(&self, content: Content) -> Result<(), Error> {
        let content = self.job.redact_content(content)?;
        self.job.count_bytes(content.len());
        self.send(Chunk::Block(content)).await
    }

    /// Begins an answer that is a body of its own; only for calls with a format.
    pub async fn begin_body(&self, head: BodyHead) -> Result<(), Error> {
        self.send(Chunk::Body(head)).await
    }

    /// More bytes of the body that has begun.
    pub async fn send_bytes(&self, bytes: Bytes) -> Result<(), Error> {
        self.job.count_bytes(bytes.len());
        self.send(Chunk::Bytes(bytes)).await
    }

    /// A message of a prompt.
    pub async fn send_prompt_message(&self, role: ContentRole, content: Content) -> Result<(), Error> {
        let content = self.job.redact_content(content)?;
        self.job.count_bytes(content.len());
        self.send(Chunk::PromptMessage(role, content)).await
    }

    /// The answer as data.
    ///
    /// # Errors
    /// Also when `value` does not conform to the tool's output schema, which is a fault of the
    /// handler and therefore internal.
    pub async fn send_structured(&self, value: &Value) -> Result<(), Error> {
        self.send_structured_json(value.to_string()).await
    }

    /// The answer as data, written as JSON already: its numbers keep all their digits.
    ///
    /// # Errors
    /// As [`ReplySender::send_structured`], and when it is no JSON.
    pub async fn send_structured_json(&self, json: String) -> Result<(), Error> {
        let json = self.job.redact_json(json)?;
        let broken =
            |why: String| Error::internal(format!("{} broke its output schema: {why}", self.job.target().name()));
        if let Some(schema) = &self.output_schema {
            let value: Value = serde_json::from_str(&json).map_err(|error| broken(error.to_string()))?;
            schema.check(&value).map_err(|violations| broken(format!("{violations:?}")))?;
        }
        let json = RawValue::from_string(json).map_err(|error| broken(error.to_string()))?;
        self.send(Chunk::Structured(json)).await
    }

    /// Ends the answer well while the work goes on: the handler runs on as a job in the background, which neither the
    /// adapter nor its client can end but through the list of jobs, for `time` at most. What is sent after it is lost.
    ///
    /// # Errors
    /// `CancelJob` when nobody listens any more, or the job was cancelled before anybody heard of the end; there is no work in
    /// the background then.
    pub async fn end_early(&self, metadata: Metadata, time: Duration) -> Result<(), Error> {
        // Before the end is heard of: whoever hears of it may let the call go.
        self.job.extend(time);
        self.job.enter_background();
        let sent = self.send_event(ReplyEvent::End(Outcome::Done(metadata))).await;
        sent.inspect_err(|_| self.job.leave_background())
    }

    pub(crate) async fn send_completion(&self, mut completion: Completion) -> Result<(), Error> {
        for value in &mut completion.values {
            *value = self.job.redact_text(std::mem::take(value))?.into_owned();
        }
        self.send(Chunk::Completion(completion.truncated())).await
    }

    /// Says how far the call is; nothing happens unless the caller asked for progress. What is no
    /// number (a division by zero) is not told, nor what does not rise or comes too soon after other news.
    pub async fn send_progress(&self, done: f64, total: Option<f64>, message: Option<String>) -> Result<(), Error> {
        if !self.job.wants_progress || !done.is_finite() || !self.job.progress_throttle.lock().admits(done) {
            return Ok(());
        }
        let total = total.filter(|total| total.is_finite());
        self.send(Chunk::Notification(ReplyNotification::Progress { done, total, message })).await
    }

    /// Sends a log message; nothing happens unless the caller asked for messages of this level.
    pub async fn send_log(&self, level: LogLevel, logger: Option<String>, data: Value) -> Result<(), Error> {
        if self.job.log_level.is_none_or(|log_level| level < log_level) {
            return Ok(());
        }
        self.send(Chunk::Notification(ReplyNotification::Log { level, logger, data })).await
    }

    async fn send(&self, chunk: Chunk) -> Result<(), Error> {
        self.send_event(ReplyEvent::Chunk(chunk)).await
    }

    async fn send_event(&self, event: ReplyEvent) -> Result<(), Error> {
        self.push(ReplyMessage::Event(event)).await
    }

    pub(crate) async fn push(&self, reply_message: ReplyMessage) -> Result<(), Error> {
        let cancelled = || Error::new(ErrorKind::Cancelled, "the call was cancelled");
        tokio::select! {
            biased;
            () = self.job.cancelled() => Err(cancelled()),
            sent = self.sender.send(reply_message) => sent.map_err(|_| cancelled()),
        }
    }

    /// Ends the answer. Waits for a free place unless the reader is gone.
    pub(crate) async fn end(&self, outcome: Outcome) {
        // An error here means that nobody reads, and then nobody needs the end.
        let _ = self.sender.send(ReplyMessage::Event(ReplyEvent::End(outcome))).await;
    }
}
