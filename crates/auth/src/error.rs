//! Errors of the options of an authenticator.

use crate::key_file::KeyFileError;
use crate::token::TokenOptionsError;

/// Why a [`crate::CredentialAuthenticator`] cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticatorError {
    /// The key file cannot be read.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// The token options are invalid.
    #[error(transparent)]
    Tokens(#[from] TokenOptionsError),
    /// Roles, certificate rules or proxy options are invalid.
    #[error("{0}")]
    Invalid(String),
}

impl From<String> for AuthenticatorError {
    fn from(problem: String) -> Self {
        Self::Invalid(problem)
    }
}
