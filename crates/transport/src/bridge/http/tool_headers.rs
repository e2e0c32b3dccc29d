//! Arguments that a tool's schema wants repeated in headers of their own, found out when a server insists on them.
//!
//! Few tools mark any, so nothing is asked beforehand: a call that lacks them is refused before it runs, its tool is
//! looked up, and the call is sent again with them.
//!
//! [MCP 2026-07-28, Custom Headers from Tool Parameters](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters)

use std::collections::HashMap;

use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::headers::encode_header_value;
use crate::bridge::request::ModernMetadata;

/// Levels of a schema that are looked at.
const DEPTH_MAX: usize = 16;
/// Marks of one tool; more of them are nothing that headers could carry.
const HEADERS_PER_TOOL_MAX: usize = 64;

/// Tools whose marks are kept; then all are forgotten, to be looked up again.
const TOOLS_MAX: usize = 1_000;

/// What is known of the tools that were looked up.
#[derive(Debug, Default)]
pub(super) struct ToolHeaders(Mutex<HashMap<String, Vec<ParameterHeader>>>);

/// Where an argument stands, and the header that repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParameterHeader {
    path: Vec<String>,
    header: HeaderName,
}

#[derive(Deserialize)]
struct ToolListResponse {
    result: ToolListPage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolListPage {
    tools: Vec<ListedTool>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool {
    name: String,
    #[serde(default)]
    input_schema: Value,
}

#[derive(Deserialize)]
struct CallRequest {
    params: CallParams,
}

#[derive(Deserialize)]
struct CallParams {
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(rename = "_meta", default)]
    meta: Value,
}

#[derive(Deserialize)]
struct MismatchResponse {
    error: ErrorCode,
}

#[derive(Deserialize)]
struct ErrorCode {
    code: i64,
}

impl ToolHeaders {
    /// Keeps what a tool wants; false when it is what was known of it before, so that asking again is of no use.
    pub(super) fn store(&self, tool: &str, marks: Vec<ParameterHeader>) -> bool {
        let mut known = self.0.lock();
        let is_new = known.get(tool).map_or(!marks.is_empty(), |before| *before != marks);
        if known.len() >= TOOLS_MAX {
            known.clear();
        }
        known.insert(tool.to_owned(), marks);
        is_new
    }

    /// Adds the headers that the tool of `call` is known to want.
    pub(super) fn add_to(&self, headers: &mut HeaderMap, modern: &ModernMetadata, call: &[u8]) {
        let marks = modern.name.as_deref().and_then(|tool| self.0.lock().get(tool).cloned()).unwrap_or_default();
        if !marks.is_empty() && modern.method == "tools/call" {
            add_headers(headers, &marks, call);
        }
    }
}

/// Whether `answer` says that headers and body disagree.
pub(super) fn is_mismatch(answer: &[u8]) -> bool {
    serde_json::from_slice::<MismatchResponse>(answer)
        .is_ok_and(|refused| refused.error.code == tidegate_mcp::RpcError::HEADER_MISMATCH)
}

/// The request for a page of the list of tools, on behalf of the `call`, whose identity it has.
pub(super) fn tools_list_request(call: &[u8], cursor: Option<&str>) -> Option<String> {
    let call_request: CallRequest = serde_json::from_slice(call).ok()?;
    let mut params = json!({"_meta": call_request.params.meta});
    // Nobody waits for the progress of this request.
    params["_meta"].as_object_mut()?.remove("progressToken");
    if let Some(cursor) = cursor {
        params["cursor"] = cursor.into();
    }
    Some(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string())
}

/// What a page of the list says.
pub(super) enum ToolLookup {
    /// The tool is on it.
    Headers(Vec<ParameterHeader>),
    /// It may be on the page of that cursor.
    NextPage(String),
    NotFound,
}

/// Looks the tool of that name up on `page`.
pub(super) fn find_tool(page: &[u8], name: &str) -> ToolLookup {
    let Ok(ToolListResponse { result: ToolListPage { tools, next_cursor } }) = serde_json::from_slice(page) else {
        return ToolLookup::NotFound;
    };
    match tools.into_iter().find(|tool| tool.name == name) {
        Some(tool) => {
            let mut marks = Vec::new();
            collect_headers(&tool.input_schema, &mut Vec::new(), &mut marks);
            ToolLookup::Headers(marks)
        }
        None => next_cursor.map_or(ToolLookup::NotFound, ToolLookup::NextPage),
    }
}

fn collect_headers(schema: &Value, path: &mut Vec<String>, marks: &mut Vec<ParameterHeader>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        path.push(name.clone());
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        let header = header.and_then(|header| HeaderName::try_from(format!("mcp-param-{header}")).ok());
        if let Some(header) = header.filter(|_| marks.len() < HEADERS_PER_TOOL_MAX) {
            marks.push(ParameterHeader { path: path.clone(), header });
        }
        if path.len() < DEPTH_MAX {
            collect_headers(property, path, marks);
        }
        path.pop();
    }
}

/// Adds the headers that `tool_headers` want for `call`.
fn add_headers(headers: &mut HeaderMap, marks: &[ParameterHeader], call: &[u8]) {
    let Ok(CallRequest { params }) = serde_json::from_slice(call) else { return };
    let arguments = Value::Object(params.arguments);
    for ParameterHeader { path, header } in marks {
        let value = path.iter().try_fold(&arguments, |value, name| value.get(name));
        let text = match value {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => continue,
        };
        headers.insert(header.clone(), encode_header_value(&text));
    }
}
