//! Turns a reply into a response. The first chunk determines the kind of the answer.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use axum::response::Response;
use bytes::Bytes;
use tidegate_core::{
    AnswerFormat, BodyHead, Budget, Chunk, Content, Metadata, Outcome, Reply, ReplyEvent, ResourceBody,
};

use super::accept::Accept;
use super::answer_body::{AnswerBody, AnswerStart, ChunkEncoding};
use super::content_writer::ContentWriter;
use super::problem::{ProblemDetails, ProblemType};
use crate::revalidation::SessionValidity;

/// The id of the job, for `/rest/jobs/{id}`.
const JOB: HeaderName = HeaderName::from_static("tidegate-job");
/// The maximum number of rows and bytes of an answer; sent before it begins.
const ROWS_MAX: HeaderName = HeaderName::from_static("tidegate-rows-max");
const BYTES_MAX: HeaderName = HeaderName::from_static("tidegate-bytes-max");
/// The number of rows, and whether more exist: in the headers of a short answer, in the trailer of a long one.
pub(super) const ROWS: HeaderName = HeaderName::from_static("tidegate-rows");
pub(super) const TRUNCATED: HeaderName = HeaderName::from_static("tidegate-truncated");
/// The cursor for the next page; sent together with [`ROWS`].
const CURSOR: HeaderName = HeaderName::from_static("tidegate-cursor");

/// Waits for the first event of `reply`. A failure before that becomes a problem with its own status.
pub(super) async fn answer(
    mut reply: Reply,
    mut session_validity: SessionValidity,
    accept: &Accept,
    parts: &Parts,
) -> Result<Response, ProblemDetails> {
    let job = reply.job().id().to_string();
    let first = session_validity
        .run_while_valid(next_event(&mut reply))
        .await
        .map_err(|revoked| ProblemDetails::from_admission_error(&revoked.into()))?;
    if let ReplyEvent::Chunk(Chunk::Block(content)) = &first
        && let Some((media_type, bytes)) =
            file_content(content).filter(|(media_type, _)| accept.accepts_file(media_type))
    {
        let bytes = bytes.clone();
        return file_response(reply, media_type, bytes, &job).await;
    }
    let (head, encoding, first) = match first {
        ReplyEvent::End(Outcome::Failed(error)) => return Err(error.into()),
        ReplyEvent::Chunk(Chunk::Body(head)) if accept.accepts_tables() => (head, ChunkEncoding::Body, None),
        ReplyEvent::Chunk(Chunk::Body(_)) => {
            return Err(not_acceptable("the answer is a table", AnswerFormat::ALL.as_slice()));
        }
        first => {
            let forms = [AnswerFormat::Json, AnswerFormat::Table];
            let format = accept.best_of_blocks().ok_or_else(|| not_acceptable("the answer is not a table", &forms))?;
            let (media_type, blocks) = ContentWriter::for_format(format);
            (
                BodyHead { media_type, budget: Budget::default(), stable: None, file: None },
                ChunkEncoding::Blocks(blocks),
                Some(first),
            )
        }
    };
    let mut response =
        begin_response(AnswerBody::new(reply, Some(session_validity), encoding, first).begin().await?, parts);
    let headers = response.headers_mut();
    describe(headers, &head, &job);
    add_cache_headers(headers);
    Ok(response)
}

/// Adds the media type, the limits and the job to the headers.
pub(in super::super) fn describe(headers: &mut HeaderMap, head: &BodyHead, job: &str) {
    let file_type = head.file.as_ref().and_then(|file| HeaderValue::from_str(file.media_type.as_deref()?).ok());
    headers.insert(header::CONTENT_TYPE, file_type.unwrap_or(HeaderValue::from_static(head.media_type)));
    headers.extend(head.budget.rows.map(|rows| (ROWS_MAX, HeaderValue::from(rows))));
    headers.extend(head.budget.bytes.map(|bytes| (BYTES_MAX, HeaderValue::from(bytes))));
    add_job_header(headers, job);
}

/// The response for `begun`. The metadata of the answer is in its headers or its trailer.
pub(in super::super) fn begin_response(begun: AnswerStart, parts: &Parts) -> Response {
    match begun {
        AnswerStart::Whole(bytes, facts) => {
            let mut response = Response::new(Body::from(bytes));
            response.headers_mut().extend(answer_headers(&facts));
            response
        }
        AnswerStart::Streaming(pieces) => {
            let takes_trailers = accepts_trailers(parts);
            let mut response = Response::new(pieces.into_body(takes_trailers));
            if takes_trailers {
                let names = HeaderValue::from_static("tidegate-rows, tidegate-truncated, tidegate-cursor");
                response.headers_mut().insert(header::TRAILER, names);
            }
            response
        }
    }
}

/// The first event that is not a notification.
pub(in super::super) async fn next_event(reply: &mut Reply) -> ReplyEvent {
    loop {
        match reply.next().await {
            Some(ReplyEvent::Chunk(Chunk::Notification(_))) => {}
            Some(event) => return event,
            None => return ReplyEvent::End(Outcome::Done(Metadata::new())),
        }
    }
}

/// Adds the cache headers of call answers.
fn add_cache_headers(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("accept, authorization"));
}

fn add_job_header(headers: &mut HeaderMap, job: &str) {
    // An id consists of hexadecimal digits and hyphens.
    headers.extend(HeaderValue::from_str(job).map(|job| (JOB, job)));
}

/// The metadata of an answer as headers.
pub(in super::super) fn answer_headers(facts: &Metadata) -> HeaderMap {
    let mut fields = HeaderMap::new();
    if let Some(rows) = facts.get("dev.tidegate/rows").and_then(serde_json::Value::as_u64) {
        fields.insert(ROWS, HeaderValue::from(rows));
    }
    if let Some(truncated) = facts.get("dev.tidegate/truncated").and_then(serde_json::Value::as_bool) {
        fields.insert(TRUNCATED, HeaderValue::from_static(if truncated { "true" } else { "false" }));
    }
    // A signed cursor consists of letters, digits, hyphens and underscores.
    let cursor = facts.get("dev.tidegate/cursor").and_then(serde_json::Value::as_str);
    if let Some(cursor) = cursor.and_then(|cursor| HeaderValue::from_str(cursor).ok()) {
        fields.insert(CURSOR, cursor);
    }
    fields
}

/// Whether the client accepts trailers (RFC 9110, 6.5.1).
fn accepts_trailers(parts: &Parts) -> bool {
    let mut values = parts.headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    let accepts = values.any(|value| value.split(',').any(|token| token.trim().eq_ignore_ascii_case("trailers")));
    accepts && parts.version == Version::HTTP_11
}

fn not_acceptable(subject: &str, forms: &[AnswerFormat]) -> ProblemDetails {
    let types: Vec<&str> = forms.iter().map(|format| format.media_type()).collect();
    let detail = format!("{subject}; available types: {}", types.join(", "));
    ProblemDetails::new(ProblemType::NotAcceptable, detail).with_choices(types)
}

/// The media type and the bytes of a block that is a file.
fn file_content(content: &Content) -> Option<(&str, &Bytes)> {
    match content {
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => Some((mime_type, data)),
        Content::Resource(contents) => match &contents.body {
            ResourceBody::Blob(bytes) => {
                Some((contents.mime_type.as_deref().unwrap_or("application/octet-stream"), bytes))
            }
            ResourceBody::Text(_) => None,
        },
        Content::Text { .. } | Content::Link(_) => None,
    }
}

/// A response whose body is the only block of the answer.
async fn file_response(
    mut reply: Reply,
    media_type: &str,
    bytes: Bytes,
    job: &str,
) -> Result<Response, ProblemDetails> {
    loop {
        match next_event(&mut reply).await {
            ReplyEvent::End(Outcome::Done(_)) => break,
            ReplyEvent::End(Outcome::Failed(error)) => return Err(error.into()),
            // They contain the same as the file, for clients that read structured data.
            ReplyEvent::Chunk(Chunk::Structured(_) | Chunk::EndOfText) => {}
            ReplyEvent::Chunk(_) => {
                return Err(not_acceptable("the answer has several parts", &[AnswerFormat::Json]));
            }
        }
    }
    let mut response = Response::new(Body::from(bytes));
    let media_type = HeaderValue::from_str(media_type).unwrap_or(HeaderValue::from_static("application/octet-stream"));
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    add_job_header(response.headers_mut(), job);
    add_cache_headers(response.headers_mut());
    Ok(response)
}
