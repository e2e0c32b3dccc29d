//! Turns a reply into a response that can be validated, resumed, cached and compressed. Rows as text compress well.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use headers::{ETag, HeaderMapExt};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate_core::{Budget, Format};
use tidegate_runtime::{BodyMetadata, Job, Reply, ReplyPart};

use super::super::answer::{
    AnswerBody, AnswerStart, ContentCoding, ProblemDetails, add_missing_nodes_header, begin_response, describe,
    entity_tag, next_part, not_modified,
};
use super::range::{ByteRange, ConditionOutcome, evaluate_conditions};
use super::{ResultRequest, ResultRoute};
use crate::revalidation::CallerRevalidator;

/// Immutable responses may be cached for about the lifetime of a link.
const CACHE_IMMUTABLE: HeaderValue = HeaderValue::from_static("private, max-age=300, immutable");
/// Responses that may change, or that were opened by a link.
const CACHE_NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

struct Representation {
    head: BodyMetadata,
    tag: Option<ETag>,
    /// The length in bytes, if it is known and reliable.
    bytes: Option<u64>,
    coding: Option<ContentCoding>,
    job: Arc<Job>,
}

/// Waits for the first part of `reply`. A failure before that becomes a problem with its own status.
pub(super) async fn answer(
    mut reply: Reply,
    mut revalidator: CallerRevalidator,
    route: &ResultRoute,
    result_request: &mut ResultRequest,
    parts: &Parts,
) -> Result<Response, ProblemDetails> {
    let job = reply.job().clone();
    let (head, first) = match revalidator.run_while_valid(next_part(&mut reply)).await? {
        ReplyPart::End(Err(error)) => return Err(error.into()),
        ReplyPart::Body(head) => (head, None),
        // A manifest is text.
        first => {
            let media_type = Format::Json.media_type();
            (BodyMetadata::new(media_type, Budget::default()), Some(first))
        }
    };
    if let Some(problem) = result_request.format_problem.take().filter(|_| head.file.is_none()) {
        return Err(problem);
    }
    let representation = Representation::new(head, result_request, parts, job);
    let part = match evaluate_conditions(parts, representation.tag.as_ref(), representation.bytes)? {
        ConditionOutcome::NotModified => return Ok(representation.not_modified(result_request)),
        ConditionOutcome::Whole => None,
        ConditionOutcome::Part(part) => Some(part),
    };
    let pieces = AnswerBody::new(reply, revalidator, None, first).begin().await?;
    Ok(representation.build_response(pieces, part, route, result_request, parts))
}

impl Representation {
    fn new(head: BodyMetadata, result_request: &ResultRequest, parts: &Parts, job: Arc<Job>) -> Self {
        let bytes = head.version.as_ref().and_then(|body_version| body_version.bytes);
        // Ranges require bytes that are the same each time; those of a content coding are not.
        let is_ranged = bytes.is_some() && parts.method == Method::GET && parts.headers.contains_key(header::RANGE);
        // A file is sent unchanged: its length and its tag describe the original bytes.
        let is_file = head.file.is_some();
        // Binary formats are compressed internally.
        let may_be_coded = !result_request.format.is_binary() && !is_ranged && !is_file;
        let coding = if may_be_coded { ContentCoding::negotiate(&parts.headers) } else { None };
        let tag = head.version.as_ref().and_then(|body_version| entity_tag(&body_version.tag, coding.is_some()));
        Self { tag, bytes: bytes.filter(|_| coding.is_none()), coding, head, job }
    }

    fn not_modified(&self, result_request: &ResultRequest) -> Response {
        let mut response = not_modified();
        add_missing_nodes_header(response.headers_mut(), &self.job);
        self.set_cache_headers(response.headers_mut(), result_request);
        response
    }

    fn build_response(
        &self,
        pieces: AnswerStart,
        part: Option<ByteRange>,
        route: &ResultRoute,
        result_request: &ResultRequest,
        parts: &Parts,
    ) -> Response {
        // The metadata of a complete answer goes into the headers, unless only a part is sent.
        let metadata_headers = match &pieces {
            AnswerStart::Whole(_, headers) if part.is_none() => headers.clone(),
            AnswerStart::Whole(..) | AnswerStart::Streaming(_) => HeaderMap::new(),
        };
        let mut response = match (self.coding, part.or(self.bytes.map(ByteRange::whole))) {
            (Some(coding), _) => {
                let name = HeaderValue::from_static(coding.name());
                response_with_header(coding.encode(pieces.into_stream()), header::CONTENT_ENCODING, name)
            }
            (None, Some(counted)) => {
                let length = HeaderValue::from(counted.count);
                response_with_header(counted.slice_body(pieces.into_stream()), header::CONTENT_LENGTH, length)
            }
            (None, None) => begin_response(pieces, parts),
        };
        response.headers_mut().extend(metadata_headers);
        if let Some(part) = part {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            // Digits and letters.
            let range = HeaderValue::from_str(&part.content_range());
            response.headers_mut().extend(range.map(|range| (header::CONTENT_RANGE, range)));
        }
        let headers = response.headers_mut();
        describe(headers, &self.head, &self.job);
        self.set_cache_headers(headers, result_request);
        if self.bytes.is_some() {
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        let disposition = match &self.head.file {
            Some(file) => Some(content_disposition(&file.name)),
            None => route
                .file_stem()
                .map(|stem| content_disposition(&format!("{stem}.{}", result_request.format.extension()))),
        };
        // ASCII without control characters.
        let disposition = disposition.and_then(|it| HeaderValue::from_str(&it).ok());
        headers.extend(disposition.map(|it| (header::CONTENT_DISPOSITION, it)));
        if self.head.file.is_some() {
            // Browsers must not treat the file as a page of this server.
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
        }
        response
    }

    fn set_cache_headers(&self, headers: &mut HeaderMap, result_request: &ResultRequest) {
        if let Some(tag) = &self.tag {
            headers.typed_insert(tag.clone());
        }
        let is_kept = self.head.version.is_some() && !result_request.has_link;
        headers.insert(header::CACHE_CONTROL, if is_kept { CACHE_IMMUTABLE } else { CACHE_NO_STORE });
        headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding, authorization"));
    }
}

/// The value of `Content-Disposition` for a download. A name with non-ASCII characters is added in encoded form.
///
/// [RFC 6266](https://www.rfc-editor.org/rfc/rfc6266)
fn content_disposition(name: &str) -> String {
    let is_plain = |char: char| char == ' ' || (char.is_ascii_graphic() && !"\"\\%".contains(char));
    let plain: String = name.chars().map(|char| if is_plain(char) { char } else { '_' }).collect();
    if plain == name {
        return format!("attachment; filename=\"{name}\"");
    }
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

fn response_with_header(body: Body, name: HeaderName, value: HeaderValue) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_disposition_names_the_file() {
        let named = ["big.txt", "a b.csv", "Grüße \"1\".pdf", "100%.txt", "x\r\ny"].map(content_disposition);
        insta::assert_snapshot!(named.join("\n"), @r#"
        attachment; filename="big.txt"
        attachment; filename="a b.csv"
        attachment; filename="Gr__e _1_.pdf"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%221%22%2Epdf
        attachment; filename="100_.txt"; filename*=UTF-8''100%25%2Etxt
        attachment; filename="x__y"; filename*=UTF-8''x%0D%0Ay
        "#);
    }
}
