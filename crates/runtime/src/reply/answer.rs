//! The answer of a handler: a value, or what writes it; and what is known of it before its first byte and at its end.
//!
//! A value is presented in these steps, which are those of rows without a format, pages and a store (`query`, `executor/delivery.rs`):
//!
//! 1. Missing nodes: an object of data names the nodes whose rows it lacks; a note does it for content at its end.
//! 2. Budget: an object of data that exceeds it is refused, because a part of it would be no JSON.
//! 3. Mask: secrets are replaced in texts and in strings of JSON.
//! 4. Fence: data for a model is delimited; a body is not.
//! 5. Count: bytes are charged as the parts are sent (`ReplySender`).

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tidegate_core::{Budget, Completion, Content, ContentRole, Error, ErrorKind, MissingNodes};

use super::{Reply, ReplyPart, ReplySender};
use crate::job::Job;

/// The answer of a handler: a value, or what writes it piece by piece. It is sent after the handler has returned, so that a
/// handler that fails has sent nothing.
#[derive(Debug)]
pub struct Answer {
    body: AnswerBody,
    structured: Option<Box<RawValue>>,
    meta: AnswerMeta,
}

enum AnswerBody {
    Content(Vec<Content>),
    Messages(Vec<(ContentRole, Content)>),
    Json(Map<String, Value>),
    Data(String),
    Completion(Completion),
    Written(WriteAnswer),
}

type WriteAnswer = Box<dyn FnOnce(ReplySender) -> BoxFuture<'static, Result<AnswerMeta, Error>> + Send>;

impl Answer {
    /// One item of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![Content::text(text)])
    }

    /// Items of content, which may be none.
    pub fn content(items: Vec<Content>) -> Self {
        Self::new(AnswerBody::Content(items))
    }

    /// The messages of a prompt.
    pub fn messages(messages: Vec<(ContentRole, Content)>) -> Self {
        Self::new(AnswerBody::Messages(messages))
    }

    /// One object of data: text for a model, within its fence and its budget; a body over REST. It names the nodes whose
    /// rows are missing.
    pub fn json(object: Map<String, Value>) -> Self {
        Self::new(AnswerBody::Json(object))
    }

    /// Data as text whose secrets are masked, as [`Self::json`] sends it: for answers that fit the budget whatever it is.
    pub fn data(text: String) -> Self {
        Self::new(AnswerBody::Data(text))
    }

    /// The values of a completion.
    pub(crate) fn completion(completion: Completion) -> Self {
        Self::new(AnswerBody::Completion(completion))
    }

    /// What `write` sends, in pieces of bounded size. It awaits the sender, which is slow if the client is, and observes
    /// [`Job::cancelled`].
    pub fn written<F, Fut>(write: F) -> Self
    where
        F: FnOnce(ReplySender) -> Fut + Send + 'static,
        Fut: Future<Output = Result<AnswerMeta, Error>> + Send + 'static,
    {
        Self::new(AnswerBody::Written(Box::new(|reply| write(reply).boxed())))
    }

    /// This answer, and then what `follow` sends. It receives what is known of this answer, and returns what is known of
    /// both.
    #[must_use]
    pub fn followed_by<F, Fut>(self, follow: F) -> Self
    where
        F: FnOnce(ReplySender, AnswerMeta) -> Fut + Send + 'static,
        Fut: Future<Output = Result<AnswerMeta, Error>> + Send + 'static,
    {
        Self::written(|reply| async move {
            let meta = self.send(&reply).await?;
            follow(reply, meta).await
        })
    }

    fn new(body: AnswerBody) -> Self {
        Self { body, structured: None, meta: AnswerMeta::default() }
    }

    /// Adds the answer as structured data, which conforms to the tool's output schema. Its numbers keep all their digits. It
    /// has no effect on a [written](Self::written) answer, which sends its own.
    #[must_use]
    pub fn with_structured(self, json: Box<RawValue>) -> Self {
        Self { structured: Some(json), ..self }
    }

    /// Adds what is known of the answer; replaced by what a [written](Self::written) answer returns.
    #[must_use]
    pub fn with_meta(self, meta: AnswerMeta) -> Self {
        Self { meta, ..self }
    }

    /// Sends this answer within one that is [written](Self::written), and returns what is known of it.
    ///
    /// # Errors
    /// As the methods of [`ReplySender`], and `TooLarge` for [JSON](Self::json) that exceeds the inline budget.
    pub async fn send(self, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        match self.body {
            AnswerBody::Written(write) => return write(reply.clone()).await,
            AnswerBody::Content(items) => {
                for item in items {
                    reply.send_item(item).await?;
                }
            }
            AnswerBody::Messages(messages) => {
                for (role, content) in messages {
                    reply.send_prompt_message(role, content).await?;
                }
            }
            AnswerBody::Json(object) => send_data(fit_json(object, reply.job())?, reply).await?,
            AnswerBody::Data(text) => send_data(text, reply).await?,
            AnswerBody::Completion(completion) => reply.send_completion(completion).await?,
        }
        if let Some(json) = self.structured {
            reply.send_structured_json(json.get().to_owned()).await?;
        }
        Ok(self.meta)
    }
}

impl std::fmt::Debug for AnswerBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Content(_) => "content",
            Self::Messages(_) => "messages",
            Self::Json(_) => "JSON",
            Self::Data(_) => "data",
            Self::Completion(_) => "completion",
            Self::Written(_) => "written",
        })
    }
}

/// `object` as text whose secrets are masked, with the nodes whose rows are missing.
///
/// # Errors
/// `TooLarge` if it exceeds the inline budget of a model.
fn fit_json(mut object: Map<String, Value>, job: &Job) -> Result<String, Error> {
    if let Some(missing) = job.missing_nodes() {
        let reason = match object.get("reason").and_then(Value::as_str) {
            Some(other) => format!("{missing} {other}"),
            None => missing.to_string(),
        };
        object.insert("reason".to_owned(), reason.into());
        object.extend(missing.to_json_members());
        job.set_missing_nodes_stated();
    }
    let text = Value::Object(object).to_string();
    let bytes_max = job.limits().inline.bytes.filter(|_| job.format().is_none());
    if let Some(max) = bytes_max.filter(|max| text.len() > *max) {
        let message = format!("the answer has {} bytes; the maximum is {max}", text.len());
        let hint = "Ask for less: fewer fields, columns, series or points, or a smaller limit.";
        return Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint));
    }
    job.protection().redact_json(text)
}

/// Sends `text` as a body of JSON over REST, else within the fence of a model.
async fn send_data(text: String, reply: &ReplySender) -> Result<(), Error> {
    let job = reply.job();
    if job.format().is_some() {
        reply.begin_body(BodyMetadata::new("application/json", Budget::default())).await?;
        return reply.send_bytes(text.into_bytes().into()).await;
    }
    reply.send_redacted_text(job.protection().fence_data(text)).await?;
    reply.end_text().await
}

/// What is known of an answer at its end. A handler fills what applies to its answer; adapters translate it to their
/// protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnswerMeta {
    /// Whether the text of the rows was sent as a whole, and not as they were read.
    pub was_buffered: Option<bool>,
    /// The number of rows: in the answer, or stored by a write.
    pub rows: Option<u64>,
    /// The size of the content in bytes, without notes.
    pub bytes: Option<u64>,
    /// The time from the start of the query to the end of the answer.
    pub elapsed: Option<Duration>,
    /// Whether more exists than the answer contains.
    pub is_truncated: Option<bool>,
    /// The position of the next row, to continue from.
    pub cursor: Option<String>,
    /// Whether an earlier answer was used again.
    pub is_cached: bool,
    /// The URI of the stored result that contains the whole content.
    pub result_uri: Option<String>,
    /// The nodes whose rows the answer lacks. It comes from the job; what a handler sets is replaced.
    pub missing_nodes: Option<Arc<MissingNodes>>,
    /// What a write reports beside the number of rows.
    pub write: Option<Box<WriteSummary>>,
    /// What is meant for the adapter that made the call. Clients do not receive it as metadata.
    pub adapter: Option<Box<AdapterDetail>>,
    /// Further members, under names of the handler.
    pub other: Map<String, Value>,
}

/// What a write reports beside the number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteSummary {
    /// The number of rows that were rejected.
    pub rejected: u64,
    /// The position of the write in the log of its database.
    pub sequence: u64,
    /// Whether the write created the table.
    pub is_created: bool,
    /// The number of rows that an earlier write with the same key has stored, if it can be compared with the rows sent.
    pub repeated_rows: Option<u64>,
}

/// What an adapter needs of the answer to a call that it made for a request of its own protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdapterDetail {
    /// The only database whose tables are listed.
    Database {
        /// The name.
        name: String,
        /// The key of its SQL dialect.
        dialect: &'static str,
    },
    /// The only table that is described.
    Table {
        /// The size on disk in bytes, if it is known.
        bytes: Option<u64>,
        /// The columns that are indexed.
        indexed_columns: Vec<String>,
    },
    /// The outcome of a request of a telemetry sender.
    Receiver(ReceiverOutcome),
}

/// The outcome of a request of a telemetry sender that was accepted. The body of the answer has the details.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverOutcome {
    /// The media type of the body.
    pub media_type: &'static str,
    /// The number of records that were rejected. Those that the sender may repeat do not count.
    pub rejected: u64,
    /// The records of remote write that were stored, if its version reports them.
    pub written: Option<WrittenRecords>,
}

/// The numbers of records of remote write that were stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenRecords {
    /// Samples, with those that mark the end of a series.
    pub samples: u64,
    /// Exemplars.
    pub exemplars: u64,
}

/// The properties of a body that are known before its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyMetadata {
    /// Its media type, with parameters.
    pub media_type: &'static str,
    /// The limits after which it is truncated.
    pub budget: Budget,
    /// The version of a body that is the same for each request; `None` for rows, which can change.
    pub version: Option<BodyVersion>,
    /// The file that the body contains; `None` for rows.
    pub file: Option<BodyFile>,
}

impl BodyMetadata {
    /// A body of rows, which can change.
    pub fn new(media_type: &'static str, budget: Budget) -> Self {
        Self { media_type, budget, version: None, file: None }
    }
}

/// A file that is sent as a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFile {
    /// The name without folders.
    pub name: String,
    /// The media type, as declared in the configuration.
    pub media_type: Option<String>,
}

/// The version of a body that is the same for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyVersion {
    /// A tag that identifies the bytes: equal tags mean equal bytes. Visible ASCII without quotes.
    pub tag: String,
    /// The length in bytes, if known before they are sent.
    pub bytes: Option<u64>,
}

impl Reply {
    /// The whole body, which is at most `bytes_max` bytes, and what is known of the answer at its end. For callers that
    /// need a short answer as one value.
    ///
    /// # Errors
    /// The error of the call; `Internal` for a longer body.
    pub async fn collect_body(&mut self, bytes_max: usize) -> Result<(Bytes, AnswerMeta), Error> {
        let mut body = BytesMut::new();
        while let Some(part) = self.next().await {
            match part {
                ReplyPart::Bytes(piece) if body.len() + piece.len() <= bytes_max => {
                    body.extend_from_slice(&piece);
                }
                ReplyPart::Bytes(_) => {
                    let name = self.job.target().name();
                    return Err(Error::internal(format!("the answer of {name} has more than {bytes_max} bytes")));
                }
                ReplyPart::End(end) => return end.map(|metadata| (body.freeze(), metadata)),
                _ => {}
            }
        }
        Err(Error::internal("the answer was read before"))
    }
}
