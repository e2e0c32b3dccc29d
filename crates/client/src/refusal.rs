//! Refusals of a server that concern the caller or the address, not the single request.

use thiserror::Error;

use crate::server_message::ServerMessage;

/// Why a server refuses every request of this caller, or at this address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum ServerRefusal {
    #[error(
        "the server requires authentication (401); pass --bearer TOKEN, \
         or set TIDEGATE_BEARER in the environment{words}"
    )]
    TokenRequired { words: ServerMessage },
    #[error("the server rejected the bearer token (401); check --bearer or TIDEGATE_BEARER{words}")]
    TokenRejected { words: ServerMessage },
    #[error("the server denied access (403); pass a token that has access with --bearer TOKEN{words}")]
    AccessDenied { words: ServerMessage },
    #[error("the server redirects ({status}), and redirects are not followed; use the target of the redirect")]
    Redirected { status: u16 },
}

impl ServerRefusal {
    /// The refusal for a status of HTTP. For any other status, the message of the server is returned as the error.
    pub(crate) fn from_status(status: u16, has_token: bool, words: ServerMessage) -> Result<Self, ServerMessage> {
        match status {
            401 if has_token => Ok(Self::TokenRejected { words }),
            401 => Ok(Self::TokenRequired { words }),
            403 => Ok(Self::AccessDenied { words }),
            300..=399 => Ok(Self::Redirected { status }),
            _ => Err(words),
        }
    }
}
