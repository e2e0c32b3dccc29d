//! What a rejected caller lacks, as the reason of an authentication challenge.

use tidegate_core::AuthenticationError;

/// What a caller lacks that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Credentials.
    Missing {
        /// The OAuth scopes that the call requires, if they are known.
        scopes: Vec<String>,
    },
    /// Valid credentials.
    Invalid,
    /// Credentials in a valid form.
    Malformed,
    /// OAuth scopes, all of which are required.
    Scopes(Vec<String>),
}

impl From<AuthenticationError> for Challenge {
    fn from(reason: AuthenticationError) -> Self {
        match reason {
            AuthenticationError::Missing => Self::Missing { scopes: Vec::new() },
            AuthenticationError::Invalid => Self::Invalid,
            AuthenticationError::Malformed => Self::Malformed,
        }
    }
}
