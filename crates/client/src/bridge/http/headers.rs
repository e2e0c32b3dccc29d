//! The headers of requests to the server, also those that repeat arguments of a tool, as its schema requires.
//!
//! Few tools have such headers, so nothing is requested in advance. A call without them is rejected before it runs. The
//! bridge then reads the definition of the tool and sends the call again with the headers.
//!
//! [MCP 2026-07-28, Request Metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata),
//! [Custom Headers from Tool Parameters](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters)

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::super::request::ModernMetadata;
use super::NegotiatedSession;
use crate::server::BearerToken;

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
fn encode_header_value(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let carried = if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) };
    // Both are visible ASCII.
    HeaderValue::try_from(carried).unwrap_or(HeaderValue::from_static(""))
}

const DEPTH_MAX: usize = 16;
const HEADERS_PER_TOOL_MAX: usize = 64;

/// Maximum number of cached tools. Beyond it, the cache is cleared.
const TOOLS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct ToolHeaders(Mutex<HashMap<String, Vec<ParameterHeader>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParameterHeader {
    path: Vec<String>,
    header: HeaderName,
}

impl ToolHeaders {
    /// Stores the headers of a tool; false if they were known before, so that another attempt is useless.
    pub(super) fn store(&self, tool: &str, parameter_headers: Vec<ParameterHeader>) -> bool {
        let mut tools = self.0.lock();
        let is_new = tools.get(tool).map_or(!parameter_headers.is_empty(), |before| *before != parameter_headers);
        if tools.len() >= TOOLS_MAX {
            tools.clear();
        }
        tools.insert(tool.to_owned(), parameter_headers);
        is_new
    }

    pub(super) fn add_to(&self, headers: &mut HeaderMap, modern: &ModernMetadata, call: &[u8]) {
        let parameter_headers =
            modern.name.as_deref().and_then(|tool| self.0.lock().get(tool).cloned()).unwrap_or_default();
        if !parameter_headers.is_empty() && modern.method == "tools/call" {
            add_headers(headers, &parameter_headers, call);
        }
    }
}

/// Whether `answer` reports that headers and body disagree.
pub(super) fn is_mismatch(answer: &[u8]) -> bool {
    parse(answer)["error"]["code"] == tidegate_mcp::RpcError::HEADER_MISMATCH
}

pub(super) fn tools_list_request(call: &[u8], cursor: Option<&str>) -> Option<String> {
    let mut params = json!({"_meta": parse(call)["params"]["_meta"]});
    // No progress is needed for this request.
    params["_meta"].as_object_mut()?.remove("progressToken");
    if let Some(cursor) = cursor {
        params["cursor"] = cursor.into();
    }
    Some(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string())
}

/// A text that is not JSON counts as null, which has no members.
fn parse(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_default()
}

pub(super) enum ToolLookup {
    /// The headers of the tool, which is on the page.
    Headers(Vec<ParameterHeader>),
    /// The cursor of the next page, which may contain the tool.
    NextPage(String),
    NotFound,
}

pub(super) fn find_tool(page: &[u8], name: &str) -> ToolLookup {
    let page = parse(page);
    let result = &page["result"];
    match result["tools"].as_array().into_iter().flatten().find(|tool| tool["name"] == name) {
        Some(tool) => {
            let mut parameter_headers = Vec::new();
            collect_headers(&tool["inputSchema"], &mut Vec::new(), &mut parameter_headers);
            ToolLookup::Headers(parameter_headers)
        }
        None => {
            result["nextCursor"].as_str().map_or(ToolLookup::NotFound, |next| ToolLookup::NextPage(next.to_owned()))
        }
    }
}

fn collect_headers(schema: &Value, path: &mut Vec<String>, parameter_headers: &mut Vec<ParameterHeader>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        path.push(name.clone());
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        let header = header.and_then(|header| HeaderName::try_from(format!("mcp-param-{header}")).ok());
        if let Some(header) = header.filter(|_| parameter_headers.len() < HEADERS_PER_TOOL_MAX) {
            parameter_headers.push(ParameterHeader { path: path.clone(), header });
        }
        if path.len() < DEPTH_MAX {
            collect_headers(property, path, parameter_headers);
        }
        path.pop();
    }
}

fn add_headers(headers: &mut HeaderMap, parameter_headers: &[ParameterHeader], call: &[u8]) {
    let call = parse(call);
    let arguments = &call["params"]["arguments"];
    for ParameterHeader { path, header } in parameter_headers {
        let value = path.iter().try_fold(arguments, |value, name| value.get(name));
        let text = match value {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => continue,
        };
        headers.insert(header.clone(), encode_header_value(&text));
    }
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
