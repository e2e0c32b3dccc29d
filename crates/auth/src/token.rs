//! Tokens of an issuer: their verification, and the principals of their holders.

mod algorithm;
mod fetched_keys;
mod introspection;
mod issuer_check;
mod key_ring;
mod options;
mod permits;
mod verifier;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{AuthMethod, ImpliedScopes, Principal, is_bearer_token};

use crate::clock::Clock;
use crate::roles::Roles;
use crate::secret::{Digest, sha256};
use crate::token::fetched_keys::{FetchedKeys, KeySource};
use crate::token::introspection::{IntrospectionResult, Introspector};
use crate::token::key_ring::KeyRing;
use crate::token::options::Seconds;
use crate::token::verifier::{TokenVerdict, TokenVerifier, VerifiedToken};

pub(crate) use algorithm::KeyKind;
pub use algorithm::TokenAlgorithm;
pub use issuer_check::IssuerCheck;
pub(crate) use key_ring::install_provider;
pub use options::{IntrospectionOptions, TokenKey, TokenOptions, TokenOptionsError};

/// Bytes of a token at most; longer ones are rejected without parsing.
pub(crate) const TOKEN_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct TokenAuthenticator {
    verifier: TokenVerifier,
    source: VerificationSource,
    cache: TokenCache,
    implied_scopes: Arc<ImpliedScopes>,
    clock: Clock,
}

enum VerificationSource {
    /// With configured signature keys.
    Fixed(KeyRing),
    /// With signature keys fetched from the issuer.
    Fetched(Arc<FetchedKeys>),
    /// By token introspection at the issuer.
    Introspected(Box<Introspector>),
}

impl TokenAuthenticator {
    pub(crate) fn new(options: TokenOptions, clock: Clock) -> Result<Self, TokenOptionsError> {
        let (key, algorithms, issuer) = (options.key.clone(), options.algorithms.clone(), options.issuer.clone());
        let implied_scopes = options.implied_scopes.clone();
        // Other invalid options are reported before an invalid key.
        let verifier = TokenVerifier::new(options)?;
        let source = match (&key, KeySource::find(&key, &issuer)?) {
            (TokenKey::Introspection(options), _) => {
                VerificationSource::Introspected(Box::new(Introspector::new(options)?))
            }
            (_, Some(source)) => {
                if let Some(algorithm) = algorithms.iter().find(|algorithm| algorithm.secret_bytes_min() > 0) {
                    return Err(TokenOptionsError::unsupported(*algorithm, "a public one that the issuer publishes"));
                }
                VerificationSource::Fetched(Arc::new(FetchedKeys::new(source, algorithms, clock.clone())))
            }
            (key, None) => VerificationSource::Fixed(KeyRing::from_configured(key, &algorithms)?),
        };
        Ok(Self { verifier, source, cache: TokenCache::default(), implied_scopes, clock })
    }

    pub(crate) fn start(&self) {
        if let VerificationSource::Fetched(keys) = &self.source {
            keys.start();
        }
    }

    /// Takes over the keys that `before` fetched, if their source is the same.
    pub(crate) fn reuse_fetched_keys(&mut self, before: &Self) {
        if let (VerificationSource::Fetched(keys), VerificationSource::Fetched(fetched)) =
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
                TokenVerdict::Valid(verified) => Some(self.cache_principal(digest, verified, now, epoch, roles)),
                TokenVerdict::UnknownKey | TokenVerdict::Invalid => None,
            },
            VerificationSource::Fetched(keys) => self.verify_signed(keys, token, digest, now, roles).await,
            VerificationSource::Introspected(introspector) => {
                // Every request contains the future of its authentication, and this one is large.
                Box::pin(self.introspect(introspector, (token, peer), digest, now, roles)).await
            }
        }
    }

    fn epoch(&self) -> u64 {
        match &self.source {
            VerificationSource::Fetched(keys) => keys.epoch(),
            VerificationSource::Fixed(_) | VerificationSource::Introspected(_) => 0,
        }
    }

    /// If the issuer's keys do not include the token's key, they are fetched again once.
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
        let mut has_requested = false;
        loop {
            let epoch = keys.epoch();
            match self.verifier.verify(token, keys.current_keys(now).as_deref(), seconds_of(now)) {
                TokenVerdict::Valid(verified) => {
                    return Some(self.cache_principal(digest, verified, now, epoch, roles));
                }
                TokenVerdict::UnknownKey if !has_requested && keys.wait_for_fetch_after(attempts, now).await => {
                    has_requested = true;
                    now = self.clock.now();
                }
                TokenVerdict::UnknownKey | TokenVerdict::Invalid => return None,
            }
        }
    }

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
        let introspection = async {
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
        introspector.run_once(digest, introspection).await
    }

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
            expires_at: time_of(verified.valid_until),
            ..roles.build_principal(verified.subject, AuthMethod::Token, names)
        });
        self.cache.insert(digest, principal.clone(), seconds_of(now), verified.valid_until, epoch);
        principal
    }
}

/// `None` for a time that cannot be represented, such as "never".
fn time_of(seconds: Seconds) -> Option<SystemTime> {
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    UNIX_EPOCH.checked_add(since)
}

fn seconds_of(time: DateTime<Utc>) -> Seconds {
    time.timestamp_millis() as Seconds / 1000.0
}

/// Tokens in the cache at most; the least recently used one is evicted.
const TOKENS_MAX: NonZeroUsize = match NonZeroUsize::new(10_000) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};
/// Seconds after which a token is verified again.
const LIFETIME_SECONDS_MAX: Seconds = 60.0;

/// Principals by the SHA-256 of their token. Rejected tokens are not cached.
struct TokenCache {
    tokens: Mutex<LruCache<Digest, CachedToken>>,
}

struct CachedToken {
    principal: Arc<Principal>,
    until: Seconds,
    epoch: u64,
}

impl Default for TokenCache {
    fn default() -> Self {
        Self { tokens: Mutex::new(LruCache::new(TOKENS_MAX)) }
    }
}

impl TokenCache {
    /// The principal of the token with this digest, if the entry is current and was made with the keys of `epoch`.
    fn get(&self, digest: &Digest, now: Seconds, epoch: u64) -> Option<Arc<Principal>> {
        let mut tokens = self.tokens.lock();
        let cached = tokens.get(digest)?;
        if now < cached.until && cached.epoch == epoch {
            return Some(cached.principal.clone());
        }
        tokens.pop(digest);
        None
    }

    /// Caches the principal of a token that is valid until `valid_until`, verified with the keys of `epoch`.
    fn insert(&self, digest: Digest, principal: Arc<Principal>, now: Seconds, valid_until: Seconds, epoch: u64) {
        let until = valid_until.min(now + LIFETIME_SECONDS_MAX);
        self.tokens.lock().put(digest, CachedToken { principal, until, epoch });
    }
}
