//! Answers that are one JSON object.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Budget, Error, ErrorKind};
use tidegate_runtime::{AnswerMeta, BodyMetadata, Job, ReplySender};

/// Adds the nodes whose rows the answer lacks, if any, so that the answer needs no further note: `partial`,
/// `missing_nodes`, the share of the rows, and the reason as a sentence.
pub(crate) fn state_missing_nodes(json: &mut Map<String, Value>, job: &Job) {
    let Some(missing) = job.missing_nodes() else { return };
    let reason = match json.get("reason").and_then(Value::as_str) {
        Some(other) => format!("{missing} {other}"),
        None => missing.to_string(),
    };
    json.insert("reason".to_owned(), reason.into());
    json.extend(missing.to_json_members());
    job.set_missing_nodes_stated();
}

/// Sends `json`: as text for a model, as a body over REST.
///
/// # Errors
/// `TooLarge` if it exceeds the inline budget of a model.
pub(crate) async fn send_json(
    mut json: Map<String, Value>,
    job: &Arc<Job>,
    reply: &ReplySender,
) -> Result<AnswerMeta, Error> {
    state_missing_nodes(&mut json, job);
    let text = Value::Object(json).to_string();
    let bytes_max = job.inline_budget().bytes.filter(|_| job.format().is_none());
    if let Some(max) = bytes_max.filter(|max| text.len() > *max) {
        let message = format!("the answer has {} bytes; the maximum is {max}", text.len());
        let hint = "Ask for less: fewer fields, columns, series or points, or a smaller limit.";
        return Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint));
    }
    send_redacted(job.redact_json(text)?, job, reply).await?;
    Ok(AnswerMeta::default())
}

/// Sends `text`, whose secrets are masked: as a body of JSON over REST, else within the fence of a model.
pub(crate) async fn send_redacted(text: String, job: &Job, reply: &ReplySender) -> Result<(), Error> {
    if job.format().is_some() {
        reply.begin_body(BodyMetadata::new("application/json", Budget::default())).await?;
        return reply.send_bytes(text.into_bytes().into()).await;
    }
    let text = job.fence().map(|fence| fence.wrap(&text)).unwrap_or(text);
    reply.send_redacted_text(text).await?;
    reply.end_text().await
}
