//! What went wrong between us and the identity provider, for the log.

use super::ProviderUrlError;
use crate::token::TokenOptionsError;

/// What went wrong between us and the identity provider, for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProviderError {
    /// The client cannot be made.
    #[error("TLS cannot be set up on this machine; are the system's root certificates installed (ca-certificates)?")]
    NoTls,
    /// No answer in time.
    #[error("it did not answer within {} seconds", super::REQUEST_TIMEOUT.as_secs())]
    TimedOut,
    /// No answer at all.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// An answer that is none.
    #[error("it answered with the status {0}")]
    Status(u16),
    /// More than anybody needs.
    #[error("its answer is larger than {0} bytes")]
    TooLarge(usize),
    /// Something else than was asked for.
    #[error("its answer is not a JSON object")]
    NotJson,
    /// An answer about a token that does not say the one thing that was asked.
    #[error("its answer does not say whether the token is active")]
    NotIntrospection,
    /// An answer that is the same for whatever is asked.
    #[error("it reports a text that is not a token as active: any bearer would be admitted")]
    EverythingActive,
    /// The metadata are another's.
    #[error("its metadata name another issuer: {0:?}")]
    WrongIssuer(String),
    /// The metadata name no key set.
    #[error("its metadata have no jwks_uri")]
    NoKeySet,
    /// The key set lies where nobody's word can be trusted.
    #[error("the jwks_uri of its metadata {0}")]
    KeySetAddress(ProviderUrlError),
    /// The key set cannot be used.
    #[error("{0}")]
    KeySet(TokenOptionsError),
}

impl From<reqwest::Error> for ProviderError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::TimedOut;
        }
        // The outermost text repeats the address; the innermost says what happened.
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Self::Unreachable(cause.to_string())
    }
}
