//! Tokens of an issuer: their verification, and the principals of their holders.

mod algorithm;
mod cache;
mod error;
mod fetched_keys;
mod introspection;
mod issuer_check;
mod key_ring;
mod options;
mod permits;
mod verifier;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use reqwest::Url;

use self::options::Seconds;
use crate::clock::Clock;
use crate::provider::parse_url;
use crate::roles::Roles;
use crate::secret::{Digest, sha256};
use cache::TokenCache;
use fetched_keys::{FetchedKeys, KeySource};
use introspection::{IntrospectionResult, Introspector};
use key_ring::{ConfiguredKey, KeyRing};
use verifier::{TokenVerdict, TokenVerifier, VerifiedToken};

pub use algorithm::{TokenAlgorithm, UnknownAlgorithm};
pub use error::TokenOptionsError;
pub use issuer_check::{IssuerCheck, IssuerCheckError};
pub use options::{IntrospectionOptions, TokenKey, TokenOptions};
use tidegate_core::{AuthMethod, ImpliedScopes, Principal, is_bearer_token};

/// Bytes of a token at most; longer ones are rejected without parsing.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Verifies tokens and caches valid ones.
pub(crate) struct TokenAuthenticator {
    verifier: TokenVerifier,
    source: VerificationSource,
    cache: TokenCache,
    implied_scopes: Arc<ImpliedScopes>,
    clock: Clock,
}

/// How tokens are verified.
enum VerificationSource {
    /// With configured signature keys.
    Fixed(KeyRing),
    /// With signature keys fetched from the issuer.
    Fetched(Arc<FetchedKeys>),
    /// By token introspection at the issuer.
    Introspected(Box<Introspector>),
}

impl TokenAuthenticator {
    /// # Errors
    /// When the options are invalid.
    pub(crate) fn new(options: TokenOptions, clock: Clock) -> Result<Self, TokenOptionsError> {
        let (key, algorithms, issuer) = (options.key.clone(), options.algorithms.clone(), options.issuer.clone());
        let implied_scopes = options.implied_scopes.clone();
        // Other invalid options are reported before an invalid key.
        let verifier = TokenVerifier::new(options)?;
        let fixed = |key: ConfiguredKey<'_>| KeyRing::from_configured(&key, &algorithms).map(VerificationSource::Fixed);
        let fetched = |source| {
            if let Some(algorithm) = algorithms.iter().find(|algorithm| algorithm.secret_bytes_min() > 0) {
                let keys = "a public one that the issuer publishes".to_owned();
                return Err(TokenOptionsError::AlgorithmDoesNotFit { algorithm: *algorithm, keys });
            }
            Ok(VerificationSource::Fetched(Arc::new(FetchedKeys::new(source, algorithms.clone(), clock.clone()))))
        };
        let source = match &key {
            TokenKey::Jwks(jwks) => fixed(ConfiguredKey::Jwks(jwks))?,
            TokenKey::PublicKeyPem(pem) => fixed(ConfiguredKey::PublicKeyPem(pem))?,
            TokenKey::Secret(secret) => fixed(ConfiguredKey::Secret(secret))?,
            TokenKey::Introspection(options) => VerificationSource::Introspected(Box::new(Introspector::new(options)?)),
            TokenKey::JwksUrl(url) => fetched(key_set_source(url)?)?,
            TokenKey::Discovery => fetched(discovery_source(&issuer)?)?,
        };
        Ok(Self { verifier, source, cache: TokenCache::default(), implied_scopes, clock })
    }

    /// Starts the background fetch of the issuer's keys.
    pub(crate) fn start(&self) {
        if let VerificationSource::Fetched(keys) = &self.source {
            keys.start();
        }
    }

    /// Takes over the keys that `before` fetched, if their source is the same.
    pub(crate) fn reuse_fetched_keys(&mut self, before: &Self) {
        if let (VerificationSource::Fetched(keys), VerificationSource::Fetched(had)) =
            (&mut self.source, &before.source)
            && keys.is_same_as(had)
        {
            *keys = had.clone();
        }
    }

    /// The principal of `token`, sent from `peer`; `None` if it is not valid at `now`. It waits only for the issuer,
    /// and only for a token that is not cached.
    pub(crate) async fn principal_for(
        &self,
        token: &str,
        peer: Option<IpAddr>,
        now: DateTime<Utc>,
        roles: &Roles,
    ) -> Option<Arc<Principal>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let digest = sha256(token);
        // Read before the keys: a result that is based on keys replaced meanwhile must not be cached as current.
        let epoch = self.epoch();
        if let Some(principal) = self.cache.get(&digest, seconds_of(now), epoch) {
            if let VerificationSource::Fetched(keys) = &self.source {
                keys.current_keys(now);
            }
            return Some(principal);
        }
        match &self.source {
            VerificationSource::Fixed(keys) => match self.verifier.verify(token, Some(keys), seconds_of(now)) {
                TokenVerdict::Good(verified) => Some(self.cache_principal(digest, verified, now, epoch, roles)),
                TokenVerdict::UnknownKey | TokenVerdict::Bad => None,
            },
            VerificationSource::Fetched(keys) => self.verify_signed(keys, token, digest, now, roles).await,
            VerificationSource::Introspected(introspector) => {
                self.introspect(introspector, (token, peer), digest, now, roles).await
            }
        }
    }

    fn epoch(&self) -> u64 {
        match &self.source {
            VerificationSource::Fetched(keys) => keys.epoch(),
            VerificationSource::Fixed(_) | VerificationSource::Introspected(_) => 0,
        }
    }

    /// The principal of a signed token. If the issuer's keys do not include the token's key, they are fetched again
    /// once.
    async fn verify_signed(
        &self,
        keys: &FetchedKeys,
        token: &str,
        digest: Digest,
        now: DateTime<Utc>,
        roles: &Roles,
    ) -> Option<Arc<Principal>> {
        let attempts = keys.attempts();
        let mut now = now;
        let mut has_asked = false;
        loop {
            let epoch = keys.epoch();
            match self.verifier.verify(token, keys.current_keys(now).as_deref(), seconds_of(now)) {
                TokenVerdict::Good(verified) => return Some(self.cache_principal(digest, verified, now, epoch, roles)),
                TokenVerdict::UnknownKey if !has_asked && keys.wait_for_fetch_after(attempts, now).await => {
                    has_asked = true;
                    now = self.clock.now();
                }
                TokenVerdict::UnknownKey | TokenVerdict::Bad => return None,
            }
        }
    }

    /// The principal of a token that the issuer introspects.
    async fn introspect(
        &self,
        introspector: &Introspector,
        (token, peer): (&str, Option<IpAddr>),
        digest: Digest,
        now: DateTime<Utc>,
        roles: &Roles,
    ) -> Option<Arc<Principal>> {
        if !is_bearer_token(token) || introspector.was_recently_rejected(&digest, seconds_of(now)) {
            return None;
        }
        let find = async {
            let introspection_result = introspector.introspect(token, peer).await;
            let now = self.clock.now();
            let verified = match introspection_result {
                IntrospectionResult::Unavailable => return None,
                IntrospectionResult::Inactive => None,
                IntrospectionResult::Active(claims) => self.verifier.check_introspected_claims(claims, seconds_of(now)),
            };
            if verified.is_none() {
                introspector.remember_rejected(digest, seconds_of(now));
            }
            Some(self.cache_principal(digest, verified?, now, 0, roles))
        };
        introspector.run_once(digest, find).await
    }

    /// Builds and caches the principal of a valid token.
    fn cache_principal(
        &self,
        digest: Digest,
        verified: VerifiedToken,
        now: DateTime<Utc>,
        epoch: u64,
        roles: &Roles,
    ) -> Arc<Principal> {
        let names = roles.granted_by(&verified.claims, &self.implied_scopes);
        let principal = Arc::new(Principal {
            tenant: verified.tenant,
            claims: verified.claims,
            implied_scopes: self.implied_scopes.clone(),
            expires_at: time_of(verified.good_until),
            ..roles.build_principal(verified.subject, AuthMethod::Token, names)
        });
        self.cache.insert(digest, principal.clone(), seconds_of(now), verified.good_until, epoch);
        principal
    }
}

/// Where the issuer publishes its keys, if they are fetched.
fn key_source(key: &TokenKey, issuer: &str) -> Result<Option<KeySource>, TokenOptionsError> {
    match key {
        TokenKey::JwksUrl(url) => key_set_source(url).map(Some),
        TokenKey::Discovery => discovery_source(issuer).map(Some),
        TokenKey::Jwks(_) | TokenKey::PublicKeyPem(_) | TokenKey::Secret(_) | TokenKey::Introspection(_) => Ok(None),
    }
}

fn key_set_source(url: &str) -> Result<KeySource, TokenOptionsError> {
    parse_address("the jwks_url", url).map(KeySource::Url)
}

fn discovery_source(issuer: &str) -> Result<KeySource, TokenOptionsError> {
    let url = parse_address("the issuer, whose metadata are fetched,", issuer)?;
    Ok(KeySource::Discovery { issuer: issuer.to_owned(), url })
}

fn parse_address(member: &'static str, text: &str) -> Result<Url, TokenOptionsError> {
    parse_url(text).map_err(|reason| TokenOptionsError::Address { member, reason })
}

/// `None` for a time that cannot be represented, such as "never".
fn time_of(seconds: Seconds) -> Option<SystemTime> {
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    UNIX_EPOCH.checked_add(since)
}

fn seconds_of(time: DateTime<Utc>) -> Seconds {
    time.timestamp_millis() as Seconds / 1000.0
}
