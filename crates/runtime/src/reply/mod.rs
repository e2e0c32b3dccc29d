//! The reply to a call: the parts of its answer, and what its handler says meanwhile, through one bounded channel; then its
//! end.
//!
//! A slow client slows the query instead of using memory: the sender waits until the channel has room.

mod answer;
mod answer_meta;
mod body;
mod input;
mod progress_throttle;
mod running_call;
mod sender;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::{
    Completion, Content, ContentRole, Error, ErrorKind, InputAnswer, InputRequest, JsonSchema, LogLevel,
};
use tokio::sync::{mpsc, oneshot};

pub use self::answer::Answer;
pub use self::answer_meta::{AdapterDetail, AnswerMeta, ReceiverOutcome, WriteSummary, WrittenRecords};
pub use self::body::{BodyFile, BodyMetadata, BodyVersion};
pub use self::running_call::RunningCall;
pub use self::sender::ReplySender;
use crate::job::Job;

/// Handlers keep texts near 64 KiB, so an answer uses at most a few hundred KiB of memory.
const PARTS_WAITING_MAX: usize = 4;

/// A part of a reply, in the order in which an adapter receives them.
#[derive(Debug)]
pub enum ReplyPart {
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
        (ReplySender::new(RunningCall::new(job, sender), output_schema), reply)
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

fn cancelled_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was cancelled")
}
