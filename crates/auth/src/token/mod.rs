//! Tokens of an issuer: options of their verification, and the principals of their holders.
//!
//! Whether an issuer answers as required is checked with one request as the authenticator would send it.

mod key_ring;
mod verifier;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_core::{ImpliedScopes, Principal, is_bearer_token};
use tokio::time::timeout;

pub use key_ring::TokenAlgorithm;
pub(crate) use key_ring::{KeyKind, install_provider};

use crate::provider::{ProviderClient, ProviderError, REQUEST_TIMEOUT};
use crate::roles::Roles;
use crate::secret::{Clock, Digest, Secret, sha256};
use key_ring::{FetchedKeys, KeyLocation, KeyRing, fetch_key_set};
use verifier::{
    IntrospectionResult, Introspector, SharedIntrospection, TokenPrincipals, TokenVerdict, TokenVerifier, seconds_of,
};

/// Bytes of a token at most; longer ones are rejected without parsing.
pub(crate) const TOKEN_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct TokenAuthenticator {
    source: VerificationMethod,
    principals: Arc<TokenPrincipals>,
}

enum VerificationMethod {
    /// With configured signature keys.
    Fixed(KeyRing),
    /// With signature keys fetched from the issuer.
    Fetched(Arc<FetchedKeys>),
    /// By token introspection at the issuer.
    Introspected(Box<SharedIntrospection>),
}

impl TokenAuthenticator {
    pub(crate) fn new(options: TokenOptions, roles: Arc<Roles>, clock: Clock) -> Result<Self, TokenOptionsError> {
        let (key, algorithms, issuer) = (options.key.clone(), options.algorithms.clone(), options.issuer.clone());
        let implied_scopes = options.implied_scopes.clone();
        // Other invalid options are reported before an invalid key.
        let verifier = TokenVerifier::new(options)?;
        let source = match (&key, KeyLocation::find(&key, &issuer)?) {
            (TokenKey::Introspection(options), _) => {
                VerificationMethod::Introspected(Box::new(SharedIntrospection::new(options)?))
            }
            (_, Some(source)) => {
                if let Some(algorithm) = algorithms.iter().find(|algorithm| algorithm.secret_bytes_min() > 0) {
                    return Err(TokenOptionsError::unsupported(*algorithm, "a public one that the issuer publishes"));
                }
                VerificationMethod::Fetched(Arc::new(FetchedKeys::new(source, algorithms, clock.clone())))
            }
            (key, None) => VerificationMethod::Fixed(KeyRing::from_configured(key, &algorithms)?),
        };
        Ok(Self { source, principals: Arc::new(TokenPrincipals::new(verifier, roles, implied_scopes, clock)) })
    }

    pub(crate) fn start(&self) {
        if let VerificationMethod::Fetched(keys) = &self.source {
            keys.start();
        }
    }

    /// Takes over the keys that `before` fetched, if their source is the same.
    pub(crate) fn reuse_fetched_keys(&mut self, before: &Self) {
        if let (VerificationMethod::Fetched(keys), VerificationMethod::Fetched(fetched)) =
            (&mut self.source, &before.source)
            && keys.is_same_as(fetched)
        {
            *keys = fetched.clone();
        }
    }

    /// `None` if `token` is not valid at `now`. Waits only for the issuer, and only for a token that is not cached.
    pub(crate) async fn principal_for(
        &self,
        token: &str,
        peer: Option<IpAddr>,
        now: DateTime<Utc>,
    ) -> Option<Arc<Principal>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let digest = sha256(token);
        // Read before the keys: a result that is based on keys replaced meanwhile must not be cached as current.
        let epoch = self.epoch();
        if let Some(principal) = self.principals.cache.get(&digest, seconds_of(now), epoch) {
            if let VerificationMethod::Fetched(keys) = &self.source {
                keys.current_keys(now);
            }
            return Some(principal);
        }
        match &self.source {
            VerificationMethod::Fixed(keys) => {
                match self.principals.verifier.verify(token, Some(keys), seconds_of(now)) {
                    TokenVerdict::Valid(verified) => Some(self.principals.add(digest, verified, now, epoch)),
                    TokenVerdict::UnknownKey | TokenVerdict::Invalid => None,
                }
            }
            VerificationMethod::Fetched(keys) => self.verify_signed(keys, token, digest, now).await,
            VerificationMethod::Introspected(introspection) => {
                if !is_bearer_token(token) || introspection.was_recently_rejected(&digest, seconds_of(now)) {
                    return None;
                }
                introspection.principal_for(token, digest, peer, &self.principals).await
            }
        }
    }

    fn epoch(&self) -> u64 {
        match &self.source {
            VerificationMethod::Fetched(keys) => keys.epoch(),
            VerificationMethod::Fixed(_) | VerificationMethod::Introspected(_) => 0,
        }
    }

    /// If the issuer's keys do not include the token's key, they are fetched again once.
    async fn verify_signed(
        &self,
        keys: &FetchedKeys,
        token: &str,
        digest: Digest,
        now: DateTime<Utc>,
    ) -> Option<Arc<Principal>> {
        let attempts = keys.attempts();
        let mut now = now;
        let mut has_requested = false;
        loop {
            let epoch = keys.epoch();
            let current = keys.current_keys(now);
            match self.principals.verifier.verify(token, current.as_deref(), seconds_of(now)) {
                TokenVerdict::Valid(verified) => {
                    return Some(self.principals.add(digest, verified, now, epoch));
                }
                TokenVerdict::UnknownKey if !has_requested && keys.wait_for_fetch_after(attempts, now).await => {
                    has_requested = true;
                    now = self.principals.clock.now();
                }
                TokenVerdict::UnknownKey | TokenVerdict::Invalid => return None,
            }
        }
    }
}

/// Seconds since 1970, whole or fractional, as in token claims.
pub(crate) type Seconds = f64;

/// Default leeway for the clock of the signer, in seconds.
const LEEWAY_SECONDS: u32 = 30;

/// The key, or key source, that verifies tokens.
#[derive(Clone)]
pub enum TokenKey {
    /// The content of a JSON Web Key Set. Only its public keys are used.
    Jwks(String),
    /// A public key in PEM: RSA, EC on P-256 or P-384, or Ed25519.
    PublicKeyPem(String),
    /// A secret shared with the signer, for the algorithms that begin with `HS`. The bytes of the text are the secret.
    Secret(Secret),
    /// The URL of a JSON Web Key Set, which is fetched and refreshed. `https`, except for this machine.
    JwksUrl(String),
    /// The keys are found through the issuer's metadata and refreshed ([RFC
    /// 8414](https://www.rfc-editor.org/rfc/rfc8414), or OpenID Connect Discovery).
    Discovery,
    /// Tokens are opaque; each is verified by introspection at the issuer.
    Introspection(IntrospectionOptions),
}

/// The introspection endpoint and this node's credentials there ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)).
#[derive(Debug, Clone)]
pub struct IntrospectionOptions {
    /// The introspection endpoint. `https`, except for this machine.
    pub url: String,
    /// The client id of this node at the issuer.
    pub client_id: String,
    /// The client secret of this node at the issuer.
    pub client_secret: Secret,
    /// Whether the answer must name this node as audience, as MCP requires. If false, answers without an audience are
    /// accepted.
    pub needs_audience: bool,
}

impl fmt::Debug for TokenKey {
    /// Prints only the variant: the value may be a private key that was configured by mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jwks(_) => "Jwks(***)",
            Self::PublicKeyPem(_) => "PublicKeyPem(***)",
            Self::Secret(_) => "Secret(***)",
            Self::JwksUrl(_) => "JwksUrl(***)",
            Self::Discovery => "Discovery",
            Self::Introspection(_) => "Introspection(***)",
        })
    }
}

/// Options of token verification. In addition, a token must have `sub` and `exp`; `nbf` is checked if present. An
/// introspection answer may omit `exp`, `iss` and `aud` (see [`IntrospectionOptions::needs_audience`]), and `sub` if it
/// has `client_id`; claims that are present must be valid.
#[derive(Debug, Clone)]
pub struct TokenOptions {
    /// The key that verifies tokens.
    pub key: TokenKey,
    /// The required `iss`.
    pub issuer: String,
    /// Accepted audiences; the `aud` of a token must contain one of them.
    pub audiences: Vec<String>,
    /// The accepted signature algorithms. Ignored for introspection.
    pub algorithms: Vec<TokenAlgorithm>,
    /// Leeway for the clock of the signer, in seconds.
    pub leeway_seconds: u32,
    /// The claim that names the tenant. A token without it has no tenant.
    pub tenant_claim: Option<String>,
    /// Which scopes imply which others.
    pub implied_scopes: Arc<ImpliedScopes>,
}

impl TokenOptions {
    /// Options for tokens from `issuer` for `audiences`, signed with one of `algorithms` and verified with `key`.
    pub fn new(
        key: TokenKey,
        issuer: impl Into<String>,
        audiences: Vec<String>,
        algorithms: Vec<TokenAlgorithm>,
    ) -> Self {
        let issuer = issuer.into();
        let (leeway_seconds, tenant_claim, implied_scopes) = (LEEWAY_SECONDS, None, Arc::default());
        Self { key, issuer, audiences, algorithms, leeway_seconds, tenant_claim, implied_scopes }
    }
}

/// Why token options are invalid. The message reveals nothing about a key but its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenOptionsError(String);

impl TokenOptionsError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    fn private_key() -> Self {
        Self::new("this is a private key, which only the signer may have; give the public key")
    }

    fn no_public_key() -> Self {
        Self::new(
            "this is not a usable public key in PEM (BEGIN PUBLIC KEY); use RSA with 2048 to 8192 bits, EC on P-256 or \
             P-384, or Ed25519",
        )
    }

    fn no_jwks() -> Self {
        Self::new("this is not a JWKS: it must be a JSON object with a list named keys")
    }

    /// The JWKS contains only keys for other purposes or of unsupported types.
    fn no_usable_key() -> Self {
        Self::new(
            "the JWKS has no usable key; that would be a public key that checks signatures: RSA with 2048 to 8192 \
             bits, EC on P-256 or P-384, or Ed25519",
        )
    }

    /// No key of these kinds supports the algorithm.
    fn unsupported(algorithm: TokenAlgorithm, keys: &str) -> Self {
        Self::new(format!("the algorithm {algorithm} does not fit the key, which is {keys}"))
    }

    fn no_client() -> Self {
        Self::new("introspection needs a client_id and a client_secret, which identify this node to the issuer")
    }
}

/// A text that is not a valid token of any issuer.
const PROBE_TOKEN: &str = "tidegate-asks-whether-you-answer";

/// The result of checking an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerCheck {
    /// No request is needed: the keys are configured.
    NotNeeded,
    /// The issuer publishes keys.
    Keys {
        /// The number of usable keys.
        count: usize,
        /// Configured algorithms without a published key.
        missing_algorithms: Vec<TokenAlgorithm>,
    },
    /// The issuer answers introspection requests.
    Introspects,
    /// The issuer answers 400. Either this is its answer for texts that are not tokens, or it cannot parse the request.
    RejectsProbe,
}

impl TokenOptions {
    /// Sends the issuer one request, for five seconds at most.
    ///
    /// # Errors
    /// Why tokens cannot be verified: the issuer cannot be reached, or does not answer as required.
    pub async fn check_issuer(&self) -> Result<IssuerCheck, String> {
        let check = timeout(REQUEST_TIMEOUT, self.run_issuer_check()).await;
        let check = check.unwrap_or_else(|_| Err(ProviderError::timed_out()));
        check.map_err(|failure| failure.to_string())
    }

    async fn run_issuer_check(&self) -> Result<IssuerCheck, ProviderError> {
        if let TokenKey::Introspection(options) = &self.key {
            let introspector = Introspector::new(options).map_err(ProviderError::other)?;
            return match introspector.query_issuer_strictly(PROBE_TOKEN).await {
                Ok(IntrospectionResult::Active(_)) => {
                    let problem = "it reports a text that is not a token as active: any bearer would be admitted";
                    Err(ProviderError::other(problem))
                }
                Ok(IntrospectionResult::Inactive) => Ok(IssuerCheck::Introspects),
                Err(ProviderError::Status(400)) => Ok(IssuerCheck::RejectsProbe),
                Err(failure) => Err(failure),
            };
        }
        let Some(source) = KeyLocation::find(&self.key, &self.issuer).map_err(ProviderError::other)? else {
            return Ok(IssuerCheck::NotNeeded);
        };
        let page = fetch_key_set(&ProviderClient::default(), &source).await?;
        let keys = KeyRing::from_jwks(&page.body).map_err(ProviderError::other)?;
        Ok(IssuerCheck::Keys { count: keys.len(), missing_algorithms: keys.unsupported_algorithms(&self.algorithms) })
    }
}
