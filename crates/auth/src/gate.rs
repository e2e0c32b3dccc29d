//! The gate: what a caller shows, and who it therefore is.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Authenticator, Credentials, Principal, Proof, Unauthenticated, nearest};

use crate::clock::Clock;
use crate::key_file::{KeyFile, KeyFileError};
use crate::key_text;
use crate::keys::Keys;
use crate::role::Role;
use crate::roles::Roles;
use crate::token::{TokenOptions, TokenOptionsError, Tokens};

/// What a gate is made from. The default lets nobody in but the process's own user.
#[derive(Debug, Default)]
pub struct GateOptions {
    /// Where the API keys are; none if keys are not taken.
    pub keys: Option<KeyFile>,
    /// How tokens are checked; none if tokens are not taken.
    pub tokens: Option<TokenOptions>,
    /// Every role there is.
    pub roles: Vec<Role>,
    /// The roles of a caller who shows nothing; if there are none, it is refused.
    pub anonymous: Vec<String>,
    /// The roles of the process's own user; none for its owner, who may do everything.
    pub local: Option<Vec<String>>,
    /// Whether nobody has to prove anything: who calls over a network is anonymous and reaches all that demands no
    /// access name.
    pub is_open: bool,
    /// Which configuration this is, as the registry's states say it too: who is let in reaches those of the same one.
    pub generation: u64,
    /// What time it is.
    pub clock: Clock,
}

/// Why there is no gate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// A role without a name.
    #[error("a role has no name")]
    NamelessRole,
    /// Two roles of one name.
    #[error("two roles are named {name:?}")]
    DuplicateRole {
        /// The name.
        name: String,
    },
    /// Somebody shall hold a role that there is not.
    #[error("{who} callers shall have the role {name:?}, which is not defined{}", did_you_mean(.nearest))]
    UnknownRole {
        /// Who shall hold it: `anonymous` or `local`.
        who: &'static str,
        /// The name.
        name: String,
        /// Names of roles that it may have been meant to be, the likeliest first.
        nearest: Vec<String>,
    },
    /// The key file cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// Tokens cannot be checked in that way.
    #[error(transparent)]
    Tokens(#[from] TokenOptionsError),
}

fn did_you_mean(nearest: &[String]) -> String {
    nearest.first().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

/// Knows keys, tokens and roles, and from them who calls.
///
/// Keys are read once, when the gate is made: a key that is added or revoked later counts from the next gate on
/// ([`crate::Doorkeeper::swap`]).
pub struct Gate {
    roles: Roles,
    keys: Option<Keys>,
    tokens: Option<Tokens>,
    anonymous: Option<Arc<Principal>>,
    local: Arc<Principal>,
    is_open: bool,
    clock: Clock,
}

impl Gate {
    /// A gate of `options`. Reads the key file.
    ///
    /// # Errors
    /// When the key file cannot be read, tokens cannot be checked as asked, or roles are wrong.
    pub fn new(options: GateOptions) -> Result<Self, GateError> {
        let roles = Roles::new(options.roles, options.generation)?;
        let keys = options.keys.map(|file| Keys::read(&file, &roles)).transpose()?;
        let tokens = options.tokens.map(Tokens::new).transpose()?;
        let anonymous = match options.anonymous {
            _ if options.is_open => Some(Arc::new(roles.stamped((*Principal::anonymous()).clone()))),
            names if names.is_empty() => None,
            names => Some(without_proof("anonymous", Proof::Anonymous, names, &roles)?),
        };
        let local = match options.local {
            Some(names) => without_proof("local", Proof::Process, names, &roles)?,
            None => Arc::new(roles.stamped((*Principal::owner()).clone())),
        };
        Ok(Self { roles, keys, tokens, anonymous, local, is_open: options.is_open, clock: options.clock })
    }

    /// A gate that lets everybody in.
    pub fn open() -> Self {
        let (anonymous, local) = (Some(Principal::anonymous()), Principal::owner());
        let (roles, keys, tokens) = (Roles::none(), None, None);
        Self { roles, keys, tokens, anonymous, local, is_open: true, clock: Clock::default() }
    }

    fn find(&self, bearer: Option<&str>) -> Result<Arc<Principal>, Unauthenticated> {
        // What is shown where nothing is asked for is no reason to refuse anybody.
        let Some(bearer) = bearer.filter(|_| !self.is_open) else {
            return self.anonymous.clone().ok_or(Unauthenticated::Missing);
        };
        let now = self.clock.now();
        let found = if bearer.starts_with(key_text::PREFIX) {
            self.keys.as_ref().and_then(|keys| keys.holder(bearer, now))
        } else {
            self.tokens.as_ref().and_then(|tokens| tokens.holder(bearer, now, &self.roles))
        };
        found.ok_or(Unauthenticated::Invalid)
    }
}

/// A principal that holds roles without showing anything.
fn without_proof(
    subject: &'static str,
    proof: Proof,
    names: Vec<String>,
    roles: &Roles,
) -> Result<Arc<Principal>, GateError> {
    if let Some(name) = names.iter().find(|name| !roles.has(name)) {
        let nearest = nearest(name, roles.names());
        return Err(GateError::UnknownRole { who: subject, name: name.clone(), nearest });
    }
    let names: BTreeSet<String> = names.into_iter().collect();
    Ok(Arc::new(roles.principal(subject, proof, names)))
}

#[async_trait]
impl Authenticator for Gate {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, Unauthenticated> {
        self.find(credentials.bearer)
    }

    fn local(&self) -> Arc<Principal> {
        self.local.clone()
    }

    /// Unless it is open: a gate that lets anonymous callers in was told which roles they have.
    fn is_configured(&self) -> bool {
        !self.is_open
    }
}
