//! Decodes one message. Any bytes give either a message or an error that can be sent as it is.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::response::{RequestId, RpcError};
use crate::request_meta::RequestMeta;

/// The maximum number of messages in one batch.
pub const BATCH_MESSAGES_MAX: usize = 100;

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
    Batch(Vec<Result<IncomingMessage, DecodeError>>),
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
        return decode_batch(text);
    }
    decode_single(text)
}

fn is_array(text: &str) -> bool {
    text.trim_ascii_start().starts_with('[')
}

fn decode_batch(text: &str) -> Result<IncomingMessage, DecodeError> {
    let messages: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    if messages.is_empty() {
        return Err(invalid_request(None, "an empty batch"));
    }
    if messages.len() > BATCH_MESSAGES_MAX {
        return Err(invalid_request(
            None,
            &format!("a batch of {} messages; at most {BATCH_MESSAGES_MAX}", messages.len()),
        ));
    }
    Ok(IncomingMessage::Batch(messages.into_iter().map(|message| decode_single(message.get())).collect()))
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
