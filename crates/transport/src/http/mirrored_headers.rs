//! Checks the headers of a modern request, which mirror its body so that a proxy can route it: both must agree.
//!
//! [MCP 2026-07-28, Request Metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata)

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::Caller;
use tidegate_mcp::{RpcError, RpcRequest};
use tidegate_runtime::Registry;

pub(super) const PROTOCOL_VERSION: &str = "mcp-protocol-version";

const DEPTH_MAX: usize = 16;

#[derive(Deserialize)]
struct MirroredParams {
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "taskId")]
    task_id: Option<String>,
    arguments: Option<Box<RawValue>>,
}

pub(super) fn check_headers(
    headers: &HeaderMap,
    request: &RpcRequest,
    registry: &Registry,
    caller: &Caller,
) -> Result<(), RpcError> {
    let version = require_header(headers, "MCP-Protocol-Version")?;
    if let Some(in_body) = request.meta.protocol_version.as_deref().filter(|in_body| *in_body != version) {
        return Err(mismatch_error("MCP-Protocol-Version", version, in_body));
    }
    let method = require_header(headers, "Mcp-Method")?;
    if method != request.method {
        return Err(mismatch_error("Mcp-Method", method, &request.method));
    }
    let read_name = match request.method.as_str() {
        "tools/call" | "prompts/get" => |body: &MirroredParams| body.name.clone(),
        "resources/read" => |body: &MirroredParams| body.uri.clone(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => |body: &MirroredParams| body.task_id.clone(),
        _ => return Ok(()),
    };
    let body: MirroredParams = request.params()?;
    let name = decode_value("Mcp-Name", require_header(headers, "Mcp-Name")?)?;
    let in_body = read_name(&body).unwrap_or_default();
    if name != in_body {
        return Err(mismatch_error("Mcp-Name", &name, &in_body));
    }
    if request.method == "tools/call"
        && let Ok(tool) = registry.snapshot_for(caller).tool(&in_body, caller)
    {
        check_parameters(headers, tool.input_schema.json(), body.arguments.as_deref())?;
    }
    Ok(())
}

/// Checks `Mcp-Param-*` for the properties that the schema marks. Most schemas mark none: no arguments are parsed.
fn check_parameters(headers: &HeaderMap, schema: &Value, arguments: Option<&RawValue>) -> Result<(), RpcError> {
    let mut marked = Vec::new();
    collect_marked_properties(schema, &mut Vec::new(), &mut marked);
    if marked.is_empty() {
        return Ok(());
    }
    let arguments: Value = serde_json::from_str(arguments.map_or("null", RawValue::get))
        .map_err(|error| RpcError::invalid_params(format!("invalid arguments: {error}")))?;
    for (path, header) in marked {
        let value = path.iter().fold(&arguments, |value, name| value.get(name).unwrap_or(&Value::Null));
        check_parameter(headers, &format!("Mcp-Param-{header}"), value)?;
    }
    Ok(())
}

/// The paths of the properties with `x-mcp-header`, reached through `properties` only.
fn collect_marked_properties<'a>(
    schema: &'a Value,
    path: &mut Vec<&'a str>,
    marked: &mut Vec<(Vec<&'a str>, &'a str)>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        path.push(name);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            marked.push((path.clone(), header));
        }
        if path.len() < DEPTH_MAX {
            collect_marked_properties(property, path, marked);
        }
        path.pop();
    }
}

fn check_parameter(headers: &HeaderMap, header: &str, value: &Value) -> Result<(), RpcError> {
    let in_body = match value {
        // Lists and objects have no header form.
        Value::Null | Value::Array(_) | Value::Object(_) if headers.contains_key(header) => {
            return Err(RpcError::header_mismatch(format!("{header} is given, but the body has no such value")));
        }
        Value::Null | Value::Array(_) | Value::Object(_) => return Ok(()),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    let in_header = decode_value(header, require_header(headers, header)?)?;
    if in_header == in_body || (value.is_number() && are_equal_numbers(&in_header, &in_body)) {
        return Ok(());
    }
    Err(mismatch_error(header, &in_header, &in_body))
}

/// `42.0` equals `42`. Integers are compared exactly: above 2^53 a float stands for several.
fn are_equal_numbers(in_header: &str, in_body: &str) -> bool {
    if let (Ok(in_header), Ok(in_body)) = (in_header.parse::<i128>(), in_body.parse::<i128>()) {
        return in_header == in_body;
    }
    in_header.parse::<f64>().is_ok_and(|in_header| in_body.parse() == Ok(in_header))
}

fn require_header<'a>(headers: &'a HeaderMap, header: &str) -> Result<&'a str, RpcError> {
    let missing = || RpcError::header_mismatch(format!("the header {header} is missing"));
    let mut values = headers.get_all(header).iter();
    let value = values.next().ok_or_else(missing)?;
    if values.next().is_some() {
        // A proxy may have routed by another value.
        return Err(RpcError::header_mismatch(format!("the header {header} is given more than once")));
    }
    value.to_str().map_err(|_| RpcError::header_mismatch(format!("the header {header} contains non-ASCII characters")))
}

/// Decodes `=?base64?…?=`; other values are literal.
fn decode_value(header: &str, value: &str) -> Result<String, RpcError> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };
    let bytes = STANDARD.decode(encoded).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| RpcError::header_mismatch(format!("the header {header} is not Base64 of UTF-8")))
}

fn mismatch_error(header: &str, in_header: &str, in_body: &str) -> RpcError {
    RpcError::header_mismatch(format!("Header mismatch: {header} is {in_header:?}, but the body has {in_body:?}"))
}
