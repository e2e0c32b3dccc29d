//! The headers of a modern request, which mirror its body so that a proxy can route it: they must agree.
//!
//! [MCP 2026-07-28, Request Metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata)

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::{Origin, Principal, Registry};
use tidegate_mcp::{Request, RpcError};

pub(super) const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// Properties of a tool's schema that are looked at for `x-mcp-header`.
const DEPTH_MAX: usize = 16;

#[derive(Deserialize)]
struct Mirrored {
    name: Option<String>,
    uri: Option<String>,
    #[serde(default)]
    arguments: Value,
}

/// Checks every mirrored header of `request`.
///
/// # Errors
/// `-32020` for one that is missing, malformed or different from the body.
pub(super) fn check(
    headers: &HeaderMap,
    request: &Request,
    registry: &Registry,
    caller: (&Principal, Origin),
) -> Result<(), RpcError> {
    let version = required(headers, "MCP-Protocol-Version")?;
    if let Some(in_body) = request.meta.protocol_version.as_deref().filter(|in_body| *in_body != version) {
        return Err(differs("MCP-Protocol-Version", version, in_body));
    }
    let method = required(headers, "Mcp-Method")?;
    if method != request.method {
        return Err(differs("Mcp-Method", method, &request.method));
    }
    if !matches!(request.method.as_str(), "tools/call" | "prompts/get" | "resources/read") {
        return Ok(());
    }
    let body: Mirrored = request.params()?;
    let name = decoded("Mcp-Name", required(headers, "Mcp-Name")?)?;
    let in_body = body.name.or(body.uri).unwrap_or_default();
    if name != in_body {
        return Err(differs("Mcp-Name", &name, &in_body));
    }
    if request.method == "tools/call"
        && let Ok(tool) = registry.snapshot().tool(&in_body, caller.0, caller.1)
    {
        check_parameters(headers, tool.input_schema.json(), &body.arguments, DEPTH_MAX)?;
    }
    Ok(())
}

/// Checks `Mcp-Param-*` for the properties that the schema marks, reached through `properties` only.
fn check_parameters(headers: &HeaderMap, schema: &Value, value: &Value, depth_left: usize) -> Result<(), RpcError> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (name, property) in properties {
        let value = value.get(name).unwrap_or(&Value::Null);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            check_parameter(headers, &format!("Mcp-Param-{header}"), value)?;
        }
        if depth_left > 0 {
            check_parameters(headers, property, value, depth_left - 1)?;
        }
    }
    Ok(())
}

fn check_parameter(headers: &HeaderMap, header: &str, value: &Value) -> Result<(), RpcError> {
    let in_body = match value {
        Value::Null if headers.contains_key(header) => {
            return Err(RpcError::header_mismatch(format!("{header} is given, but the body has no such value")));
        }
        // Values of other types have no header form; the tool's schema refuses them.
        Value::Null | Value::Array(_) | Value::Object(_) => return Ok(()),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    let in_header = decoded(header, required(headers, header)?)?;
    let are_equal_numbers = || {
        let number = in_header.parse::<f64>().ok()?;
        Some(value.as_f64()? == number)
    };
    if in_header == in_body || are_equal_numbers() == Some(true) {
        return Ok(());
    }
    Err(differs(header, &in_header, &in_body))
}

fn required<'a>(headers: &'a HeaderMap, header: &str) -> Result<&'a str, RpcError> {
    let missing = || RpcError::header_mismatch(format!("the header {header} is missing"));
    let value = headers.get(header).ok_or_else(missing)?;
    value.to_str().map_err(|_| RpcError::header_mismatch(format!("the header {header} has characters beyond ASCII")))
}

/// Decodes `=?base64?…?=`; everything else stands for itself.
fn decoded(header: &str, value: &str) -> Result<String, RpcError> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };
    let bytes = STANDARD.decode(encoded).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| RpcError::header_mismatch(format!("the header {header} is not Base64 of UTF-8")))
}

fn differs(header: &str, in_header: &str, in_body: &str) -> RpcError {
    RpcError::header_mismatch(format!("Header mismatch: {header} is {in_header:?}, the body says {in_body:?}"))
}
