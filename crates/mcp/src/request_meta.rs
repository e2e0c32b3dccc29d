//! The metadata of a request in `params._meta`.
//!
//! [MCP 2026-07-28, `_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta)

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_core::{ClientCapabilities, LogLevel};

use crate::jsonrpc::RpcError;
use crate::wire::parse_client_capabilities;

/// The maximum length of progress tokens in bytes: each progress notification repeats the token.
const TOKEN_BYTES_MAX: usize = 4 * 1024;

/// The known members of `_meta`; `None` if missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestMeta {
    /// The revision of the request (modern requests only).
    pub protocol_version: Option<String>,
    /// Whether the client declared its capabilities; required in modern requests.
    pub has_client_capabilities: bool,
    /// The capabilities that the client declared (modern requests only).
    pub client_capabilities: ClientCapabilities,
    /// The token with which the client requests progress, as JSON text.
    pub progress_token: Option<String>,
    /// The least severe log message that the client requests (modern requests only).
    pub log_level: Option<LogLevel>,
    /// The W3C trace context.
    pub trace_parent: Option<String>,
    /// Whether the whole request is logged (`dev.tidegate/trace`).
    pub trace: bool,
    /// The whole of `_meta` as JSON text, for handlers that receive it.
    pub(crate) text: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct RequestMetaParams<'a> {
    #[serde(borrow, rename = "_meta", default)]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RequestMetaMembers<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<String>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<String>,
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    traceparent: Option<String>,
    #[serde(rename = "dev.tidegate/trace", default)]
    trace: bool,
}

impl RequestMeta {
    pub(crate) fn read(params: Option<&RawValue>) -> Result<Self, RpcError> {
        let Some(params) = params else { return Ok(Self::default()) };
        let invalid = |subject: &str| RpcError::invalid_params(format!("params._meta is wrong: {subject}"));
        let params: RequestMetaParams<'_> =
            serde_json::from_str(params.get()).map_err(|error| invalid(&error.to_string()))?;
        let Some(meta) = params.meta else { return Ok(Self::default()) };
        if !meta.get().starts_with('{') {
            return Err(invalid("it must be an object"));
        }
        let members: RequestMetaMembers<'_> =
            serde_json::from_str(meta.get()).map_err(|error| invalid(&error.to_string()))?;
        let is_object = |raw: Option<&RawValue>| raw.is_none_or(|raw| raw.get().starts_with('{'));
        if !is_object(members.client_capabilities) || !is_object(members.client_info) {
            return Err(invalid("clientCapabilities and clientInfo must be objects"));
        }
        let log_level = members
            .log_level
            .map(|name| LogLevel::parse(&name).ok_or_else(|| invalid(&format!("there is no log level {name:?}"))))
            .transpose()?;
        Ok(Self {
            protocol_version: members.protocol_version,
            has_client_capabilities: members.client_capabilities.is_some(),
            client_capabilities: members.client_capabilities.map(parse_declared).unwrap_or_default(),
            progress_token: members.progress_token.map(parse_progress_token).transpose()?,
            log_level,
            trace_parent: members.traceparent.filter(|value| is_trace_parent(value)),
            trace: members.trace,
            text: Some(meta.get().into()),
        })
    }
}

/// Decodes `clientCapabilities`. Most clients declare none.
fn parse_declared(capabilities: &RawValue) -> ClientCapabilities {
    match capabilities.get() {
        "{}" => ClientCapabilities::default(),
        text => serde_json::from_str(text).map(|value| parse_client_capabilities(&value)).unwrap_or_default(),
    }
}

fn parse_progress_token(raw: &RawValue) -> Result<String, RpcError> {
    let text = raw.get();
    if text.len() > TOKEN_BYTES_MAX {
        let message = format!("params._meta.progressToken is longer than {TOKEN_BYTES_MAX} bytes");
        return Err(RpcError::invalid_params(message));
    }
    let first = text.bytes().next().unwrap_or_default();
    if (first == b'"' && serde_json::from_str::<String>(text).is_ok()) || first == b'-' || first.is_ascii_digit() {
        Ok(text.to_owned())
    } else {
        Err(RpcError::invalid_params("params._meta.progressToken must be a string or a number"))
    }
}

/// Whether `value` has the form `00-<32 hex>-<16 hex>-<2 hex>` (W3C Trace Context, section 3.2). Other values are not
/// logged.
pub fn is_trace_parent(value: &str) -> bool {
    let lengths: Vec<usize> = value.split('-').map(str::len).collect();
    lengths == [2, 32, 16, 2] && value.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}
