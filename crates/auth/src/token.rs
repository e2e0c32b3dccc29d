//! Signed tokens (JWT): how they are checked, and who shows them.

mod algorithm;
mod error;
mod key_ring;
mod memory;
mod options;
mod verifier;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_core::{Principal, Proof};

use crate::digest::sha256;
use crate::roles::Roles;
use memory::Memory;
use verifier::Verifier;

pub use algorithm::{TokenAlgorithm, UnknownAlgorithm};
pub use error::TokenOptionsError;
pub use options::{TokenKey, TokenOptions};

/// Longer tokens are refused before anything is made of them.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Seconds since 1970, as tokens tell time: a whole number or a fraction.
type Seconds = f64;

/// Checks tokens and remembers the good ones.
pub(crate) struct Tokens {
    verifier: Verifier,
    memory: Memory,
}

impl Tokens {
    /// # Errors
    /// When tokens cannot be checked in that way.
    pub(crate) fn new(options: TokenOptions) -> Result<Self, TokenOptionsError> {
        Ok(Self { verifier: Verifier::new(options)?, memory: Memory::default() })
    }

    /// Who shows `token`; none if it is not valid at `now`.
    pub(crate) fn holder(&self, token: &str, now: DateTime<Utc>, roles: &Roles) -> Option<Arc<Principal>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let now = seconds_of(now);
        let digest = sha256(token);
        if let Some(principal) = self.memory.recall(&digest, now) {
            return Some(principal);
        }
        let verified = self.verifier.verify(token, now)?;
        let names = roles.given_by(&verified.claims);
        let principal = Arc::new(Principal {
            tenant: verified.tenant,
            claims: verified.claims,
            ..roles.principal(verified.subject, Proof::Token, names)
        });
        self.memory.keep(digest, principal.clone(), now, verified.good_until);
        Some(principal)
    }
}

fn seconds_of(time: DateTime<Utc>) -> Seconds {
    time.timestamp_millis() as Seconds / 1000.0
}
