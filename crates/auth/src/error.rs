//! Errors of the options of an authenticator.

use crate::key_file::KeyFileError;
use crate::proxy::ProxyOptionsError;
use crate::token::TokenOptionsError;

/// Why a [`crate::CredentialAuthenticator`] cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticatorError {
    /// A role has no name.
    #[error("a role has no name")]
    NamelessRole,
    /// Two roles have the same name.
    #[error("two roles are named {name:?}")]
    DuplicateRole {
        /// The name.
        name: String,
    },
    /// Callers are configured with an undefined role.
    #[error("{who} callers have the undefined role {name:?}{}", did_you_mean(.nearest))]
    UnknownRole {
        /// Which callers: `anonymous`, `local`, or the name of a certificate rule.
        who: String,
        /// The name of the role.
        name: String,
        /// Similar names of defined roles, the best match first.
        nearest: Vec<String>,
    },
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

fn did_you_mean(nearest: &[String]) -> String {
    nearest.first().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}
