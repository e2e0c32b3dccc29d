//! Stored files: their bytes, and the errors where rows were requested.

use std::sync::Arc;

use futures::StreamExt;
use serde_json::Value;
use tidegate_core::{Budget, Content, Error, ErrorKind, Format};
use tidegate_results::{FileDescription, ResultEnd, StoredResult};
use tidegate_runtime::{BodyFile, BodyMetadata, BodyVersion, Job, ReplySender};

use super::{accepts_partial, check_complete};
use crate::text_preview::{PreviewExtent, send_preview};

const OCTET_STREAM: &str = "application/octet-stream";

/// Whether the URI requests the bytes of the file rather than the rows of its blocks: it has no `format`.
pub(super) fn requests_raw_file(job: &Job) -> Result<bool, Error> {
    let named =
        job.arguments().get("format").and_then(Value::as_str).and_then(|name| Format::parse(name, &Format::FOR_REST));
    named.map_or(Ok(true), |format| check_block_format(format).map(|()| false))
}

/// Accepts only the stored format: a file has no rows to convert.
pub(super) fn check_block_format(format: Format) -> Result<(), Error> {
    if format == Format::Arrow {
        return Ok(());
    }
    let message = format!("the stored result is a file, which cannot be read as {}", format.name());
    Err(Error::new(ErrorKind::InvalidArguments, message)
        .with_hint("/results/{id}/data without a format returns the file; format=arrow returns its blocks."))
}

/// Sends the bytes of `file` as the body. The caller reports a missing end.
pub(super) async fn send_raw_file(
    result: &Arc<StoredResult>,
    file: &FileDescription,
    reply: &ReplySender,
) -> Result<(), Error> {
    // Nothing is sent before the first bytes are available, or their absence is known.
    result.next_block(0).await;
    check_complete(result, accepts_partial(reply.job()))?;
    let body_version = (result.end() == Some(ResultEnd::Complete))
        .then(|| BodyVersion { tag: format!("{}-file", result.progress().entity_tag()), bytes: Some(file.bytes) });
    let described = BodyFile { name: file.name.clone(), media_type: file.media_type.clone() };
    reply
        .begin_body(BodyMetadata {
            media_type: OCTET_STREAM,
            budget: Budget::default(),
            version: body_version,
            file: Some(described),
        })
        .await?;
    let mut chunks = result.stream_file_bytes();
    while let Some(chunk) = chunks.next().await.transpose()? {
        reply.send_bytes(chunk).await?;
    }
    check_complete(result, accepts_partial(reply.job()))
}

pub(super) async fn send_text_preview(
    result: &Arc<StoredResult>,
    file: &FileDescription,
    reply: &ReplySender,
) -> Result<(), Error> {
    let FileDescription { name, bytes, .. } = file;
    let line = match send_preview(result.stream_file_bytes(), reply.job().limits().inline.bytes, reply).await? {
        PreviewExtent::Complete => return Ok(()),
        PreviewExtent::Truncated(visible) => format!("Shown: the first {visible} of the file's {bytes} bytes."),
        PreviewExtent::NotText => format!("{name} has {bytes} bytes and is not text; its content is not shown."),
    };
    reply.end_text().await?;
    reply.send_block(Content::text(format!("{line} /results/{{id}}/data returns it over HTTP."))).await
}
