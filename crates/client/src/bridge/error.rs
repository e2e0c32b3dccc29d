//! Errors of calls that the bridge cannot deliver or whose answer it cannot use.

use std::fmt;
use std::time::Duration;

use serde_json::json;
use thiserror::Error;
use tidegate_core::ErrorKind;
use tidegate_mcp::RpcError;

use super::address::ServerAddress;
use super::bearer::BearerToken;

/// Why the delivery of a call failed. A call that may have run must not be repeated blindly.
#[derive(Debug, Clone, Error)]
pub(super) enum BridgeError {
    #[error("the server could not be reached within {waited:?}: {reason}; the call was not sent")]
    Unreachable { waited: Duration, reason: String },
    #[error("the connection was lost while the call was under way ({reason}); it may have run")]
    ConnectionLost { reason: String },
    #[error("the server rejected the bearer token (401); check --bearer or TIDEGATE_BEARER{words}")]
    WrongToken { words: ServerMessage },
    #[error(
        "the server requires authentication (401); pass a token to the bridge with --bearer TOKEN, \
         or set TIDEGATE_BEARER in its environment{words}"
    )]
    NoToken { words: ServerMessage },
    #[error("the server denied access (403); pass a token that has access with --bearer TOKEN{words}")]
    Forbidden { words: ServerMessage },
    #[error("there is no MCP endpoint at that URL ({status}); the usual path of Tidegate is {usual_path}{words}")]
    NoEndpoint { status: u16, usual_path: &'static str, words: ServerMessage },
    #[error("the server redirects ({status}), which the bridge does not follow; pass the target URL to --connect")]
    Redirects { status: u16 },
    #[error("the server rejected the call ({status}){words}")]
    Refused { status: u16, words: ServerMessage },
    #[error("the server failed ({status}); the call may have run{words}")]
    Failed { status: u16, words: ServerMessage },
    #[error("the answer of the server is invalid: {what}; the call may have run")]
    InvalidAnswer { what: String },
    #[error("{what}; the call may have run")]
    TooLarge { what: String },
    #[error(
        "the server restarted with MCP {now}, but this client negotiated {before}; \
         restart the client or its connection; the call was not sent"
    )]
    VersionChanged { before: String, now: String },
    #[error("the server restarted and rejected the client's handshake: {reason}; the call was not sent")]
    HandshakeRefused { reason: String },
}

/// The error message of the server itself, with a maximum length; appended to messages of the bridge.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerMessage(String);

/// Maximum number of characters of the server's message.
const SERVER_MESSAGE_CHARS_MAX: usize = 500;

impl ServerMessage {
    /// `text` without control characters, and without the token in case the server repeats it.
    pub(super) fn new(text: &str, bearer: Option<&BearerToken>) -> Self {
        let text = bearer.map_or_else(|| text.to_owned(), |bearer| bearer.redact(text));
        let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        Self(printable.take(SERVER_MESSAGE_CHARS_MAX).collect::<String>().trim().to_owned())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; the server says: {}", self.0) }
    }
}

impl BridgeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::WrongToken { .. } | Self::NoToken { .. } => ErrorKind::Unauthenticated,
            Self::Forbidden { .. } => ErrorKind::Forbidden,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Unreachable { .. }
            | Self::ConnectionLost { .. }
            | Self::NoEndpoint { .. }
            | Self::Redirects { .. }
            | Self::Refused { .. }
            | Self::Failed { .. }
            | Self::InvalidAnswer { .. }
            | Self::VersionChanged { .. }
            | Self::HandshakeRefused { .. } => ErrorKind::Unavailable,
        }
    }

    fn may_have_run(&self) -> bool {
        matches!(
            self,
            Self::ConnectionLost { .. } | Self::Failed { .. } | Self::InvalidAnswer { .. } | Self::TooLarge { .. }
        )
    }

    /// The error for the client; it names the server.
    pub(super) fn to_rpc_error(&self, address: &ServerAddress) -> RpcError {
        let mut error = RpcError::new(RpcError::REFUSED, format!("{address}: {self}"));
        error.data = Some(json!({"kind": self.kind().name(), "mayHaveRun": self.may_have_run()}));
        error
    }
}
