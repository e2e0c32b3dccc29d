//! Failures of requests to the identity provider, for the log.

use super::ProviderUrlError;

/// Why a request to the identity provider failed, for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProviderError {
    /// The HTTP client cannot be created.
    #[error("TLS cannot be set up on this machine; are the system's root certificates installed (ca-certificates)?")]
    NoTls,
    /// The request timed out.
    #[error("it did not answer within {} seconds", super::REQUEST_TIMEOUT.as_secs())]
    TimedOut,
    /// The connection failed.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The status is not 200.
    #[error("it answered with the status {0}")]
    Status(u16),
    /// The body exceeds the size limit.
    #[error("its answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The body is not a JSON object.
    #[error("its answer is not a JSON object")]
    NotJson,
    /// The introspection answer has no `active` member.
    #[error("its answer does not say whether the token is active")]
    NotIntrospection,
    /// The introspection endpoint reports every text as an active token.
    #[error("it reports a text that is not a token as active: any bearer would be admitted")]
    EverythingActive,
    /// The metadata belong to another issuer.
    #[error("its metadata name another issuer: {0:?}")]
    WrongIssuer(String),
    /// The metadata name no key set.
    #[error("its metadata have no jwks_uri")]
    NoKeySet,
    /// The URL of the key set is not allowed.
    #[error("the jwks_uri of its metadata {0}")]
    KeySetAddress(ProviderUrlError),
    /// The key set is invalid.
    #[error("{0}")]
    KeySet(String),
}

impl ProviderError {
    /// The failure for a key set with this error.
    pub(crate) fn invalid_key_set(error: impl std::fmt::Display) -> Self {
        Self::KeySet(error.to_string())
    }
}

impl From<reqwest::Error> for ProviderError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::TimedOut;
        }
        // The outermost error repeats the URL; the innermost one names the cause.
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Self::Unreachable(cause.to_string())
    }
}
