//! The tokens that were good a moment ago, so that a second request costs no signature check.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::Principal;

use super::Seconds;
use crate::digest::Digest;

/// Tokens that are remembered; the one shown longest ago goes first.
const TOKENS_MAX: NonZeroUsize = match NonZeroUsize::new(10_000) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};
/// After this time a token is checked again.
const LIFETIME_SECONDS_MAX: Seconds = 60.0;

/// Who showed which token, by the token's SHA-256. What was refused is not remembered.
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
    /// Who showed the token of this digest, if that still counts and was found out with the keys of `epoch`.
    pub(super) fn get(&self, digest: &Digest, now: Seconds, epoch: u64) -> Option<Arc<Principal>> {
        let mut known = self.tokens.lock();
        let found = known.get(digest)?;
        if now < found.until && found.epoch == epoch {
            return Some(found.principal.clone());
        }
        known.pop(digest);
        None
    }

    /// Remembers who showed a token that is good until `good_until` by the keys of `epoch`.
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
