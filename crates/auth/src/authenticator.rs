//! Authentication: from the credentials of a request to a principal.
//!
//! Precedence: API key or token, then client certificate, then proxy headers, then the development identity. An invalid
//! credential is rejected even if another credential of the request is valid.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials, Grants, Principal};
use tokio::sync::watch;

use crate::certificate::{CertificateRule, CertificateRules, ProxyOptions, TrustedProxies};
use crate::key_file::{ApiKeys, KeyFile, KeyFileError};
use crate::roles::{Role, Roles};
use crate::secret::{self, Clock};
use crate::token::{TokenAuthenticator, TokenOptions, TokenOptionsError};

static NEXT_VERSION: AtomicU64 = AtomicU64::new(1);

/// Options of a [`CredentialAuthenticator`]. By default only the process's own user is admitted.
#[derive(Debug, Default)]
pub struct AuthenticatorOptions {
    /// The API key file; `None` rejects API keys.
    pub keys: Option<KeyFile>,
    /// How tokens are checked; `None` rejects tokens.
    pub tokens: Option<TokenOptions>,
    /// Accepted client certificates and their principals. If several rules match, the first one applies.
    pub certificates: Vec<CertificateRule>,
    /// Trusted proxies and their identity headers; `None` ignores such headers.
    pub proxy: Option<ProxyOptions>,
    /// All defined roles.
    pub roles: Vec<Role>,
    /// Who calls from this machine without credentials. Never for a server that other machines reach.
    pub development: Option<DevelopmentIdentity>,
    /// The roles of callers without credentials. If empty, such callers are rejected.
    pub anonymous: Vec<String>,
    /// The roles of the process's own user; `None` grants everything.
    pub local: Option<Vec<String>>,
    /// Whether authentication is off: network callers are anonymous, and reach everything that requires no access name.
    pub is_open: bool,
    /// The generation of this configuration, as in the registry. A principal reaches only entries of its own
    /// generation.
    pub generation: u64,
    /// The source of the current time.
    pub clock: Clock,
}

/// An identity that nothing proves, so that entries for authenticated callers can be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevelopmentIdentity {
    /// The subject.
    pub user: String,
    /// The tenant.
    pub tenant: Option<String>,
    /// The roles. If empty, it has the rights of callers without authentication: everything without an access name.
    pub roles: Vec<String>,
}

impl DevelopmentIdentity {
    fn into_principal(self, roles: &Roles) -> Result<Principal, String> {
        let Self { user, tenant, roles: names } = self;
        let principal = match names.is_empty() {
            true => {
                let grants = Arc::new(Grants::for_anonymous());
                roles.with_generation(Principal::new(user, AuthMethod::Development, grants))
            }
            false => roles.try_build_principal(&user, AuthMethod::Development, names)?,
        };
        Ok(Principal { tenant, ..principal })
    }
}

/// Why a [`CredentialAuthenticator`] cannot be created.
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

/// Authenticates by API key, token, client certificate or proxy headers, and maps the result to roles.
///
/// The key file is read once, at construction. Added or revoked keys take effect with the next authenticator
/// ([`crate::ReloadableAuthenticator::swap`]).
pub struct CredentialAuthenticator {
    roles: Arc<Roles>,
    keys: Option<ApiKeys>,
    tokens: Option<TokenAuthenticator>,
    certificates: CertificateRules,
    proxy: Option<TrustedProxies>,
    development: Option<Arc<Principal>>,
    anonymous: Option<Arc<Principal>>,
    local: Arc<Principal>,
    is_open: bool,
    clock: Clock,
}

impl CredentialAuthenticator {
    /// Creates an authenticator and reads the key file. Keys of an identity provider are fetched in the background,
    /// from the first use or from the move into a [`crate::ReloadableAuthenticator`] until the drop.
    ///
    /// # Errors
    /// When the key file cannot be read, or the options are invalid.
    pub fn new(options: AuthenticatorOptions) -> Result<Self, AuthenticatorError> {
        let roles = Roles::new(options.roles, options.generation, NEXT_VERSION.fetch_add(1, Ordering::Relaxed))?;
        let roles = Arc::new(roles);
        let keys = options.keys.map(|file| ApiKeys::read(&file, &roles)).transpose()?;
        let tokens = options.tokens.map(|tokens| TokenAuthenticator::new(tokens, roles.clone(), options.clock.clone()));
        let tokens = tokens.transpose()?;
        let certificates = CertificateRules::new(options.certificates, &roles)?;
        let proxy = options.proxy.map(|proxy| TrustedProxies::new(proxy, &roles)).transpose()?;
        let development = options.development.map(|identity| identity.into_principal(&roles)).transpose()?;
        let development = development.map(Arc::new);
        let anonymous = match options.anonymous {
            _ if options.is_open => Some(Arc::new(roles.with_generation((*Principal::anonymous()).clone()))),
            names if names.is_empty() => None,
            names => Some(Arc::new(roles.try_build_principal("anonymous", AuthMethod::Anonymous, names)?)),
        };
        let local = match options.local {
            Some(names) => Arc::new(roles.try_build_principal("local", AuthMethod::Process, names)?),
            None => Arc::new(roles.with_generation((*Principal::process_user()).clone())),
        };
        let (is_open, clock) = (options.is_open, options.clock);
        Ok(Self { roles, keys, tokens, certificates, proxy, development, anonymous, local, is_open, clock })
    }

    /// An authenticator that admits every caller.
    pub fn allow_all() -> Self {
        let (anonymous, local) = (Some(Principal::anonymous()), Principal::process_user());
        let (roles, keys, tokens, proxy) = (Arc::new(Roles::empty()), None, None, None);
        let (certificates, clock) = (CertificateRules::default(), Clock::default());
        Self { roles, keys, tokens, certificates, proxy, development: None, anonymous, local, is_open: true, clock }
    }

    pub(crate) fn start_background_tasks(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.start();
        }
    }

    /// Takes over the keys that `before` fetched from the same source.
    pub(crate) fn reuse_fetched_keys(&mut self, before: &Self) {
        if let (Some(tokens), Some(before)) = (&mut self.tokens, &before.tokens) {
            tokens.reuse_fetched_keys(before);
        }
    }

    async fn authenticate_credentials(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Arc<Principal>, AuthenticationError> {
        // When authentication is off, an invalid credential is no reason to reject the caller.
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

    /// The principal of the key or token `bearer`, sent from `peer`.
    async fn authenticate_bearer(&self, bearer: &str, peer: Option<IpAddr>) -> Option<Arc<Principal>> {
        let now = self.clock.now();
        if bearer.starts_with(secret::KEY_PREFIX) {
            return self.keys.as_ref()?.principal_for(bearer, now);
        }
        self.tokens.as_ref()?.principal_for(bearer, peer, now).await
    }

    fn authenticate_without_bearer(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let certificate = credentials.certificate.filter(|_| !self.certificates.is_empty());
        if let Some(certificate) = certificate
            && let Some(principal) = self.certificates.principal_for(certificate)
        {
            let is_valid = self.clock.now() < DateTime::<Utc>::from(certificate.expires);
            return if is_valid { Ok(principal) } else { Err(AuthenticationError::Invalid) };
        }
        // An unknown certificate may be the proxy's own.
        let proxy_principal =
            self.proxy.as_ref().map_or(Ok(None), |proxy| proxy.principal_for(credentials, &self.roles));
        match proxy_principal? {
            Some(principal) => Ok(principal),
            None if certificate.is_some() => Err(AuthenticationError::Invalid),
            None => self.principal_without_credentials(credentials).ok_or(AuthenticationError::Missing),
        }
    }

    fn principal_without_credentials(&self, credentials: Credentials<'_>) -> Option<Arc<Principal>> {
        // The peer of a request that a proxy on this machine sends on is this machine, too.
        let is_local = credentials.peer.is_some_and(|peer| peer.to_canonical().is_loopback());
        let development = self.development.as_ref().filter(|_| is_local && credentials.is_direct);
        development.or(self.anonymous.as_ref()).cloned()
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

    /// Roles of anonymous callers are configured deliberately, so they do not count as authentication that is off.
    fn enforces_authentication(&self) -> bool {
        !self.is_open
    }
}

/// Holds the current authenticator. A changed configuration replaces it as a whole.
pub struct ReloadableAuthenticator {
    current: ArcSwap<CredentialAuthenticator>,
    credential_reloads: watch::Sender<u64>,
}

impl ReloadableAuthenticator {
    /// Wraps `credential_authenticator` and starts its background tasks.
    pub fn new(credential_authenticator: CredentialAuthenticator) -> Self {
        credential_authenticator.start_background_tasks();
        Self { current: ArcSwap::from_pointee(credential_authenticator), credential_reloads: watch::Sender::new(0) }
    }

    /// Replaces the current authenticator. Principals of the old one stay until transports authenticate them again,
    /// which they do at once for open connections and calls. Until then they reach no entry of another generation.
    /// Their result links and cached token checks end. Keys that the old one fetched from the same source are kept.
    pub fn swap(&self, mut credential_authenticator: CredentialAuthenticator) {
        credential_authenticator.reuse_fetched_keys(&self.current.load());
        credential_authenticator.start_background_tasks();
        self.current.store(Arc::new(credential_authenticator));
        self.credential_reloads.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Authenticator for ReloadableAuthenticator {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        self.current.load_full().authenticate(credentials).await
    }

    fn local_principal(&self) -> Arc<Principal> {
        self.current.load().local_principal()
    }

    fn identity_headers(&self) -> Option<Arc<[String]>> {
        self.current.load().identity_headers()
    }

    fn is_still_valid(&self, principal: &Principal) -> bool {
        self.current.load().is_still_valid(principal)
    }

    fn credential_reloads(&self) -> watch::Receiver<u64> {
        self.credential_reloads.subscribe()
    }

    fn enforces_authentication(&self) -> bool {
        self.current.load().enforces_authentication()
    }
}
