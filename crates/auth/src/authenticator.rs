//! The gate: what a caller shows, and who it therefore is.
//!
//! A key or token comes first, then a certificate, then the word of a proxy. Whoever shows one of them that is wrong
//! is refused, whatever else it shows.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials, Principal};

use crate::api_keys::ApiKeys;
use crate::certificate::{CertificateRule, CertificateRules};
use crate::clock::Clock;
use crate::key_file::{KeyFile, KeyFileError};
use crate::key_format;
use crate::proxy::{ProxyOptions, ProxyOptionsError, TrustedProxies};
use crate::role::Role;
use crate::roles::Roles;
use crate::token::{TokenAuthenticator, TokenOptions, TokenOptionsError};

/// The number of the next gate.
static NEXT_VERSION: AtomicU64 = AtomicU64::new(1);

/// What a gate is made from. The default lets nobody in but the process's own user.
#[derive(Debug, Default)]
pub struct AuthenticatorOptions {
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
pub enum AuthenticatorError {
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
    #[error("{who} callers have the undefined role {name:?}{}", did_you_mean(.nearest))]
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
    #[error("a certificate rule needs a name, and a subject or an alternative name")]
    EmptyCertificate,
    /// Two certificates of the same.
    #[error("two certificate rules have {what}; remove one of them")]
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
/// ([`crate::ReloadableAuthenticator::swap`]).
pub struct CredentialAuthenticator {
    roles: Roles,
    keys: Option<ApiKeys>,
    tokens: Option<TokenAuthenticator>,
    certificates: CertificateRules,
    proxy: Option<TrustedProxies>,
    anonymous: Option<Arc<Principal>>,
    local: Arc<Principal>,
    is_open: bool,
    clock: Clock,
}

impl CredentialAuthenticator {
    /// A gate of `options`. Reads the key file. What is fetched from an identity provider is fetched from the first
    /// time on that it is asked or comes to a [`crate::ReloadableAuthenticator`], in the background, until it is dropped.
    ///
    /// # Errors
    /// When the key file cannot be read, tokens cannot be checked as asked, or roles are wrong.
    pub fn new(options: AuthenticatorOptions) -> Result<Self, AuthenticatorError> {
        let roles = Roles::new(options.roles, options.generation, NEXT_VERSION.fetch_add(1, Ordering::Relaxed))?;
        let keys = options.keys.map(|file| ApiKeys::read(&file, &roles)).transpose()?;
        let tokens = options.tokens.map(|tokens| TokenAuthenticator::new(tokens, options.clock.clone())).transpose()?;
        let certificates = CertificateRules::new(options.certificates, &roles)?;
        let proxy = options.proxy.map(TrustedProxies::new).transpose()?;
        let anonymous = match options.anonymous {
            _ if options.is_open => Some(Arc::new(roles.stamp((*Principal::anonymous()).clone()))),
            names if names.is_empty() => None,
            names => Some(Arc::new(roles.try_build_principal("anonymous", AuthMethod::Anonymous, names)?)),
        };
        let local = match options.local {
            Some(names) => Arc::new(roles.try_build_principal("local", AuthMethod::Process, names)?),
            None => Arc::new(roles.stamp((*Principal::process_user()).clone())),
        };
        let (is_open, clock) = (options.is_open, options.clock);
        Ok(Self { roles, keys, tokens, certificates, proxy, anonymous, local, is_open, clock })
    }

    /// A gate that lets everybody in.
    pub fn allow_all() -> Self {
        let (anonymous, local) = (Some(Principal::anonymous()), Principal::process_user());
        let (roles, keys, tokens, proxy) = (Roles::empty(), None, None, None);
        let (certificates, clock) = (CertificateRules::default(), Clock::default());
        Self { roles, keys, tokens, certificates, proxy, anonymous, local, is_open: true, clock }
    }

    /// Begins what goes on in the background.
    pub(crate) fn start_background_tasks(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.start();
        }
    }

    /// Goes on with what `before` fetched of the same places.
    pub(crate) fn reuse_fetched_keys(&mut self, before: &Self) {
        if let (Some(tokens), Some(had)) = (&mut self.tokens, &before.tokens) {
            tokens.reuse_fetched_keys(had);
        }
    }

    async fn authenticate_credentials(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Arc<Principal>, AuthenticationError> {
        // What is shown where nothing is asked for is no reason to refuse anybody.
        if self.is_open {
            return self.anonymous.clone().ok_or(AuthenticationError::Missing);
        }
        match credentials.bearer {
            Some(bearer) => {
                self.authenticate_bearer(bearer, credentials.peer).await.ok_or(AuthenticationError::Invalid)
            }
            None => self.authenticate_without_bearer(credentials),
        }
    }

    /// Who shows the key or token `authenticate_bearer` from `peer`.
    async fn authenticate_bearer(&self, bearer: &str, peer: Option<IpAddr>) -> Option<Arc<Principal>> {
        let now = self.clock.now();
        if bearer.starts_with(key_format::PREFIX) {
            return self.keys.as_ref()?.principal_for(bearer, now);
        }
        self.tokens.as_ref()?.principal_for(bearer, peer, now, &self.roles).await
    }

    fn authenticate_without_bearer(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let certificate = credentials.certificate.filter(|_| !self.certificates.is_empty());
        if let Some(principal) =
            certificate.and_then(|client_certificate| self.certificates.principal_for(client_certificate))
        {
            let is_good = certificate
                .is_some_and(|client_certificate| self.clock.now() < DateTime::<Utc>::from(client_certificate.expires));
            return if is_good { Ok(principal) } else { Err(AuthenticationError::Invalid) };
        }
        // A certificate that is nobody's may be the proxy's own.
        let named = self.proxy.as_ref().map_or(Ok(None), |proxy| proxy.principal_for(credentials, &self.roles));
        match named? {
            Some(principal) => Ok(principal),
            None if certificate.is_some() => Err(AuthenticationError::Invalid),
            None => self.anonymous.clone().ok_or(AuthenticationError::Missing),
        }
    }
}

#[async_trait]
impl Authenticator for CredentialAuthenticator {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        self.authenticate_credentials(credentials).await
    }

    fn local_principal(&self) -> Arc<Principal> {
        self.local.clone()
    }

    fn identity_headers(&self) -> Option<Arc<[String]>> {
        self.proxy.as_ref().map(TrustedProxies::headers)
    }

    fn is_still_valid(&self, principal: &Principal) -> bool {
        self.roles.has_issued(principal)
    }

    /// Unless it is open: a gate that lets anonymous callers in was told which roles they have.
    fn enforces_authentication(&self) -> bool {
        !self.is_open
    }
}
