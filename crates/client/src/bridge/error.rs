//! Errors of calls that the bridge cannot deliver or whose answer it cannot use.

use std::time::Duration;

use serde_json::json;
use thiserror::Error;
use tidegate_core::ErrorKind;
use tidegate_mcp::RpcError;

use super::address::ServerAddress;
use super::incoming::ReceiveError;
use crate::refusal::{ServerMessage, ServerRefusal};

/// Why the delivery of a call failed. A call that may have run must not be repeated blindly.
#[derive(Debug, Clone, Error)]
pub(super) enum BridgeError {
    #[error("the server could not be reached within {waited:?}: {reason}; the call was not sent")]
    Unreachable { waited: Duration, reason: String },
    #[error("{reason}; the call was not sent")]
    Tls { reason: String },
    #[error("{reason}; the call did not run")]
    NoHttp { reason: String },
    #[error("the connection was lost while the call was under way ({reason}); it may have run")]
    ConnectionLost { reason: String },
    #[error(transparent)]
    Rejected(#[from] ServerRefusal),
    #[error("there is no MCP endpoint at that URL ({status}); the usual path of Tidegate is {usual_path}{message}")]
    NoEndpoint { status: u16, usual_path: &'static str, message: ServerMessage },
    #[error("the server rejected the call ({status}){message}")]
    Refused { status: u16, message: ServerMessage },
    #[error("the server failed ({status}); the call may have run{message}")]
    Failed { status: u16, message: ServerMessage },
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

impl From<ReceiveError> for BridgeError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::TooLarge(_) => Self::TooLarge { what: error.to_string() },
            ReceiveError::ConnectionLost(reason) => Self::ConnectionLost { reason },
            ReceiveError::Malformed(_) | ReceiveError::NotUtf8 | ReceiveError::MalformedEvents(_) => {
                Self::InvalidAnswer { what: error.to_string() }
            }
        }
    }
}

impl BridgeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Rejected(ServerRefusal::TokenRequired { .. } | ServerRefusal::TokenRejected { .. }) => {
                ErrorKind::Unauthenticated
            }
            Self::Rejected(ServerRefusal::AccessDenied { .. }) => ErrorKind::Forbidden,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            _ => ErrorKind::Unavailable,
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
