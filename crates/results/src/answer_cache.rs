//! A cache of earlier answers that are still valid, keyed by statement, data version and caller.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::manifest::ResultId;
use crate::result::StoredResult;
use crate::result_file::FileDescription;
use crate::result_store::ResultStore;
use crate::seal::{now_ms, to_ms};
use tidegate_core::{Caller, Owner};
use tidegate_runtime::Job;

/// The maximum number of cached answers.
const ANSWERS_MAX: usize = 1_000;

/// Identifies a statement over data in a known state, run with known rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// The key of `file` in the state `state`, for the caller of `job`.
    pub(crate) fn for_file(file: &FileDescription, state: &str, job: &Job) -> Self {
        let owner = serde_json::to_string(&Owner::from_caller(job.caller())).unwrap_or_default();
        let facts = serde_json::to_string(file).unwrap_or_default();
        let generation = job.principal().generation.to_string();
        Self::from_parts(&["file", &owner, &generation, job.target().name(), &facts, state])
    }

    /// The key of `parts`, which together contain everything that the answer may depend on.
    pub fn from_parts(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        Self(hash.finalize().into())
    }
}

impl ResultStore {
    /// The cached answer for `key`, if it is complete and not older than `age`.
    pub fn cached_answer(&self, key: &CacheKey, age: Option<Duration>, caller: &Caller) -> Option<Arc<StoredResult>> {
        let id = *self.answers.lock().get(key)?;
        let result = self.get(id, caller).ok()?;
        let is_young = age.is_none_or(|age| now_ms() < result.header().created_at_ms.saturating_add(to_ms(age)));
        // A damaged result is not reused.
        (is_young && result.is_complete()).then_some(result)
    }

    /// Stores `id` as the answer for `key`.
    pub fn cache_answer(&self, key: CacheKey, id: ResultId) {
        self.answers.lock().put(key, id);
    }
}

/// An empty cache.
pub(crate) fn new_answer_cache() -> lru::LruCache<CacheKey, ResultId> {
    lru::LruCache::new(std::num::NonZeroUsize::new(ANSWERS_MAX).unwrap_or(std::num::NonZeroUsize::MIN))
}
