//! Documents of the registry with an entity tag: a client that has the current version gets 304.
//!
//! [RFC 9110, ETag](https://www.rfc-editor.org/rfc/rfc9110#name-etag)

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use headers::HeaderMapExt;
use serde_json::Value;

use super::super::answer::{entity_tag, matches_none_match, not_modified};

pub(super) const JSON: &str = "application/json";
pub(super) const SCHEMA: &str = "application/schema+json";

/// The response with `value`, or 304 if the client has it already.
pub(super) fn document_response(header_map: &HeaderMap, media_type: &'static str, value: &Value) -> Response {
    let text = value.to_string();
    let tag = entity_tag(&hash(&text), false);
    let is_current = matches_none_match(header_map, tag.as_ref());
    let mut response = if is_current { not_modified() } else { Response::new(Body::from(text)) };
    let headers = response.headers_mut();
    if !is_current {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    if let Some(tag) = tag {
        headers.typed_insert(tag);
    }
    // The content depends on the caller, and may change with each configuration.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("authorization"));
    response
}

/// A 128-bit hash of the text. It need not be cryptographic, because callers do not choose the text.
fn hash(text: &str) -> String {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, text).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}
