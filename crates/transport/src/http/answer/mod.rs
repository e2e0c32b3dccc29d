//! What the answers of REST and of stored results share: problems, formats, and the headers and the body of one answer, which
//! is written while it is produced. If it is no table, it is content items as JSON, or text.
//!
//! A complete answer ends the body normally. An answer that fails after its first byte breaks the connection, so that
//! no client takes a part for the whole.

mod accept;
mod content_coding;
mod problem;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use headers::{ETag, HeaderMapExt, IfNoneMatch};
use http_body::Frame;
use http_body_util::StreamBody;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tidegate_core::{
    CallOrigin, CallTarget, Caller, Content, Error, Format, MissingNodes, ResourceBody, TransportKind,
};
use tidegate_mcp::ContentItems;
use tidegate_runtime::{AnswerMeta, BodyMetadata, Call, Job, Reply, ReplyPart};
use tokio::time::timeout_at;

use super::body::{REVOKED_REASON, broken_body_error};
use super::endpoints::Endpoint;
use super::state::{HttpState, TRACE};
use crate::revalidation::{CallerRevalidator, Revoked};

pub(super) use self::accept::{Accept, not_acceptable};
pub(super) use self::content_coding::ContentCoding;
pub use self::problem::problem_types;
pub(super) use self::problem::{PROBLEM_MEDIA_TYPE, ProblemDetails, ProblemType, TYPE_PREFIX};

/// [W3C Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header)
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// Which sites may load an answer without CORS: a GET by another site's page has no `Origin` that could be rejected.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The final response: reports refusals, and prevents other sites from loading the answer.
pub(super) fn into_response(
    http_state: &HttpState,
    peer: Option<IpAddr>,
    result: Result<Response, ProblemDetails>,
) -> Response {
    let mut response = result.unwrap_or_else(|problem| {
        if problem.is_before_call() {
            http_state.report_rejection(CallOrigin { transport: TransportKind::Rest, peer }, problem.detail());
        }
        problem.into_response(http_state)
    });
    let headers = response.headers_mut();
    // Data is not part of another site's page.
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}

pub(super) fn options_response(endpoint: &Endpoint) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::ALLOW, endpoint.allow_header());
    response
}

/// A call with the trace that the headers of its request state.
pub(super) fn new_call(
    target: CallTarget,
    caller: Caller,
    arguments: Map<String, Value>,
    format: Format,
    headers: &HeaderMap,
) -> Call {
    let mut call = Call::new(target, caller);
    (call.arguments, call.format) = (arguments, Some(format));
    call.trace = headers.get(TRACE).is_some_and(|value| value == "1");
    let trace_parent = headers.get(TRACE_PARENT).and_then(|value| value.to_str().ok());
    call.trace_parent = trace_parent.filter(|value| tidegate_mcp::is_trace_parent(value)).map(str::to_owned);
    call
}

/// A 128-bit hash for the entity tag of a document. It need not be cryptographic, because callers do not choose the bytes.
pub(super) fn content_hash(bytes: &[u8]) -> String {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, bytes).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

/// `None` if a header may not have the characters of `opaque`. Weak tags mean equivalent content, not equal bytes.
pub(super) fn entity_tag(opaque: &str, is_weak: bool) -> Option<ETag> {
    format!("{}\"{opaque}\"", if is_weak { "W/" } else { "" }).parse().ok()
}

/// Whether the client has the version with `tag`, or any version if it sends `*`.
pub(super) fn matches_none_match(headers: &HeaderMap, tag: Option<&ETag>) -> bool {
    let Some(tags) = headers.typed_get::<IfNoneMatch>() else { return false };
    tag.map_or(tags == IfNoneMatch::any(), |tag| !tags.precondition_passes(tag))
}

pub(super) fn not_modified() -> Response {
    let mut response = Response::new(Body::new(UnsentBody));
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// A body without a known length: otherwise `Content-Length` would be 0, although it describes the client's version.
struct UnsentBody;

impl http_body::Body for UnsentBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

/// What is percent-encoded in the names of nodes.
const NOT_IN_NAMES: &AsciiSet = &CONTROLS.add(b' ').add(b',').add(b'%').add(b'"').add(b'\\').add(b';');

const JOB: HeaderName = HeaderName::from_static("tidegate-job");
/// The maximum number of rows and bytes of an answer; sent before it begins.
const ROWS_MAX: HeaderName = HeaderName::from_static("tidegate-rows-max");
const BYTES_MAX: HeaderName = HeaderName::from_static("tidegate-bytes-max");
/// The number of rows, and whether more exist: in the headers of a short answer, in the trailer of a long one.
pub(super) const ROWS: HeaderName = HeaderName::from_static("tidegate-rows");
const TRUNCATED: HeaderName = HeaderName::from_static("tidegate-truncated");
/// The nodes whose rows the answer lacks; sent before it begins.
const PARTIAL: HeaderName = HeaderName::from_static("tidegate-partial");
/// The maximum length of the names of missing nodes.
const PARTIAL_BYTES_MAX: usize = 2 * 1024;
/// The cursor for the next page; sent together with [`ROWS`].
const CURSOR: HeaderName = HeaderName::from_static("tidegate-cursor");

pub(super) fn describe(headers: &mut HeaderMap, head: &BodyMetadata, job: &Job) {
    let file_type = head.file.as_ref().and_then(|file| HeaderValue::from_str(file.media_type.as_deref()?).ok());
    headers.insert(header::CONTENT_TYPE, file_type.unwrap_or(HeaderValue::from_static(head.media_type)));
    headers.extend(head.budget.rows.map(|rows| (ROWS_MAX, HeaderValue::from(rows))));
    headers.extend(head.budget.bytes.map(|bytes| (BYTES_MAX, HeaderValue::from(bytes))));
    add_missing_nodes_header(headers, job);
    add_job_header(headers, &job.id().to_string());
}

pub(super) fn add_missing_nodes_header(headers: &mut HeaderMap, job: &Job) {
    let names = job.missing_nodes().map(|missing| HeaderValue::from_str(&header_names(&missing)));
    headers.extend(names.and_then(Result::ok).map(|names| (PARTIAL, names)));
}

/// The names, separated by commas. Characters that a header or the list does not allow are percent-encoded. Names that
/// would exceed the limit of a header are left out.
fn header_names(missing: &MissingNodes) -> String {
    let mut names = String::new();
    for node in &missing.nodes {
        let name = utf8_percent_encode(&node.name, NOT_IN_NAMES).to_string();
        let separator = if names.is_empty() { "" } else { ", " };
        if names.len() + separator.len() + name.len() > PARTIAL_BYTES_MAX {
            break;
        }
        names.push_str(separator);
        names.push_str(&name);
    }
    if names.is_empty() { "unknown".to_owned() } else { names }
}

pub(super) fn add_job_header(headers: &mut HeaderMap, job: &str) {
    // An id consists of hexadecimal digits and hyphens.
    headers.extend(HeaderValue::from_str(job).map(|job| (JOB, job)));
}

fn answer_headers(metadata: &AnswerMeta) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.extend(metadata.rows.map(|rows| (ROWS, HeaderValue::from(rows))));
    if let Some(is_truncated) = metadata.is_truncated {
        fields.insert(TRUNCATED, HeaderValue::from_static(if is_truncated { "true" } else { "false" }));
    }
    // A signed cursor consists of letters, digits, hyphens and underscores.
    let cursor = metadata.cursor.as_deref().and_then(|cursor| HeaderValue::from_str(cursor).ok());
    fields.extend(cursor.map(|cursor| (CURSOR, cursor)));
    fields
}

/// Whether the client accepts trailers (RFC 9110, 6.5.1).
fn accepts_trailers(parts: &Parts) -> bool {
    let mut values = parts.headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    let accepts = values.any(|value| value.split(',').any(|token| token.trim().eq_ignore_ascii_case("trailers")));
    accepts && parts.version == Version::HTTP_11
}

/// Maximum number of pieces of a short answer that are joined into one response; a piece has about 64 KiB at most.
const JOINED_PIECES_MAX: usize = 4;

/// The body of an answer. Dropping it cancels the call.
pub(super) struct AnswerBody {
    reply: Reply,
    revalidator: CallerRevalidator,
    /// Encodes the parts if they are content items; `None` if they are the bytes or the text of the body.
    items: Option<ContentWriter>,
    first: Option<ReplyPart>,
    ready_pieces: VecDeque<Bytes>,
    end: Option<Result<AnswerMeta, Error>>,
}

pub(super) enum AnswerStart {
    /// With the headers of its metadata.
    Whole(Bytes, HeaderMap),
    Streaming(Box<AnswerBody>),
}

impl AnswerBody {
    pub(super) fn new(
        reply: Reply,
        revalidator: CallerRevalidator,
        items: Option<ContentWriter>,
        first: Option<ReplyPart>,
    ) -> Self {
        Self { reply, revalidator, items, first, ready_pieces: VecDeque::new(), end: None }
    }

    /// Waits for the first bytes, so that a short answer needs no chunked encoding and a failed one becomes a problem.
    pub(super) async fn begin(mut self) -> Result<AnswerStart, ProblemDetails> {
        if let Some(piece) = self.next_piece_for_caller().await? {
            self.ready_pieces.push_back(piece);
            tokio::task::yield_now().await;
        }
        while self.end.is_none() && self.ready_pieces.len() < JOINED_PIECES_MAX {
            match self.next_piece().now_or_never() {
                Some(Some(piece)) => self.ready_pieces.push_back(piece),
                Some(None) => {}
                None => return Ok(AnswerStart::Streaming(Box::new(self))),
            }
        }
        match self.end.take() {
            None => Ok(AnswerStart::Streaming(Box::new(self))),
            Some(Err(error)) => Err(error.into()),
            Some(Ok(metadata)) => {
                let bytes = self.ready_pieces.make_contiguous().concat().into();
                Ok(AnswerStart::Whole(bytes, answer_headers(&metadata)))
            }
        }
    }

    async fn next_piece_for_caller(&mut self) -> Result<Option<Bytes>, Revoked> {
        loop {
            self.revalidator.check_if_due().await?;
            let check_at = self.revalidator.next_check_at();
            if let Ok(piece) = timeout_at(check_at, self.next_piece()).await {
                return Ok(piece);
            }
        }
    }

    /// The next bytes; `None` at the end. Cancelling the wait loses no data.
    async fn next_piece(&mut self) -> Option<Bytes> {
        while self.end.is_none() {
            let part = match self.first.take() {
                Some(part) => part,
                None => self.reply.next().await?,
            };
            let piece = self.encode(part);
            if !piece.is_empty() {
                return Some(piece);
            }
        }
        None
    }

    fn encode(&mut self, part: ReplyPart) -> Bytes {
        match (&mut self.items, part) {
            (items, ReplyPart::End(end)) => {
                let piece = items.as_mut().map(|items| items.end(&end));
                self.end = Some(end);
                piece.unwrap_or_default()
            }
            (Some(items), part) => items.write_part(part),
            (None, ReplyPart::Bytes(bytes)) => bytes,
            (None, ReplyPart::Text(text)) => text.into(),
            (None, _) => Bytes::new(),
        }
    }

    /// The next piece of a streamed response; an error if the answer failed, `None` at its regular end.
    async fn next_result(&mut self) -> Option<io::Result<Bytes>> {
        let ready = self.ready_pieces.pop_front();
        let next = match ready {
            Some(piece) => Some(piece),
            None => match self.next_piece_for_caller().await {
                Ok(next) => next,
                Err(Revoked) => return Some(Err(broken_body_error(REVOKED_REASON).await)),
            },
        };
        if let Some(piece) = next {
            return Some(Ok(piece));
        }
        match self.end {
            Some(Ok(_)) => None,
            Some(Err(_)) | None => Some(Err(broken_body_error("the answer ended early").await)),
        }
    }

    fn final_metadata(&self) -> Option<&AnswerMeta> {
        self.end.as_ref()?.as_ref().ok()
    }

    pub(super) fn into_body(self, takes_trailers: bool) -> Body {
        let pieces = stream::unfold(Some(self), move |pieces| async move {
            let mut pieces = pieces?;
            match (pieces.next_result().await, takes_trailers) {
                (Some(Ok(piece)), _) => Some((Ok(Frame::data(piece)), Some(pieces))),
                (Some(Err(error)), _) => Some((Err(error), None)),
                (None, true) => Some((Ok(Frame::trailers(answer_headers(pieces.final_metadata()?))), None)),
                (None, false) => None,
            }
        });
        Body::new(StreamBody::new(pieces))
    }
}

impl AnswerStart {
    /// The bytes without metadata, in pieces; an error ends the stream.
    pub(super) fn into_stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        match self {
            Self::Whole(bytes, _) => stream::iter([Ok(bytes)]).boxed(),
            Self::Streaming(pieces) => stream::unfold(Some(pieces), |pieces| async move {
                let mut pieces = pieces?;
                let next = pieces.next_result().await?;
                let pieces = next.is_ok().then_some(pieces);
                Some((next, pieces))
            })
            .boxed(),
        }
    }
}

/// The response that begins with `start`. The metadata of the answer is in its headers or its trailer.
pub(super) fn begin_response(start: AnswerStart, parts: &Parts) -> Response {
    match start {
        AnswerStart::Whole(bytes, headers) => {
            let mut response = Response::new(Body::from(bytes));
            response.headers_mut().extend(headers);
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

/// The next part of the answer or its end, without what is beside the answer.
pub(super) async fn next_part(reply: &mut Reply) -> ReplyPart {
    loop {
        match reply.next().await {
            Some(ReplyPart::Notification(_) | ReplyPart::InputRequest(_)) => {}
            Some(part) => return part,
            None => return ReplyPart::End(Ok(AnswerMeta::default())),
        }
    }
}

pub(super) enum ContentWriter {
    /// `{"content":[…],"structured":…}`.
    Json { items: ContentItems, structured: Option<Box<RawValue>> },
    /// The text of each item, one below the other.
    Text(TextContentWriter),
}

#[derive(Default)]
pub(super) struct TextContentWriter {
    /// Whether a line break is due before the next item.
    is_within_line: bool,
}

impl ContentWriter {
    /// The media type and the writer of `format`, which [writes content](Format::writes_content).
    pub(super) fn for_format(format: Format) -> (&'static str, Self) {
        if matches!(format, Format::Json | Format::Mcp) {
            let items = ContentItems::new("{\"content\":[".to_owned());
            return (format.media_type(), Self::Json { items, structured: None });
        }
        (format.content_type(false), Self::Text(TextContentWriter::default()))
    }

    fn write_part(&mut self, part: ReplyPart) -> Bytes {
        let (items, structured) = match self {
            Self::Json { items, structured } => (items, structured),
            Self::Text(writer) => return writer.write_part(part).into(),
        };
        match part {
            ReplyPart::Text(text) => items.push_text(&text),
            ReplyPart::EndOfText => items.end_text().into(),
            ReplyPart::Item(content) | ReplyPart::PromptMessage(_, content) => {
                items.push_item(&tidegate_mcp::content_json(&content)).into()
            }
            ReplyPart::Structured(value) => {
                *structured = Some(value);
                Bytes::new()
            }
            _ => Bytes::new(),
        }
    }

    pub(super) fn end(&mut self, end: &Result<AnswerMeta, Error>) -> Bytes {
        match (self, end) {
            (Self::Text(writer), Ok(_)) => writer.end_line().into(),
            (Self::Text(writer), Err(error)) => format!("{}{error}\n", writer.end_line()).into(),
            (writer, Ok(metadata)) => {
                let is_truncated = metadata.is_truncated == Some(true);
                writer.close_json(is_truncated.then(|| ("truncated", true.into())))
            }
            (writer, Err(error)) => writer.close_json(Some(("error", error.to_string().into()))),
        }
    }

    fn close_json(&mut self, member: Option<(&str, Value)>) -> Bytes {
        let Self::Json { items, structured } = self else { return Bytes::new() };
        let mut piece = items.close();
        if let Some(structured) = structured.take() {
            piece.push_str(",\"structured\":");
            piece.push_str(structured.get());
        }
        if let Some((name, value)) = member {
            piece.push_str(&format!(",\"{name}\":{value}"));
        }
        piece.push('}');
        piece.into()
    }
}

impl TextContentWriter {
    fn write_part(&mut self, part: ReplyPart) -> String {
        match part {
            ReplyPart::Text(text) => {
                self.is_within_line = !text.ends_with('\n');
                text
            }
            ReplyPart::EndOfText => self.end_line().to_owned(),
            ReplyPart::Item(content) | ReplyPart::PromptMessage(_, content) => {
                let mut piece = self.end_line().to_owned();
                piece.push_str(&content_text(&content));
                self.is_within_line = !piece.ends_with('\n');
                piece
            }
            _ => String::new(),
        }
    }

    fn end_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_within_line) { "\n" } else { "" }
    }
}

/// An item as text; other content is described.
fn content_text(content: &Content) -> String {
    match content {
        Content::Text { text, .. } => text.clone(),
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
            format!("[{} bytes of {mime_type}]", data.len())
        }
        Content::Link(link) => format!("{}: {}", link.name, link.uri),
        Content::Resource(contents) => match &contents.body {
            ResourceBody::Text(text) => text.clone(),
            ResourceBody::Blob(bytes) => format!("[{} bytes of {}]", bytes.len(), contents.uri),
        },
    }
}
