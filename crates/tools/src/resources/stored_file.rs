//! The bytes of a stored file as they are, and what is said of it where rows were expected.

use std::sync::Arc;

use futures::StreamExt;
use serde_json::Value;
use tidegate_core::{AnswerFormat, BodyFile, BodyHead, Budget, Content, Error, ErrorKind, Job, Lasting, ReplySender};
use tidegate_query::{End, StoredFile, StoredResult};

use crate::beginning::{Shown, show};

/// The media type of a file of which nobody says one.
const OCTETS: &str = "application/octet-stream";

/// Whether the bytes of the file are wanted, and not the rows of its blocks: an address that names no format.
///
/// # Errors
/// `InvalidArguments` for a format that is one of tables.
pub(super) fn is_wanted_as_it_is(job: &Job) -> Result<bool, Error> {
    let named = job.arguments().get("format").and_then(Value::as_str).and_then(AnswerFormat::parse);
    named.map_or(Ok(true), |format| check(format).map(|()| false))
}

/// That blocks of a file can be had as `format`.
///
/// # Errors
/// `InvalidArguments` for all formats but the one in which they are stored.
pub(super) fn check(format: AnswerFormat) -> Result<(), Error> {
    if format == AnswerFormat::Arrow {
        return Ok(());
    }
    let message = format!("the stored result holds a file, which is no table to be had as {}", format.name());
    Err(Error::new(ErrorKind::InvalidArguments, message)
        .with_hint("/results/{id}/data without a format gives the file itself; format=arrow gives its blocks."))
}

/// What is missing of `file`, which ended because of `reason`.
pub(super) fn incomplete(result: &StoredResult, file: &StoredFile, reason: &str) -> String {
    let kept = result.file_bytes_kept();
    format!("the stored file is not whole: {kept} of its {} bytes were kept, then it ended: {reason}", file.bytes)
}

/// Sends the bytes of `file` as a body that is the file. What is not whole at its end is the caller's to say.
pub(super) async fn send(
    result: &Arc<StoredResult>,
    file: &StoredFile,
    job: &Job,
    reply: &ReplySender,
) -> Result<(), Error> {
    // Nothing is sent before the first bytes are there, or it is known that there are none.
    result.next_block(0).await;
    super::result::whole(result, super::result::takes_part(job))?;
    let lasting = (result.end() == Some(End::Complete))
        .then(|| Lasting { tag: format!("{}-file", result.stage().tag()), bytes: Some(file.bytes) });
    let described = BodyFile { name: file.name.clone(), media_type: file.media_type.clone() };
    reply.body(BodyHead { media_type: OCTETS, bounds: Budget::default(), lasting, file: Some(described) }).await?;
    let mut pieces = result.file_bytes();
    while let Some(piece) = pieces.next().await.transpose()? {
        reply.bytes(piece).await?;
    }
    super::result::whole(result, super::result::takes_part(job))
}

/// Shows as much of `file` as the answer carries.
pub(super) async fn show_beginning(
    result: &Arc<StoredResult>,
    file: &StoredFile,
    job: &Job,
    reply: &ReplySender,
) -> Result<(), Error> {
    let StoredFile { name, bytes, .. } = file;
    let line = match show(result.file_bytes(), job.inline_budget().bytes, reply).await? {
        Shown::Whole => return Ok(()),
        Shown::Part(shown) => format!("Shown: the first {shown} of the file's {bytes} bytes."),
        Shown::Nothing => format!("{name} has {bytes} bytes, which are not text: none of them is shown."),
    };
    reply.end_text().await?;
    reply.block(Content::text(format!("{line} /results/{{id}}/data gives it over HTTP."))).await
}
