//! Documents of the registry with an entity tag: a client that has the current version gets 304.
//!
//! [RFC 9110, ETag](https://www.rfc-editor.org/rfc/rfc9110#name-etag)

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body::Frame;
use serde_json::Value;

/// The media type of most documents.
pub(super) const JSON: &str = "application/json";
/// The media type of JSON Schemas.
pub(super) const SCHEMA: &str = "application/schema+json";

/// The response with `value`, or 304 if the client has it already.
pub(super) fn document_response(header_map: &HeaderMap, media_type: &'static str, value: &Value) -> Response {
    let text = value.to_string();
    let tag = entity_tag(&text);
    let is_known = header_map.get_all(header::IF_NONE_MATCH).iter().any(|known| matches_tag(known, &tag));
    let mut response = if is_known { not_modified() } else { Response::new(Body::from(text)) };
    let headers = response.headers_mut();
    if !is_known {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    // A tag consists of hexadecimal digits in quotes.
    headers.extend(HeaderValue::from_str(&tag).map(|tag| (header::ETAG, tag)));
    // The content depends on the caller, and may change with each configuration.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("authorization"));
    response
}

/// The 304 response.
pub(in super::super) fn not_modified() -> Response {
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

/// A 128-bit hash of the text. It need not be cryptographic, because callers do not choose the text.
fn entity_tag(text: &str) -> String {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, text).hash(&mut hasher);
        hasher.finish()
    };
    format!("\"{:016x}{:016x}\"", half(0), half(1))
}

/// Whether `If-None-Match` contains the tag or `*`; weak tags match too.
fn matches_tag(known: &HeaderValue, tag: &str) -> bool {
    let Ok(known) = known.to_str() else { return false };
    known.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}
