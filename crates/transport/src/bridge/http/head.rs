//! The headers of what is sent.
//!
//! [MCP 2026-07-28, Request Metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata)

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::session::Agreed;
use crate::bridge::bearer::Bearer;
use crate::bridge::request::Modern;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The first revision that has a header for itself.
const FIRST_WITH_VERSION: &str = "2025-06-18";

/// The headers of a POST that belongs to no session.
pub(super) fn plain(bearer: Option<&Bearer>) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(ACCEPT, BOTH), (CONTENT_TYPE, JSON)]);
    headers.extend(bearer.map(|bearer| (AUTHORIZATION, bearer.header().clone())));
    headers
}

/// The headers of a POST of a legacy session.
pub(super) fn legacy(bearer: Option<&Bearer>, agreed: &Agreed) -> HeaderMap {
    let mut headers = plain(bearer);
    headers.extend(agreed.session.clone().map(|session| (SESSION_ID, session)));
    let version = &agreed.handshake.terms.version;
    // Dates are ordered like their text.
    if version.as_str() >= FIRST_WITH_VERSION {
        headers.extend(HeaderValue::try_from(version).ok().map(|version| (PROTOCOL_VERSION, version)));
    }
    headers
}

/// The headers of a GET that listens to a legacy session.
pub(super) fn listening(bearer: Option<&Bearer>, agreed: &Agreed) -> HeaderMap {
    let mut headers = legacy(bearer, agreed);
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCEPT, EVENTS);
    headers
}

/// The headers of a modern POST, which mirror its body.
pub(super) fn modern(bearer: Option<&Bearer>, modern: &Modern) -> HeaderMap {
    let mut headers = plain(bearer);
    headers.insert(PROTOCOL_VERSION, mirrored(&modern.version));
    headers.insert(METHOD, mirrored(&modern.method));
    headers.extend(modern.name.as_deref().map(|name| (NAME, mirrored(name))));
    headers
}

/// `text` as a header's value: as it is, or as Base64 of its UTF-8 where a header could not carry it.
pub(super) fn mirrored(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let carried = if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) };
    // Both are visible ASCII.
    HeaderValue::try_from(carried).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_header_carries_are_encoded() {
        for (text, carried) in [
            ("us-west1", "us-west1"),
            ("two words", "two words"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(mirrored(text), carried);
        }
    }
}
