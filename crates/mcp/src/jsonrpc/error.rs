//! JSON-RPC errors and their codes.
//!
//! [MCP 2026-07-28, Error Codes](https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes)

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_core::{Error, ErrorKind};

use super::id::RequestId;
use crate::revision::{Dialect, Revision};
use crate::wire::encode_client_capabilities;

/// An error that answers a whole request.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// One sentence for the reader.
    pub message: String,
    /// More, for programs.
    pub data: Option<Value>,
    /// What hinders the caller, where transports have words of their own for it.
    pub rejection: Option<Box<CallRejection>>,
}

/// What hinders a caller, for transports that have words of their own for it: a status, a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallRejection {
    /// It has not shown who it is, and what it asks for is for those who have.
    Unauthenticated {
        /// The OAuth scopes that its token would need; none where no token needs any.
        scopes: Vec<String>,
    },
    /// Its token lacks OAuth scopes; these are all that it would need.
    InsufficientScope(Vec<String>),
    /// It has asked too much.
    RateLimited {
        /// After what time it may try again, where that is known.
        retry_after: Option<Duration>,
    },
}

impl CallRejection {
    /// What hindered a call that failed with `error`, if it is one of these.
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
    /// The bytes are no JSON.
    pub const PARSE_ERROR: i64 = -32_700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i64 = -32_600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32_601;
    /// The method's parameters are wrong.
    pub const INVALID_PARAMS: i64 = -32_602;
    /// A fault of ours.
    pub const INTERNAL_ERROR: i64 = -32_603;
    /// HTTP headers and body disagree (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32_020;
    /// The client has not declared what the request needs (2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32_021;
    /// A revision that we do not speak (2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32_022;
    /// A resource that does not exist, up to 2025-11-25.
    const LEGACY_RESOURCE_NOT_FOUND: i64 = -32_002;
    /// An entry that asks who calls, of somebody who has not shown it. The code is older than the rule that the
    /// specification alone gives codes of its range, and what handlers inside databases have always answered.
    pub const UNAUTHENTICATED: i64 = -32_001;
    /// Refusals that the specification gives no code; outside the range it reserves.
    pub const REFUSED: i64 = -31_000;

    /// An error of that code.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, rejection: None }
    }

    /// The method's parameters are wrong.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// The JSON is no request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    /// There is no such method in this revision.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("there is no method {method:?} in this revision"))
    }

    /// HTTP headers and body disagree.
    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(Self::HEADER_MISMATCH, message)
    }

    /// A revision that we do not speak.
    pub fn unsupported_version(requested: &str) -> Self {
        let supported: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.name()).collect();
        Self {
            code: Self::UNSUPPORTED_PROTOCOL_VERSION,
            message: "Unsupported protocol version".to_owned(),
            data: Some(json!({"supported": supported, "requested": requested})),
            rejection: None,
        }
    }

    /// The one table from our kinds of error to JSON-RPC codes. `resource` is the URI of the
    /// resource that was to be read, which its error names again.
    pub(crate) fn from_error(error: &Error, resource: Option<&str>, dialect: &Dialect) -> Self {
        let code = match error.kind() {
            ErrorKind::NotFound if resource.is_some() && dialect.resource_not_found_is_32002 => {
                Self::LEGACY_RESOURCE_NOT_FOUND
            }
            ErrorKind::InvalidArguments | ErrorKind::NotFound => Self::INVALID_PARAMS,
            ErrorKind::Internal => Self::INTERNAL_ERROR,
            ErrorKind::Failed => error.code().unwrap_or(Self::INTERNAL_ERROR),
            ErrorKind::Unauthenticated => Self::UNAUTHENTICATED,
            ErrorKind::Forbidden
            | ErrorKind::RateLimited
            | ErrorKind::TimedOut
            | ErrorKind::Cancelled
            | ErrorKind::TooLarge
            | ErrorKind::Unavailable
            | ErrorKind::InputRequired => Self::REFUSED,
            ErrorKind::MissingClientCapability if dialect.stateless => Self::MISSING_CLIENT_CAPABILITY,
            ErrorKind::MissingClientCapability => Self::REFUSED,
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

    /// The error object as JSON text.
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

    /// The whole message that answers the request of `id`; `id` is null only when it could not be read.
    pub fn to_bytes(&self, id: Option<&RequestId>) -> Bytes {
        let error = self.to_json();
        let id = id.map_or("null", RequestId::as_json);
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into()
    }
}

/// Whole milliseconds, rounded up: who waits for so long does not come too early.
pub(crate) fn ceil_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
