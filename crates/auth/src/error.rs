//! Errors of the options of an authenticator.

use crate::key_file::KeyFileError;
use crate::proxy::ProxyOptionsError;
use crate::roles::RoleError;
use crate::token::TokenOptionsError;

/// Why a [`crate::CredentialAuthenticator`] cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticatorError {
    /// A role is invalid or undefined.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The key file cannot be read.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// The token options are invalid.
    #[error(transparent)]
    Tokens(#[from] TokenOptionsError),
    /// A certificate rule has no name, or nothing to match.
    #[error("a certificate rule needs a name, and a subject or an alternative name")]
    EmptyCertificate,
    /// Two certificate rules match the same certificates.
    #[error("two certificate rules have {what}; remove one of them")]
    DuplicateCertificate {
        /// What both match.
        what: String,
    },
    /// The proxy options are invalid.
    #[error(transparent)]
    Proxy(#[from] ProxyOptionsError),
}
