//! The gate: what a caller shows, and who it therefore is.
//!
//! A key or token comes first, then a certificate, then the word of a proxy. Whoever shows one of them that is wrong
//! is refused, whatever else it shows.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tidegate_core::{Authenticator, Credentials, Principal, Proof, Unauthenticated};

use crate::certificate::{CertificateRule, Certificates};
use crate::clock::Clock;
use crate::key_file::{KeyFile, KeyFileError};
use crate::key_text;
use crate::keys::Keys;
use crate::proxy::{Proxy, ProxyOptions, ProxyOptionsError};
use crate::role::Role;
use crate::roles::Roles;
use crate::token::{TokenOptions, TokenOptionsError, Tokens};

/// The number of the next gate.
static GATES: AtomicU64 = AtomicU64::new(1);

/// What a gate is made from. The default lets nobody in but the process's own user.
#[derive(Debug, Default)]
pub struct GateOptions {
    /// Where the API keys are; none if keys are not taken.
    pub keys: Option<KeyFile>,
    /// How tokens are checked; none if tokens are not taken.
    pub tokens: Option<TokenOptions>,
    /// Whose certificates are taken, and who they are. Of two that fit, the first counts.
    pub certificates: Vec<CertificateRule>,
    /// The proxies whose word is taken; none if nobody's is.
    pub proxy: Option<ProxyOptions>,
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
        /// Who shall hold it: `anonymous`, `local`, or the name of a certificate.
        who: String,
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
    /// A certificate that nobody could show, or that nobody would be.
    #[error("a certificate needs a name and what stands in it: a subject or an alternative name")]
    EmptyCertificate,
    /// Two certificates of the same.
    #[error("two certificates have {what}; only the first would count")]
    DuplicateCertificate {
        /// What both have.
        what: String,
    },
    /// Nobody's word can be taken in that way.
    #[error(transparent)]
    Proxy(#[from] ProxyOptionsError),
}

fn did_you_mean(nearest: &[String]) -> String {
    nearest.first().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

/// Knows keys, tokens, certificates, proxies and roles, and from them who calls.
///
/// Keys are read once, when the gate is made: a key that is added or revoked later counts from the next gate on
/// ([`crate::Doorkeeper::swap`]).
pub struct Gate {
    roles: Roles,
    keys: Option<Keys>,
    tokens: Option<Tokens>,
    certificates: Certificates,
    proxy: Option<Proxy>,
    anonymous: Option<Arc<Principal>>,
    local: Arc<Principal>,
    is_open: bool,
    clock: Clock,
}

impl Gate {
    /// A gate of `options`. Reads the key file. What is fetched from an identity provider is fetched from the first
    /// time on that it is asked or comes to a [`crate::Doorkeeper`], in the background, until it is dropped.
    ///
    /// # Errors
    /// When the key file cannot be read, tokens cannot be checked as asked, or roles are wrong.
    pub fn new(options: GateOptions) -> Result<Self, GateError> {
        let roles = Roles::new(options.roles, options.generation, GATES.fetch_add(1, Ordering::Relaxed))?;
        let keys = options.keys.map(|file| Keys::read(&file, &roles)).transpose()?;
        let tokens = options.tokens.map(|tokens| Tokens::new(tokens, options.clock.clone())).transpose()?;
        let certificates = Certificates::new(options.certificates, &roles)?;
        let proxy = options.proxy.map(Proxy::new).transpose()?;
        let anonymous = match options.anonymous {
            _ if options.is_open => Some(Arc::new(roles.stamped((*Principal::anonymous()).clone()))),
            names if names.is_empty() => None,
            names => Some(Arc::new(roles.holder("anonymous", Proof::Anonymous, names)?)),
        };
        let local = match options.local {
            Some(names) => Arc::new(roles.holder("local", Proof::Process, names)?),
            None => Arc::new(roles.stamped((*Principal::owner()).clone())),
        };
        let (is_open, clock) = (options.is_open, options.clock);
        Ok(Self { roles, keys, tokens, certificates, proxy, anonymous, local, is_open, clock })
    }

    /// A gate that lets everybody in.
    pub fn open() -> Self {
        let (anonymous, local) = (Some(Principal::anonymous()), Principal::owner());
        let (roles, keys, tokens, proxy) = (Roles::none(), None, None, None);
        let (certificates, clock) = (Certificates::default(), Clock::default());
        Self { roles, keys, tokens, certificates, proxy, anonymous, local, is_open: true, clock }
    }

    /// Begins what goes on in the background.
    pub(crate) fn start(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.start();
        }
    }

    /// Goes on with what `before` fetched of the same places.
    pub(crate) fn follow(&mut self, before: &Self) {
        if let (Some(tokens), Some(had)) = (&mut self.tokens, &before.tokens) {
            tokens.follow(had);
        }
    }

    async fn find(&self, shown: Credentials<'_>) -> Result<Arc<Principal>, Unauthenticated> {
        // What is shown where nothing is asked for is no reason to refuse anybody.
        if self.is_open {
            return self.anonymous.clone().ok_or(Unauthenticated::Missing);
        }
        match shown.bearer {
            Some(bearer) => self.bearer(bearer, shown.peer).await.ok_or(Unauthenticated::Invalid),
            None => self.without_bearer(shown),
        }
    }

    /// Who shows the key or token `bearer` from `peer`.
    async fn bearer(&self, bearer: &str, peer: Option<IpAddr>) -> Option<Arc<Principal>> {
        let now = self.clock.now();
        if bearer.starts_with(key_text::PREFIX) {
            return self.keys.as_ref()?.holder(bearer, now);
        }
        self.tokens.as_ref()?.holder(bearer, peer, now, &self.roles).await
    }

    fn without_bearer(&self, shown: Credentials<'_>) -> Result<Arc<Principal>, Unauthenticated> {
        let certificate = shown.certificate.filter(|_| !self.certificates.is_empty());
        if let Some(principal) = certificate.and_then(|shown| self.certificates.holder(shown)) {
            let is_good = certificate.is_some_and(|shown| self.clock.now() < DateTime::<Utc>::from(shown.expires));
            return if is_good { Ok(principal) } else { Err(Unauthenticated::Invalid) };
        }
        // A certificate that is nobody's may be the proxy's own.
        let named = self.proxy.as_ref().map_or(Ok(None), |proxy| proxy.caller(shown, &self.roles));
        match named? {
            Some(principal) => Ok(principal),
            None if certificate.is_some() => Err(Unauthenticated::Invalid),
            None => self.anonymous.clone().ok_or(Unauthenticated::Missing),
        }
    }
}

#[async_trait]
impl Authenticator for Gate {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, Unauthenticated> {
        self.find(credentials).await
    }

    fn local(&self) -> Arc<Principal> {
        self.local.clone()
    }

    fn asserting_headers(&self) -> Option<Arc<[String]>> {
        self.proxy.as_ref().map(Proxy::headers)
    }

    fn stands_by(&self, principal: &Principal) -> bool {
        self.roles.are_of(principal)
    }

    /// Unless it is open: a gate that lets anonymous callers in was told which roles they have.
    fn is_configured(&self) -> bool {
        !self.is_open
    }
}
