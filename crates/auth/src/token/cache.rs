//! Recently verified tokens, so that repeated requests need no signature check.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::Principal;

use super::options::Seconds;
use crate::secret::Digest;

/// Tokens in the cache at most; the least recently used one is evicted.
const TOKENS_MAX: NonZeroUsize = match NonZeroUsize::new(10_000) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};
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
        let mut known = self.tokens.lock();
        let found = known.get(digest)?;
        if now < found.until && found.epoch == epoch {
            return Some(found.principal.clone());
        }
        known.pop(digest);
        None
    }

    /// Caches the principal of a token that is valid until `good_until`, verified with the keys of `epoch`.
    pub(super) fn insert(
        &self,
        digest: Digest,
        principal: Arc<Principal>,
        now: Seconds,
        good_until: Seconds,
        epoch: u64,
    ) {
        let until = good_until.min(now + LIFETIME_SECONDS_MAX);
        self.tokens.lock().put(digest, CachedToken { principal, until, epoch });
    }
}
