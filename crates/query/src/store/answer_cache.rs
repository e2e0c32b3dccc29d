//! A cache of earlier answers that are still valid, keyed by statement, data version and caller.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::id::ResultId;
use super::result::StoredResult;
use super::result_file::FileDescription;
use super::result_store::ResultStore;
use super::seal::{now_ms, to_ms};
use tidegate_core::{Caller, Owner};
use tidegate_runtime::Job;
use tidegate_sql::Statement;

/// The maximum number of cached answers.
const ANSWERS_MAX: usize = 1_000;

/// Identifies a statement over data in a known state, run with known rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey([u8; 32]);

impl CacheKey {
    /// The key of `statement` for `database`, whose data is in the state `version`. The key contains everything that
    /// the answer may depend on: the caller with its roles and claims, and the generation of the configuration. `shape`
    /// describes the other options of the rows.
    pub(crate) fn for_statement(statement: &Statement, database: &str, version: u64, shape: &str, job: &Job) -> Self {
        let principal = job.principal();
        // The text is rendered from the AST, so that whitespace and comments do not matter.
        let text = statement.ast().map_or_else(|| statement.text().to_owned(), ToString::to_string);
        let owner = Owner::from_caller(job.caller()).to_text();
        let roles: Vec<&str> = principal.roles.iter().map(String::as_str).collect();
        let claims = serde_json::to_string(&principal.claims).unwrap_or_default();
        let parameters = format!("{:?}", statement.parameters());
        let numbers = format!("{} {version} {}", principal.generation, statement.dialect().name());
        Self::from_parts(&[&owner, &roles.join("\n"), &claims, database, &numbers, &text, &parameters, shape])
    }

    /// The key of `file` in the state `state`, for the caller of `job`.
    pub(crate) fn for_file(file: &FileDescription, state: &str, job: &Job) -> Self {
        let owner = serde_json::to_string(&Owner::from_caller(job.caller())).unwrap_or_default();
        let facts = serde_json::to_string(file).unwrap_or_default();
        let generation = job.principal().generation.to_string();
        Self::from_parts(&["file", &owner, &generation, job.target().name(), &facts, state])
    }

    fn from_parts(parts: &[&str]) -> Self {
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
    pub(crate) fn cached_answer(
        &self,
        key: &CacheKey,
        age: Option<Duration>,
        caller: &Caller,
    ) -> Option<Arc<StoredResult>> {
        let id = *self.answers.lock().get(key)?;
        let result = self.get(id, caller).ok()?;
        let is_young = age.is_none_or(|age| now_ms() < result.header().created_at_ms.saturating_add(to_ms(age)));
        // A damaged result is not reused.
        (is_young && result.is_complete()).then_some(result)
    }

    /// Stores `id` as the answer for `key`.
    pub(crate) fn cache_answer(&self, key: CacheKey, id: ResultId) {
        self.answers.lock().put(key, id);
    }
}

/// An empty cache.
pub(super) fn new_answer_cache() -> lru::LruCache<CacheKey, ResultId> {
    lru::LruCache::new(std::num::NonZeroUsize::new(ANSWERS_MAX).unwrap_or(std::num::NonZeroUsize::MIN))
}
