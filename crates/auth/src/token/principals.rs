//! The principals of the holders of tokens.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use lru::LruCache;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{AuthMethod, ImpliedScopes, Principal};

use super::options::Seconds;
use super::verifier::{TokenVerifier, VerifiedToken};
use crate::clock::Clock;
use crate::roles::Roles;
use crate::secret::Digest;

/// Makes principals of what tokens contain, and keeps them for a minute.
pub(super) struct TokenPrincipals {
    pub(super) verifier: TokenVerifier,
    pub(super) cache: TokenCache,
    pub(super) clock: Clock,
    roles: Arc<Roles>,
    implied_scopes: Arc<ImpliedScopes>,
}

impl TokenPrincipals {
    pub(super) fn new(
        verifier: TokenVerifier,
        roles: Arc<Roles>,
        implied_scopes: Arc<ImpliedScopes>,
        clock: Clock,
    ) -> Self {
        Self { verifier, cache: TokenCache::default(), clock, roles, implied_scopes }
    }

    /// The principal of a token, which is cached from `now` on. It was verified with the keys of `epoch`.
    pub(super) fn add(
        &self,
        digest: Digest,
        verified: VerifiedToken,
        now: DateTime<Utc>,
        epoch: u64,
    ) -> Arc<Principal> {
        let names = self.roles.granted_by(&verified.claims, &self.implied_scopes);
        let principal = Arc::new(Principal {
            tenant: verified.tenant,
            claims: verified.claims,
            implied_scopes: self.implied_scopes.clone(),
            expires_at: time_of(verified.valid_until),
            ..self.roles.build_principal(verified.subject, AuthMethod::Token, names)
        });
        self.cache.insert(digest, principal.clone(), seconds_of(now), verified.valid_until, epoch);
        principal
    }

    /// The principal of an active token with these claims of its issuer; `None` if they are not as required.
    pub(super) fn add_introspected(&self, digest: Digest, claims: Map<String, Value>) -> Option<Arc<Principal>> {
        let now = self.clock.now();
        let verified = self.verifier.check_introspected_claims(claims, seconds_of(now))?;
        Some(self.add(digest, verified, now, 0))
    }
}

/// `None` for a time that cannot be represented, such as "never".
fn time_of(seconds: Seconds) -> Option<SystemTime> {
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    UNIX_EPOCH.checked_add(since)
}

pub(super) fn seconds_of(time: DateTime<Utc>) -> Seconds {
    time.timestamp_millis() as Seconds / 1000.0
}

/// Tokens in the cache at most; the least recently used one is evicted.
const TOKENS_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// Seconds after which a token is verified again.
const LIFETIME_SECONDS_MAX: Seconds = 60.0;

/// Principals by the SHA-256 of their token. Rejected tokens are not cached.
pub(super) struct TokenCache {
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
    pub(super) fn get(&self, digest: &Digest, now: Seconds, epoch: u64) -> Option<Arc<Principal>> {
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
