//! Turns a reply into a response. The first part determines the kind of the answer.

use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use tidegate_core::{Budget, Content, Format, ResourceBody};
use tidegate_runtime::{BodyMetadata, CacheHint, Job, Reply, ReplyPart};

use super::super::answer::{
    Accept, AnswerBody, ContentWriter, ProblemDetails, ProblemType, add_job_header, add_missing_nodes_header,
    begin_response, describe, next_part,
};
use crate::revalidation::CallerRevalidator;

/// Waits for the first part of `reply`. A failure before that becomes a problem with its own status. `cache` states how
/// long clients may cache the answer.
pub(super) async fn answer(
    mut reply: Reply,
    mut revalidator: CallerRevalidator,
    accept: &Accept,
    parts: &Parts,
    cache: Option<CacheHint>,
) -> Result<Response, ProblemDetails> {
    let job = reply.job().clone();
    let first = revalidator.run_while_valid(next_part(&mut reply)).await?;
    if let ReplyPart::Block(content) = &first
        && let Some((media_type, bytes)) =
            file_content(content).filter(|(media_type, _)| accept.accepts_file(media_type))
    {
        let bytes = bytes.clone();
        return file_response(reply, media_type, bytes, cache).await;
    }
    let (head, blocks, first) = match first {
        ReplyPart::End(Err(error)) => return Err(error.into()),
        ReplyPart::Body(head) if accept.accepts_tables() => (head, None, None),
        ReplyPart::Body(_) => {
            return Err(not_acceptable("the answer is a table", Format::FOR_REST.as_slice()));
        }
        first => {
            let formats = [Format::Json, Format::Table];
            let format =
                accept.best_of_blocks().ok_or_else(|| not_acceptable("the answer is not a table", &formats))?;
            let (media_type, blocks) = ContentWriter::for_format(format);
            (BodyMetadata::new(media_type, Budget::default()), Some(blocks), Some(first))
        }
    };
    let body = AnswerBody::new(reply, revalidator, blocks, first);
    let mut response = begin_response(body.begin().await?, parts);
    let headers = response.headers_mut();
    describe(headers, &head, &job);
    add_cache_headers(headers, &job, cache);
    Ok(response)
}

/// The age belongs to what the tool declares, and to earlier answers. The rows that a partial answer lacks may be back
/// at once.
fn add_cache_headers(headers: &mut HeaderMap, job: &Job, cache: Option<CacheHint>) {
    let cache = cache.filter(|_| job.missing_nodes().is_none());
    let control = cache.map(|CacheHint { time_to_live, public }| {
        let scope = if public { "public" } else { "private" };
        HeaderValue::from_str(&format!("{scope}, max-age={}", time_to_live.as_secs())).ok()
    });
    headers.insert(header::CACHE_CONTROL, control.flatten().unwrap_or(HeaderValue::from_static("no-store")));
    let age = job.answer_age().or(cache.map(|_| Duration::ZERO));
    headers.extend(age.map(|age| (header::AGE, HeaderValue::from(age.as_secs()))));
    headers.insert(header::VARY, HeaderValue::from_static("accept, authorization"));
}

fn not_acceptable(subject: &str, formats: &[Format]) -> ProblemDetails {
    let types: Vec<&str> = formats.iter().map(|format| format.media_type()).collect();
    let detail = format!("{subject}; available types: {}", types.join(", "));
    ProblemDetails::new(ProblemType::NotAcceptable, detail).with_choices(types)
}

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
    cache: Option<CacheHint>,
) -> Result<Response, ProblemDetails> {
    loop {
        match next_part(&mut reply).await {
            ReplyPart::End(Ok(_)) => break,
            ReplyPart::End(Err(error)) => return Err(error.into()),
            // They contain the same as the file, for clients that read structured data.
            ReplyPart::Structured(_) | ReplyPart::EndOfText => {}
            _ => return Err(not_acceptable("the answer has several parts", &[Format::Json])),
        }
    }
    let mut response = Response::new(Body::from(bytes));
    let media_type = HeaderValue::from_str(media_type).unwrap_or(HeaderValue::from_static("application/octet-stream"));
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    add_missing_nodes_header(response.headers_mut(), reply.job());
    add_job_header(response.headers_mut(), &reply.job().id().to_string());
    add_cache_headers(response.headers_mut(), reply.job(), cache);
    Ok(response)
}
