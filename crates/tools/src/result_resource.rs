//! `tidegate://results/{id}`: the manifest of a stored result, its blocks, and all its rows; or the bytes of a stored
//! file, and the errors where rows were requested. The beginning of a file is whole characters, or nothing if it is not
//! text.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use serde_json::Value;
use tidegate_core::{
    Budget, CallLimits, Caller, Content, Error, ErrorKind, Format, ResourceBody, ResourceContents, TemplateVariables,
    TransportKind,
};
use tidegate_query::{OutputOptions, QueryRows, RowEncoder, result_manifest};
use tidegate_results::{END_OF_STREAM, FileDescription, ResultEnd, ResultStore, StoredResult};
use tidegate_runtime::{
    Answer, AnswerMeta, BodyFile, BodyMetadata, BodyVersion, Handler, Job, ReplySender, ResourceTemplate,
    ResourceWatcher, RunningCall,
};

use crate::resources::{JSON, uri_template};
use crate::tool_definition::context_handler;
use crate::tool_services::ToolServices;

const MANIFEST: &str = "tidegate://results/{id}";
const BLOCK: &str = "tidegate://results/{id}/blocks/{block}";
const DATA: &str = "tidegate://results/{id}/data";
const CHUNK_BYTES_MAX: usize = 64 * 1024;
/// The names of the resources of stored results.
pub const STORED_RESULT_NAMES: [&str; 3] = [MANIFEST_NAME, BLOCK_NAME, DATA_NAME];
const MANIFEST_NAME: &str = "stored_result";
const BLOCK_NAME: &str = "stored_result_block";
const DATA_NAME: &str = "stored_result_data";

/// The resources of stored results; empty if the node stores none.
pub(crate) fn templates(services: &Arc<ToolServices>) -> Vec<ResourceTemplate> {
    if services.executor.store().is_none() {
        return Vec::new();
    }
    let manifest = result_template(
        MANIFEST,
        MANIFEST_NAME,
        "The manifest of a stored result",
        context_handler(services, read_manifest),
    );
    let block = result_template(
        BLOCK,
        BLOCK_NAME,
        "One block of a stored result, as an Arrow stream",
        context_handler(services, read_block),
    );
    let data = result_template(DATA, DATA_NAME, "The rows of a stored result", context_handler(services, read_data));
    let watcher: Option<Arc<dyn ResourceWatcher>> = Some(Arc::new(ResultWatcher(services.clone())));
    vec![
        ResourceTemplate { mime_type: Some(JSON.to_owned()), watcher, ..manifest },
        ResourceTemplate { mime_type: Some(Format::Arrow.media_type().to_owned()), ..block },
        data,
    ]
}

fn result_template(text: &str, name: &str, description: &str, handler: Arc<dyn Handler>) -> ResourceTemplate {
    let mut template = ResourceTemplate::new(uri_template(text), name, handler);
    template.description = Some(description.to_owned());
    // The content is not meant for a model to read whole; its transport bounds it.
    template.limits = CallLimits { inline: Some(Budget::default()), ..CallLimits::default() };
    template
}

/// The store and the result of the call, if it belongs to the caller, who may still query it.
fn find_result<'a>(services: &'a ToolServices, job: &Job) -> Result<(&'a Arc<ResultStore>, Arc<StoredResult>), Error> {
    let no_store = || Error::internal("the server has no result store");
    let store = services.executor.store().ok_or_else(no_store)?;
    let result = store.get(job.variable("id").unwrap_or_default().parse()?, job.caller())?;
    services.authorize_read(&result, job.caller())?;
    if let Some(missing) = &result.header().missing_nodes {
        job.record_missing_nodes(missing)?;
    }
    Ok((store, result))
}

async fn read_manifest(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let (store, result) = find_result(&services, &call)?;
    let has_links = !matches!(
        call.caller().origin.transport,
        TransportKind::Stdio | TransportKind::CommandLine | TransportKind::FlightSql
    );
    let reader = has_links.then(|| call.caller());
    // The manifest is one JSON object, and it names missing nodes.
    call.set_missing_nodes_stated();
    let manifest = result_manifest(store, &result, reader).to_string();
    // Over HTTP, this text is the document itself, and not a block of one.
    Ok(Answer::written(move |reply| async move {
        reply.send_text(manifest).await?;
        Ok(AnswerMeta::default())
    }))
}

async fn read_block(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let (store, result) = find_result(&services, &call)?;
    let name = call.variable("block").unwrap_or_default();
    let absent = || {
        let id = result.header().id;
        Error::new(
            ErrorKind::NotFound,
            format!("the stored result {id} has no block {name}; blocks are counted from 0"),
        )
    };
    // The canonical number only, so that a block has one URI.
    let index: usize = name.parse().map_err(|_| absent())?;
    if index.to_string() != name {
        return Err(absent());
    }
    let block = result.block_of_sequence(index).await?;
    let hash = result.next_block(index).await.map(|stored| stored.sha256).unwrap_or_default();
    let (store, block_bytes) = (store.clone(), block.bytes().len() as u64);
    let Some(format) = call.format() else {
        let embedded = embed_block(block.bytes(), &call)?;
        store.count_read_block(block_bytes);
        return Ok(embedded);
    };
    if result.file().is_some() {
        check_block_format(format)?;
    }
    Ok(Answer::written(move |reply| async move {
        store.count_read_block(block_bytes);
        if format == Format::Arrow {
            let bytes = Some(block_bytes);
            reply.begin_body(body_head(format.media_type(), Some(BodyVersion { tag: hash, bytes }))).await?;
            send_chunks(block.bytes().clone(), &reply).await?;
            return Ok(AnswerMeta::default());
        }
        let mut encoder = RowEncoder::new(format, result.schema())?;
        let version = BodyVersion { tag: format!("{hash}-{}", format.name()), bytes: None };
        reply.begin_body(body_head(encoder.media_type(), Some(version))).await?;
        for batch in block.batches()? {
            send_chunks(encoder.write(&batch)?, &reply).await?;
        }
        send_chunks(encoder.finish(false)?, &reply).await?;
        Ok(AnswerMeta::default())
    }))
}

fn embed_block(bytes: &Bytes, job: &Job) -> Result<Answer, Error> {
    let encoded_bytes = bytes.len().div_ceil(3) * 4;
    if let Some(max) = job.limits().inline.bytes.filter(|max| encoded_bytes > *max) {
        let message = format!("the block takes {encoded_bytes} bytes in base64; a message can carry {max}");
        return Err(Error::new(ErrorKind::TooLarge, message)
            .with_hint("Get it over HTTP at /results/{id}/blocks/{n}, or read page by page with the cursor."));
    }
    let contents = ResourceContents {
        uri: job.target().name().to_owned(),
        mime_type: Some(Format::Arrow.media_type().to_owned()),
        body: ResourceBody::Blob(bytes.clone()),
    };
    // The schema of the block names missing nodes.
    job.set_missing_nodes_stated();
    Ok(Answer::content(vec![Content::Resource(contents)]))
}

async fn read_data(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let (store, result) = find_result(&services, &call)?;
    let takes_part = accepts_partial(&call);
    check_complete(&result, takes_part)?;
    // The result may still be growing, so the job gets the time limit of the store.
    call.extend(store.limits().timeout);
    let store = store.clone();
    Ok(Answer::written(move |reply| async move {
        match (reply.job().format(), result.file()) {
            (None, Some(file)) => send_text_preview(&result, file, &reply).await,
            (Some(_), Some(file)) if requests_raw_file(reply.job())? => send_raw_file(&result, file, &reply).await,
            (None, None) => answer_first_rows(&services, &result).send(&reply).await.map(drop),
            (Some(Format::Arrow), _) | (Some(_), Some(_)) => {
                send_arrow_stream(&store, &result, takes_part, &reply).await
            }
            (Some(format), None) => send_rendered_rows(&result, format, takes_part, &reply).await,
        }?;
        let rows = result.file().is_none().then(|| result.progress().rows());
        let is_truncated = Some(result.end() != Some(ResultEnd::Complete));
        Ok(AnswerMeta { rows, is_truncated, ..AnswerMeta::default() })
    }))
}

fn answer_first_rows(services: &ToolServices, result: &Arc<StoredResult>) -> Answer {
    let rows = QueryRows::new(result.schema().clone(), result.rows_from(0));
    let overflow_hint = "Page through the rest with the cursor, or get it over HTTP.";
    let output_options = OutputOptions { overflow_hint, ..OutputOptions::default() };
    services.executor.answer_rows(rows, output_options)
}

struct ResultWatcher(Arc<ToolServices>);

#[async_trait]
impl ResourceWatcher for ResultWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let Some(store) = self.0.executor.store() else { return Ok(None) };
        let Some(Ok(id)) = variables.get("id").map(|id| id.parse()) else { return Ok(None) };
        let found = store.get(id, caller).and_then(|result| self.0.authorize_read(&result, caller).map(|()| result));
        match found {
            Ok(result) => {
                let progress = result.progress();
                Ok(Some(format!("{} {}", progress.blocks.len(), progress.status())))
            }
            // Not the caller's, never existed, or gone.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// All blocks as one Arrow stream: their messages unchanged, between one schema and one end marker.
async fn send_arrow_stream(
    store: &ResultStore,
    result: &Arc<StoredResult>,
    takes_part: bool,
    reply: &ReplySender,
) -> Result<(), Error> {
    let mut index = 0;
    while let Some(stored) = result.next_block(index).await {
        let block = result.block(index).await?;
        store.count_read_block(block.bytes().len() as u64);
        if index == 0 {
            let progress = result.progress();
            let version =
                || BodyVersion { tag: progress.entity_tag(), bytes: Some(block.stream_bytes(&progress.blocks)) };
            let body_version = (progress.end == Some(ResultEnd::Complete)).then(version);
            reply.begin_body(body_head(Format::Arrow.media_type(), body_version)).await?;
            send_chunks(block.schema_message(), reply).await?;
        }
        send_chunks(block.batch_messages(), reply).await?;
        reply.job().usage().count_rows(stored.rows);
        index += 1;
    }
    // An incomplete stream gets no end marker.
    check_complete(result, takes_part)?;
    send_chunks(Bytes::from_static(&END_OF_STREAM), reply).await
}

async fn send_rendered_rows(
    result: &Arc<StoredResult>,
    format: Format,
    takes_part: bool,
    reply: &ReplySender,
) -> Result<(), Error> {
    // Nothing is sent before the first rows are available, or their absence is known.
    result.next_block(0).await;
    check_complete(result, takes_part)?;
    let mut encoder = RowEncoder::new(format, result.schema())?;
    let body_version = (result.end() == Some(ResultEnd::Complete)).then(|| {
        let tag = format!("{}-{}", result.progress().entity_tag(), format.name());
        BodyVersion { tag, bytes: None }
    });
    reply.begin_body(body_head(encoder.media_type(), body_version)).await?;
    let mut rows = result.rows_from(0);
    while let Some(batch) = rows.next().await.transpose()? {
        send_chunks(encoder.write(&batch)?, reply).await?;
        reply.job().usage().count_rows(batch.num_rows() as u64);
    }
    // An incomplete stream gets no end marker.
    check_complete(result, takes_part)?;
    send_chunks(encoder.finish(false)?, reply).await
}

fn body_head(media_type: &'static str, body_version: Option<BodyVersion>) -> BodyMetadata {
    BodyMetadata { media_type, budget: Budget::default(), version: body_version, file: None }
}

async fn send_chunks(mut bytes: Bytes, reply: &ReplySender) -> Result<(), Error> {
    while !bytes.is_empty() {
        reply.send_bytes(bytes.split_to(bytes.len().min(CHUNK_BYTES_MAX))).await?;
    }
    Ok(())
}

fn accepts_partial(job: &Job) -> bool {
    job.arguments().get("partial").is_some_and(|partial| *partial == Value::Bool(true))
}

/// Checks that `result` is complete so far, or that the caller accepts its stored part.
fn check_complete(result: &StoredResult, takes_part: bool) -> Result<(), Error> {
    let progress = result.progress();
    match &progress.end {
        Some(ResultEnd::Incomplete(reason)) if !takes_part => {
            let message = match result.file() {
                Some(file) => format!(
                    "the stored file is incomplete: {} of its {} bytes were stored before it ended: {reason}",
                    result.stored_file_bytes(),
                    file.bytes
                ),
                None => format!(
                    "the stored result is incomplete: {} rows were stored before it ended: {reason}",
                    progress.rows()
                ),
            };
            Err(Error::new(ErrorKind::Unavailable, message).with_hint("?partial=true returns what is stored."))
        }
        Some(ResultEnd::Removed(reason)) => {
            Err(Error::new(ErrorKind::NotFound, format!("the stored result no longer exists: {reason}")))
        }
        _ => Ok(()),
    }
}

const OCTET_STREAM: &str = "application/octet-stream";

/// Whether the URI requests the bytes of the file rather than the rows of its blocks: it has no `format`.
fn requests_raw_file(job: &Job) -> Result<bool, Error> {
    let named = job.text_argument("format").and_then(|name| Format::parse(name, &Format::FOR_REST));
    named.map_or(Ok(true), |format| check_block_format(format).map(|()| false))
}

/// Accepts only the stored format: a file has no rows to convert.
fn check_block_format(format: Format) -> Result<(), Error> {
    if format == Format::Arrow {
        return Ok(());
    }
    let message = format!("the stored result is a file, which cannot be read as {}", format.name());
    Err(Error::new(ErrorKind::InvalidArguments, message)
        .with_hint("/results/{id}/data without a format returns the file; format=arrow returns its blocks."))
}

/// Sends the bytes of `file` as the body. The caller reports a missing end.
async fn send_raw_file(result: &Arc<StoredResult>, file: &FileDescription, reply: &ReplySender) -> Result<(), Error> {
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

async fn send_text_preview(
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
    reply.send_item(Content::text(format!("{line} /results/{{id}}/data returns it over HTTP."))).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewExtent {
    Complete,
    /// The first bytes of the file (their number), as text.
    Truncated(u64),
    /// Nothing: the file is not text.
    NotText,
}

/// A line waits for its end, so that no piece divides a secret in it, and a private key of several lines waits for its last
/// one. What is longer is divided.
const LINE_BYTES_MAX: usize = 256 * 1024;
/// How a private key begins and ends.
const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_END: &str = "-----END ";

/// Sends the text in `chunks`, at most `bytes_max` bytes. Invalid UTF-8 after valid text is replaced.
pub(crate) async fn send_preview(
    mut chunks: impl Stream<Item = Result<Bytes, Error>> + Unpin,
    bytes_max: Option<usize>,
    reply: &ReplySender,
) -> Result<PreviewExtent, Error> {
    let (mut left, mut preview_bytes) = (bytes_max.unwrap_or(usize::MAX), 0);
    // An incomplete character, and incomplete lines; the rest of them is in the next chunk.
    let (mut pending, mut text) = (Vec::new(), String::new());
    let mut is_text = false;
    while let Some(chunk) = chunks.next().await.transpose()? {
        pending.extend_from_slice(&chunk);
        let text_bytes = match std::str::from_utf8(&pending) {
            Ok(_) => pending.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) if !is_text => return Ok(PreviewExtent::NotText),
            Err(_) => pending.len(),
        };
        is_text = true;
        let rest = pending.split_off(text_bytes);
        text.push_str(&String::from_utf8_lossy(&pending));
        pending = rest;
        let end = match whole_lines(&text) {
            0 if text.len() < LINE_BYTES_MAX => continue,
            0 => text.len(),
            end => end,
        };
        let rest = text.split_off(end);
        if let Some(cut) = send_within(&text, &mut left, reply).await? {
            return Ok(PreviewExtent::Truncated((preview_bytes + cut) as u64));
        }
        preview_bytes += text.len();
        text = rest;
    }
    // The file may end within a character.
    text.push_str(&String::from_utf8_lossy(&pending));
    if !text.is_empty()
        && let Some(cut) = send_within(&text, &mut left, reply).await?
    {
        return Ok(PreviewExtent::Truncated((preview_bytes + cut) as u64));
    }
    Ok(PreviewExtent::Complete)
}

/// How many bytes of `text` are whole lines, up to a private key whose last line is not whole.
fn whole_lines(text: &str) -> usize {
    let end_of_lines = |text: &str| text.rfind('\n').map_or(0, |line_break| line_break + 1);
    let lines = &text[..end_of_lines(text)];
    match lines.rfind(KEY_BEGIN) {
        Some(begin) if lines.rfind(KEY_END).is_none_or(|end| end < begin) => end_of_lines(&lines[..begin]),
        _ => lines.len(),
    }
}

/// Sends `text`, or as much of it as `left` bytes hold. Returns how many bytes of it are shown at least, if these are not all.
async fn send_within(text: &str, left: &mut usize, reply: &ReplySender) -> Result<Option<usize>, Error> {
    // The cut could divide a secret, so masks come before it.
    let masked = reply.job().protection().redact_text(text)?;
    let end = masked.floor_char_boundary(*left);
    *left -= end;
    reply.send_redacted_text(masked[..end].to_owned()).await?;
    let rest = masked.len() - end;
    // A mask may be longer or shorter than its secret.
    Ok((rest > 0).then_some(end.min(text.len().saturating_sub(rest))))
}
