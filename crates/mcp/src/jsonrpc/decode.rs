//! Reading one message: whatever the bytes are, what comes out is a message or a well-formed refusal.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::error::RpcError;
use super::id::RequestId;
use crate::request_meta::RequestMeta;

/// More messages in one batch are refused.
pub const BATCH_MESSAGES_MAX: usize = 100;

/// What one message of a client is.
#[derive(Debug)]
pub enum IncomingMessage {
    /// Wants an answer.
    Request(RpcRequest),
    /// Wants none.
    Notification(RpcNotification),
    /// Answers a request of ours, which only legacy clients get.
    Response(RpcResponse),
    /// Several messages at once (2025-03-26 only). Those that could not be read stand as refusals.
    Batch(Vec<Result<IncomingMessage, DecodeError>>),
}

/// What a client answers to a request of ours; an error leaves the result out.
#[derive(Debug, Default)]
pub struct RpcResponse {
    /// Which request.
    pub id: Option<RequestId>,
    /// The result as text.
    pub(crate) result: Option<Box<RawValue>>,
}

/// A request, its parameters still as text.
#[derive(Debug)]
pub struct RpcRequest {
    /// To be returned exactly.
    pub id: RequestId,
    /// What is asked.
    pub method: String,
    /// What the request says about itself.
    pub meta: RequestMeta,
    params: Option<Box<RawValue>>,
}

impl RpcRequest {
    /// Whether its params may have a member of that name, without reading them.
    pub(crate) fn may_contain_member(&self, name: &str) -> bool {
        self.params.as_deref().is_some_and(|params| params.get().contains(name))
    }

    /// The parameters as `T`; absent ones count as an empty object.
    ///
    /// # Errors
    /// `-32602` with what was wrong and where.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        read_params(self.params.as_deref(), &self.method)
    }
}

/// A notification, its parameters still as text.
#[derive(Debug)]
pub struct RpcNotification {
    /// What is told.
    pub method: String,
    params: Option<Box<RawValue>>,
}

impl RpcNotification {
    /// The parameters as `T`; absent ones count as an empty object.
    ///
    /// # Errors
    /// What was wrong and where; a notification is never answered.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        read_params(self.params.as_deref(), &self.method)
    }
}

fn read_params<T: DeserializeOwned>(params: Option<&RawValue>, method: &str) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RpcError::invalid_params(format!("the params of {method} are wrong: {error}")))
}

/// Why bytes are no message.
#[derive(Debug)]
pub struct DecodeError {
    /// The id, if it could be read.
    pub id: Option<RequestId>,
    /// What was wrong.
    pub error: Box<RpcError>,
}

/// The members of any message. A member that is absent and one that is null are different things.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct RawMessage<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one message. Never fails otherwise than with a refusal that can be sent as it is.
///
/// # Errors
/// `-32700` when the bytes are no JSON, `-32600` when the JSON is no message.
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
        // serde would take the members of a struct from an array in their order.
        return Err(invalid_request(None, "a batch cannot contain a batch"));
    }
    let envelope: RawMessage<'_> = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    let id = envelope.id.and_then(RequestId::from_raw);
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(invalid_request(id, "the member \"jsonrpc\" must be \"2.0\""));
    }
    if envelope.method.is_none() && envelope.result.or(envelope.error).is_some() {
        // Whatever its id: two peers that refuse each other's errors would never end.
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
