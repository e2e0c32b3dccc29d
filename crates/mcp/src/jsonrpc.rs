//! JSON-RPC 2.0 as MCP uses it: decoding of messages, with the metadata of requests in `params._meta`, encoding of responses,
//! and messages as lines, read within a limit.
//!
//! Any bytes give either a message or an error that can be sent as it is.
//!
//! MCP 2026-07-28: [Error Codes](https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes),
//! [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta);
//! [MCP 2025-11-25, stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio)

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_core::{ClientCapabilities, Error, ErrorKind, LogLevel, ProtocolError};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::revision::{Dialect, Revision};
use crate::wire::{encode_client_capabilities, parse_client_capabilities};

/// The maximum number of messages in one JSON-RPC batch.
pub const RPC_BATCH_MESSAGES_MAX: usize = 100;

/// A message of a client.
#[derive(Debug)]
pub enum IncomingMessage {
    /// A request, which is answered.
    Request(RpcRequest),
    /// A notification, which is not answered.
    Notification(RpcNotification),
    /// A response to a server request, which only legacy clients receive.
    Response(RpcResponse),
    /// Several messages at once (2025-03-26 only). Messages that cannot be decoded are errors.
    RpcBatch(Vec<Result<IncomingMessage, DecodeError>>),
}

/// A client's response to a server request; without a result if it is an error.
#[derive(Debug, Default)]
pub struct RpcResponse {
    /// The id of the request.
    pub id: Option<RequestId>,
    /// The result as JSON text.
    pub(crate) result: Option<Box<RawValue>>,
}

/// A request whose params are not decoded yet.
#[derive(Debug)]
pub struct RpcRequest {
    /// The id, which is returned unchanged.
    pub id: RequestId,
    /// The method.
    pub method: String,
    /// The metadata of the request.
    pub meta: RequestMeta,
    params: Option<Box<RawValue>>,
}

impl RpcRequest {
    /// Whether the params may contain a member with that name, without decoding them.
    pub(crate) fn may_contain_member(&self, name: &str) -> bool {
        self.params.as_deref().is_some_and(|params| params.get().contains(name))
    }

    /// Decodes the params as `T`; missing params count as an empty object.
    ///
    /// # Errors
    /// `-32602` with the problem and its position.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        read_params(self.params.as_deref(), &self.method)
    }
}

/// A notification whose params are not decoded yet.
#[derive(Debug)]
pub struct RpcNotification {
    /// The method.
    pub method: String,
    params: Option<Box<RawValue>>,
}

impl RpcNotification {
    /// Decodes the params as `T`; missing params count as an empty object.
    ///
    /// # Errors
    /// The problem and its position. A notification is never answered.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        read_params(self.params.as_deref(), &self.method)
    }
}

fn read_params<T: DeserializeOwned>(params: Option<&RawValue>, method: &str) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RpcError::invalid_params(format!("the params of {method} are wrong: {error}")))
}

/// Why bytes are not a valid message.
#[derive(Debug)]
pub struct DecodeError {
    /// The id, if it could be decoded.
    pub id: Option<RequestId>,
    /// The error to send.
    pub error: Box<RpcError>,
}

/// The members of any message. Distinguishes missing members from `null`, except for the params, which clients also send
/// as `null`.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct RawMessage<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Decodes one message.
///
/// # Errors
/// `-32700` if the bytes are not JSON, `-32600` if the JSON is not a message. The error can be sent as it is.
pub fn decode(bytes: &[u8]) -> Result<IncomingMessage, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|error| utf8_error(&error))?;
    if is_array(text) {
        return decode_rpc_batch(text);
    }
    decode_single(text)
}

fn is_array(text: &str) -> bool {
    text.trim_ascii_start().starts_with('[')
}

fn decode_rpc_batch(text: &str) -> Result<IncomingMessage, DecodeError> {
    let messages: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    if messages.is_empty() {
        return Err(invalid_request(None, "an empty batch"));
    }
    if messages.len() > RPC_BATCH_MESSAGES_MAX {
        return Err(invalid_request(
            None,
            &format!("a batch of {} messages; at most {RPC_BATCH_MESSAGES_MAX}", messages.len()),
        ));
    }
    Ok(IncomingMessage::RpcBatch(messages.into_iter().map(|message| decode_single(message.get())).collect()))
}

fn decode_single(text: &str) -> Result<IncomingMessage, DecodeError> {
    if is_array(text) {
        // serde would also decode a struct from an array, in the order of its members.
        return Err(invalid_request(None, "a batch cannot contain a batch"));
    }
    let envelope: RawMessage<'_> = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    let id = envelope.id.and_then(RequestId::from_raw);
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(invalid_request(id, "the member \"jsonrpc\" must be \"2.0\""));
    }
    if envelope.method.is_none() && envelope.result.or(envelope.error).is_some() {
        // Whatever its id is: two peers that answer each other's errors with errors would never stop.
        return Ok(IncomingMessage::Response(RpcResponse { id, result: envelope.result.map(ToOwned::to_owned) }));
    }
    if envelope.id.is_some() && id.is_none() {
        return Err(invalid_request(None, "the id must be a string or a number"));
    }
    let Some(method) = envelope.method else {
        return Err(invalid_request(id, "the member \"method\" is missing"));
    };
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return Err(invalid_request(id, "the method must be a string"));
    };
    if envelope.params.is_some_and(|params| !params.get().starts_with('{')) {
        return Err(invalid_request(id, "the params must be an object"));
    }
    let params = envelope.params.map(ToOwned::to_owned);
    let Some(id) = id else {
        return Ok(IncomingMessage::Notification(RpcNotification { method, params }));
    };
    let meta = RequestMeta::read(envelope.params)
        .map_err(|error| DecodeError { id: Some(id.clone()), error: Box::new(error) })?;
    Ok(IncomingMessage::Request(RpcRequest { id, method, meta, params }))
}

fn invalid_request(id: Option<RequestId>, message: &str) -> DecodeError {
    DecodeError { id, error: Box::new(RpcError::invalid_request(format!("Invalid request: {message}"))) }
}

fn utf8_error(error: &std::str::Utf8Error) -> DecodeError {
    DecodeError { id: None, error: Box::new(RpcError::new(RpcError::PARSE_ERROR, format!("Parse error: {error}"))) }
}

fn json_error(error: &serde_json::Error) -> DecodeError {
    let error = match error.classify() {
        Category::Data => RpcError::invalid_request(format!("Invalid request: {error}")),
        Category::Syntax | Category::Eof | Category::Io => {
            RpcError::new(RpcError::PARSE_ERROR, format!("Parse error: {error}"))
        }
    };
    DecodeError { id: None, error: Box::new(error) }
}

/// The maximum length of ids in bytes; they are stored as long as their request is open.
const ID_BYTES_MAX: usize = 4_096;

/// A request's id as the received JSON text, so that `7`, `7.0` and a 23-digit integer are returned unchanged.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The id in `raw`, if it is a string or a number of allowed length.
    pub(crate) fn from_raw(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let is_id = match text.bytes().next()? {
            // Half a surrogate pair is not valid text: the client could not decode the id in the response.
            b'"' => serde_json::from_str::<String>(text).is_ok(),
            first => first == b'-' || first.is_ascii_digit(),
        };
        (is_id && text.len() <= ID_BYTES_MAX).then(|| Self(text.into()))
    }

    /// The id as JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    pub(crate) fn to_shared_json(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A complete response message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseMessage {
    /// The message as JSON text on one line.
    pub bytes: Bytes,
    /// The JSON-RPC error code if it is an error.
    pub error_code: Option<i64>,
    /// Why the call was rejected, if transports have a status or header for it. Set for errors, and for results that
    /// report a failure.
    pub rejection: Option<Box<CallRejection>>,
}

impl ResponseMessage {
    pub(crate) fn result(bytes: Bytes) -> Self {
        Self { bytes, error_code: None, rejection: None }
    }

    pub(crate) fn failure(bytes: Bytes, error: &Error) -> Self {
        Self { rejection: CallRejection::from_error(error), ..Self::result(bytes) }
    }

    /// An error response to the request `id`.
    pub fn error(id: Option<&RequestId>, error: &RpcError) -> Self {
        Self { bytes: error.to_bytes(id), error_code: Some(error.code), rejection: error.rejection.clone() }
    }
}

/// An error response.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// A message in one sentence.
    pub message: String,
    /// Additional data for programs.
    pub data: Option<Value>,
    /// Why the call was rejected, if transports have a status or header for it.
    pub rejection: Option<Box<CallRejection>>,
}

/// A reason for a rejection that transports report with a status or a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallRejection {
    /// The caller is anonymous, and the entry requires authentication.
    Unauthenticated {
        /// The OAuth scopes that its token needs; empty if it needs none.
        scopes: Vec<String>,
    },
    /// The caller's token lacks OAuth scopes; these are all that it needs.
    InsufficientScope(Vec<String>),
    /// The caller reached a limit.
    RateLimited {
        /// The time after which it can try again, if known.
        retry_after: Option<Duration>,
    },
}

impl CallRejection {
    /// The rejection of a call that failed with `error`, if it is one of these reasons.
    pub(crate) fn from_error(error: &Error) -> Option<Box<Self>> {
        let call_rejection = match error.kind() {
            ErrorKind::Unauthenticated => Self::Unauthenticated { scopes: error.scopes().to_vec() },
            ErrorKind::RateLimited => Self::RateLimited { retry_after: error.retry_after() },
            _ if !error.scopes().is_empty() => Self::InsufficientScope(error.scopes().to_vec()),
            _ => return None,
        };
        Some(Box::new(call_rejection))
    }
}

impl RpcError {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: i64 = -32_700;
    /// The JSON is not a request.
    pub const INVALID_REQUEST: i64 = -32_600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32_601;
    /// The params are invalid.
    pub const INVALID_PARAMS: i64 = -32_602;
    /// A fault of the server.
    pub const INTERNAL_ERROR: i64 = -32_603;
    /// The HTTP headers contradict the body (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32_020;
    /// The client did not declare a capability that the request needs (2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32_021;
    /// The server does not support the revision (2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32_022;
    /// The resource does not exist; up to 2025-11-25.
    const LEGACY_RESOURCE_NOT_FOUND: i64 = -32_002;
    /// The entry requires authentication, and the caller is anonymous. Handlers in databases return it as well.
    // The code is older than the rule that reserves its range for the specification.
    pub const UNAUTHENTICATED: i64 = -32_001;
    /// Refusals without a code in the specification. The code is outside the reserved range.
    pub const REFUSED: i64 = -31_000;

    /// An error with that code.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, rejection: None }
    }

    /// The params are invalid.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// The JSON is not a request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    /// The method does not exist in this revision.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("there is no method {method:?} in this revision"))
    }

    /// The HTTP headers contradict the body.
    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(Self::HEADER_MISMATCH, message)
    }

    /// The server does not support the revision.
    pub fn unsupported_version(requested: &str) -> Self {
        let supported: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.name()).collect();
        Self {
            code: Self::UNSUPPORTED_PROTOCOL_VERSION,
            message: "Unsupported protocol version".to_owned(),
            data: Some(json!({"supported": supported, "requested": requested})),
            rejection: None,
        }
    }

    /// The code of errors of `kind` in the newest revision. A handler may replace that of [`ErrorKind::Failed`].
    pub fn code_of(kind: ErrorKind) -> i64 {
        match kind {
            ErrorKind::InvalidArguments | ErrorKind::NotFound => Self::INVALID_PARAMS,
            ErrorKind::Internal | ErrorKind::Failed => Self::INTERNAL_ERROR,
            ErrorKind::Unauthenticated => Self::UNAUTHENTICATED,
            ErrorKind::MissingClientCapability => Self::MISSING_CLIENT_CAPABILITY,
            ErrorKind::Forbidden
            | ErrorKind::RateLimited
            | ErrorKind::TimedOut
            | ErrorKind::Cancelled
            | ErrorKind::Conflict
            | ErrorKind::TooLarge
            | ErrorKind::Unavailable
            | ErrorKind::InputRequired => Self::REFUSED,
        }
    }

    /// The error of a failed call. It contains `resource`, the URI of the resource to read.
    pub(crate) fn from_error(error: &Error, resource: Option<&str>, dialect: &Dialect) -> Self {
        if let Some(ProtocolError { code, data }) = error.protocol_error() {
            let rejection = CallRejection::from_error(error);
            return Self { code: *code, message: error.to_string(), data: data.clone(), rejection };
        }
        let code = match error.kind() {
            ErrorKind::NotFound if resource.is_some() && dialect.resource_not_found_is_32002 => {
                Self::LEGACY_RESOURCE_NOT_FOUND
            }
            ErrorKind::Failed => error.code().unwrap_or(Self::INTERNAL_ERROR),
            ErrorKind::MissingClientCapability if !dialect.stateless => Self::REFUSED,
            kind => Self::code_of(kind),
        };
        let mut data = json!({"kind": error.kind().name()});
        if code == Self::MISSING_CLIENT_CAPABILITY {
            data["requiredCapabilities"] = encode_client_capabilities(error.missing_capabilities());
        }
        if let Some(uri) = resource {
            data["uri"] = uri.into();
        }
        if !error.scopes().is_empty() {
            data["scopes"] = json!(error.scopes());
        }
        if let Some(time) = error.retry_after() {
            data["retryAfterMs"] = json!(ceil_milliseconds(time));
        }
        Self { code, message: error.to_string(), data: Some(data), rejection: CallRejection::from_error(error) }
    }

    pub(crate) fn to_raw(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.to_json().to_string()).ok()
    }

    fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }

    /// The complete response to the request `id`; the id is null only if it could not be decoded.
    pub fn to_bytes(&self, id: Option<&RequestId>) -> Bytes {
        let error = self.to_json();
        let id = id.map_or("null", RequestId::as_json);
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into()
    }
}

/// Whole milliseconds, rounded up, so that a client that waits this long does not come too early.
pub(crate) fn ceil_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Result of reading a line.
pub enum ReadLine {
    /// The line is complete.
    Whole,
    /// The line is longer than the limit; its content was discarded.
    TooLong,
    /// The input has ended.
    End,
}

/// Reads up to the next line feed into `line`. `line` may already contain the beginning, since the future may be
/// dropped between two reads. The content of a line of more than `bytes_max` bytes is discarded.
///
/// # Errors
/// When reading fails.
pub async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    bytes_max: usize,
) -> std::io::Result<ReadLine> {
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(match line.len() {
                0 => ReadLine::End,
                bytes if bytes > bytes_max => ReadLine::TooLong,
                _ => ReadLine::Whole,
            });
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let consumed_bytes = end.map_or(available.len(), |end| end + 1);
        // One byte over the limit marks the line as too long until its end is found.
        let room = (bytes_max + 1).saturating_sub(line.len());
        line.extend_from_slice(&available[..end.unwrap_or(consumed_bytes).min(room)]);
        reader.consume(consumed_bytes);
        if end.is_some() {
            return Ok(if line.len() > bytes_max { ReadLine::TooLong } else { ReadLine::Whole });
        }
    }
}

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
