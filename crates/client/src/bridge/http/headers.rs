//! The headers of requests to the server.
//!
//! [MCP 2026-07-28, Request Metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata)

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::session::NegotiatedSession;
use crate::bearer_token::BearerToken;
use crate::bridge::request::ModernMetadata;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const ACCEPT_EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

const FIRST_VERSION_WITH_HEADER: &str = "2025-06-18";

pub(super) fn base_headers(bearer: Option<&BearerToken>) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(ACCEPT, ACCEPT_BOTH), (CONTENT_TYPE, JSON)]);
    headers.extend(bearer.map(|bearer| (AUTHORIZATION, bearer.header().clone())));
    headers
}

pub(super) fn legacy_headers(bearer: Option<&BearerToken>, session: &NegotiatedSession) -> HeaderMap {
    let mut headers = base_headers(bearer);
    headers.extend(session.id.clone().map(|id| (SESSION_ID, id)));
    let version = &session.handshake.negotiated.version;
    // Versions are dates, which are ordered like their text.
    if version.as_str() >= FIRST_VERSION_WITH_HEADER {
        headers.extend(HeaderValue::try_from(version).ok().map(|version| (PROTOCOL_VERSION, version)));
    }
    headers
}

pub(super) fn listen_headers(bearer: Option<&BearerToken>, session: &NegotiatedSession) -> HeaderMap {
    let mut headers = legacy_headers(bearer, session);
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCEPT, ACCEPT_EVENTS);
    headers
}

pub(super) fn modern_headers(bearer: Option<&BearerToken>, modern: &ModernMetadata) -> HeaderMap {
    let mut headers = base_headers(bearer);
    headers.insert(PROTOCOL_VERSION, encode_header_value(&modern.version));
    headers.insert(METHOD, encode_header_value(&modern.method));
    headers.extend(modern.name.as_deref().map(|name| (NAME, encode_header_value(name))));
    headers
}

/// `text` as a header value: unchanged, or as Base64 of its UTF-8 if a header cannot contain it.
pub(super) fn encode_header_value(text: &str) -> HeaderValue {
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
    fn encodes_names_that_are_not_header_safe() {
        for (text, carried) in [
            ("us-west1", "us-west1"),
            ("two words", "two words"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode_header_value(text), carried);
        }
    }
}
