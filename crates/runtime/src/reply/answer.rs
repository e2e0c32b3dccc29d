//! The answer of a handler.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tidegate_core::{Budget, Content, ContentRole, Error, ErrorKind};

use super::{AnswerMeta, BodyMetadata, ReplySender};
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
    Written(WriteAnswer),
}

type WriteAnswer = Box<dyn FnOnce(ReplySender) -> BoxFuture<'static, Result<AnswerMeta, Error>> + Send>;

impl Answer {
    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![Content::text(text)])
    }

    /// Blocks of content, which may be none.
    pub fn content(blocks: Vec<Content>) -> Self {
        Self::new(AnswerBody::Content(blocks))
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
            AnswerBody::Content(blocks) => {
                for block in blocks {
                    reply.send_block(block).await?;
                }
            }
            AnswerBody::Messages(messages) => {
                for (role, content) in messages {
                    reply.send_prompt_message(role, content).await?;
                }
            }
            AnswerBody::Json(object) => send_data(fit_json(object, reply.job())?, reply).await?,
            AnswerBody::Data(text) => send_data(text, reply).await?,
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
