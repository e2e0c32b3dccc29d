//! What is read from the registry as a whole document, with an entity tag: whoever has it already gets no second one.
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
/// That of JSON Schemas.
pub(super) const SCHEMA: &str = "application/schema+json";

/// The response with `parse_value`, or 304 for one who has it.
pub(super) fn document_response(header_map: &HeaderMap, media_type: &'static str, value: &Value) -> Response {
    let text = value.to_string();
    let tag = entity_tag(&text);
    let is_known = header_map.get_all(header::IF_NONE_MATCH).iter().any(|known| matches_tag(known, &tag));
    let mut response = if is_known { not_modified() } else { Response::new(Body::from(text)) };
    let headers = response.headers_mut();
    if !is_known {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    // A tag is hexadecimal digits in quotes.
    headers.extend(HeaderValue::from_str(&tag).map(|tag| (header::ETAG, tag)));
    // What is seen depends on who asks, and may change with each configuration.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("authorization"));
    response
}

/// The response to one who has it already.
pub(in super::super) fn not_modified() -> Response {
    let mut response = Response::new(Body::new(UnsentBody));
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// A body that is not sent: the length of nothing would be said to be that of what the client has.
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

/// 128 bits of the text, which is not chosen by callers.
fn entity_tag(text: &str) -> String {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, text).hash(&mut hasher);
        hasher.finish()
    };
    format!("\"{:016x}{:016x}\"", half(0), half(1))
}

/// Whether `If-None-Match` names the tag, as any or as one of a list; weak ones count too.
fn matches_tag(known: &HeaderValue, tag: &str) -> bool {
    let Ok(known) = known.to_str() else { return false };
    known.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}
