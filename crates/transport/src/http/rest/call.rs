//! Turns a request into the call of one tool, with arguments from its query string and its body, and the reply into a
//! response. The first part of the reply determines the kind of the answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Map, Value};
use tidegate_core::{Budget, CallTarget, Caller, Content, Format, ResourceBody};
use tidegate_runtime::{BodyMetadata, CacheHint, Job, Reply, ReplyPart};

use super::super::answer::{
    Accept, AnswerBody, ContentWriter, ProblemDetails, ProblemType, add_job_header, add_missing_nodes_header,
    begin_response, describe, new_call, next_part, not_acceptable,
};
use super::super::body;
use super::super::caller::{HttpCallerResolver, REVALIDATE_AFTER, RequestCredentials};
use super::super::parameters::{QueryParameter, parse_query};
use super::super::state::{HttpOptions, HttpState};
use super::{RestHandler, RestRoute};
use crate::revalidation::CallerRevalidator;

pub(super) async fn call(
    http_state: &Arc<HttpState>,
    route: &RestRoute<'_>,
    tool: &str,
    parts: &Parts,
    body: &mut Body,
    credentials: &RequestCredentials,
    caller: Caller,
) -> Result<Response, ProblemDetails> {
    let (accept, mut arguments, payload) = parse_head(route, parts)?;
    let requested = Instant::now();
    let body = read_body(http_state, parts, std::mem::take(body)).await?;
    // Reading the body may have taken long, so the permissions of the caller are resolved again.
    let is_recent = requested.elapsed() <= REVALIDATE_AFTER;
    let caller = if is_recent { caller } else { credentials.resolve_caller(http_state).await? };
    for (name, value) in payload.parse_arguments(&body)? {
        if arguments.contains_key(&name) {
            let detail = format!("the argument {name} is given both in the body and in the query string");
            return Err(ProblemDetails::bad_request(detail));
        }
        arguments.insert(name, value);
    }
    let revalidator = HttpCallerResolver::new(http_state, credentials.clone(), &caller).into_revalidator();
    let target = CallTarget::Tool(tool.to_owned());
    let call = new_call(target, caller, arguments, accept.best(), &parts.headers);
    let registry = http_state.service.registry();
    let cache = registry.snapshot_for(&call.caller).tool_cache_hint(tool);
    let reply = registry.call(call)?;
    answer(reply, revalidator, &accept, parts, cache).await
}

/// Parses everything before the body: accepted formats, arguments, and the type of the body.
fn parse_head(route: &RestRoute<'_>, parts: &Parts) -> Result<(Accept, Map<String, Value>, BodyKind), ProblemDetails> {
    let (parameters, in_path): (&[QueryParameter], Vec<_>) = match route.handler {
        RestHandler::Call { parameters, .. } => (parameters, route.parameters().collect()),
        _ => (&[], Vec::new()),
    };
    let (mut arguments, format) = parse_query(&parts.uri, parameters)?;
    let accept = Accept::read(&parts.headers, format.as_deref(), &Format::FOR_REST)?;
    // A text is accepted where a list is expected.
    let argument = |name: &'static str| if name == "field" { "fields" } else { name };
    arguments.extend(in_path.into_iter().map(|(name, value)| (argument(name).to_owned(), value.into())));
    let payload = match is_read_method(&parts.method) {
        true => BodyKind::Nothing,
        false => BodyKind::from_headers(&parts.headers, route.handler.takes_sql())?,
    };
    Ok((accept, arguments, payload))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Nothing,
    Json,
    /// A plain SQL statement.
    Sql,
}

impl BodyKind {
    fn from_headers(headers: &HeaderMap, takes_sql: bool) -> Result<Self, ProblemDetails> {
        let takes = if takes_sql { "application/json, application/sql or text/plain" } else { "application/json" };
        let unsupported = |subject: &str| {
            ProblemDetails::new(ProblemType::UnsupportedMediaType, format!("{subject}; Content-Type must be {takes}"))
        };
        let mut values = headers.get_all(header::CONTENT_TYPE).iter();
        let Some(value) = values.next() else { return Ok(Self::Nothing) };
        if values.next().is_some() {
            return Err(unsupported("Content-Type is given more than once"));
        }
        let text = value.to_str().unwrap_or("?").to_ascii_lowercase();
        if let Some(reason) = body::unsupported_charset(&text) {
            return Err(unsupported(&reason));
        }
        match text.split(';').next().unwrap_or_default().trim() {
            "application/json" => Ok(Self::Json),
            "application/sql" | "text/plain" if takes_sql => Ok(Self::Sql),
            _ => Err(unsupported("the media type of the body is not supported")),
        }
    }

    fn parse_arguments(self, body: &Bytes) -> Result<Map<String, Value>, ProblemDetails> {
        match self {
            _ if body.is_empty() => Ok(Map::new()),
            Self::Nothing => {
                let detail = "Content-Type is missing; it must be application/json";
                Err(ProblemDetails::new(ProblemType::UnsupportedMediaType, detail))
            }
            Self::Json => match serde_json::from_slice(body) {
                Ok(Value::Object(arguments)) => Ok(arguments),
                Ok(_) => Err(ProblemDetails::bad_request("the body must be a JSON object: the arguments by name")),
                Err(error) => Err(ProblemDetails::bad_request(format!("the body is not valid JSON: {error}"))),
            },
            Self::Sql => {
                let sql =
                    std::str::from_utf8(body).map_err(|_| ProblemDetails::bad_request("the statement is not UTF-8"))?;
                Ok(Map::from_iter([("sql".to_owned(), sql.into())]))
            }
        }
    }
}

async fn read_body(http_state: &HttpState, parts: &Parts, body: Body) -> Result<Bytes, ProblemDetails> {
    let HttpOptions { body_bytes_max, read_within, .. } = *http_state.reloadable_options();
    if is_read_method(&parts.method) {
        body::discard(body, read_within).await;
        return Ok(Bytes::new());
    }
    body::read(body, body_bytes_max, read_within).await
}

fn is_read_method(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Waits for the first part of `reply`. A failure before that becomes a problem with its own status. `cache` states how
/// long clients may cache the answer.
async fn answer(
    mut reply: Reply,
    mut revalidator: CallerRevalidator,
    accept: &Accept,
    parts: &Parts,
    cache: Option<CacheHint>,
) -> Result<Response, ProblemDetails> {
    let job = reply.job().clone();
    let first = revalidator.run_while_valid(next_part(&mut reply)).await?;
    if let ReplyPart::Item(content) = &first
        && let Some((media_type, bytes)) =
            file_content(content).filter(|(media_type, _)| accept.accepts_file(media_type))
    {
        let bytes = bytes.clone();
        return file_response(reply, media_type, bytes, cache).await;
    }
    let (head, items, first) = match first {
        ReplyPart::End(Err(error)) => return Err(error.into()),
        ReplyPart::Body(head) if accept.accepts_tables() => (head, None, None),
        ReplyPart::Body(_) => {
            return Err(not_acceptable("the answer is a table", Format::FOR_REST.as_slice()));
        }
        first => {
            let formats = [Format::Json, Format::Table];
            let format =
                accept.best_of_blocks().ok_or_else(|| not_acceptable("the answer is not a table", &formats))?;
            let (media_type, items) = ContentWriter::for_format(format);
            (BodyMetadata::new(media_type, Budget::default()), Some(items), Some(first))
        }
    };
    let body = AnswerBody::new(reply, revalidator, items, first);
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

/// A response whose body is the only item of the answer.
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
