//! Earlier answers that are still right, by what was asked, of what data, by whom.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tidegate_core::{Caller, Job, Owner};

use super::id::ResultId;
use super::result::StoredResult;
use super::result_file::FileDescription;
use super::result_store::ResultStore;
use super::seal::{now_ms, to_ms};
use crate::statement::Statement;

/// Answers remembered.
const ANSWERS_MAX: usize = 1_000;

/// Names a question about data in some state, asked with some rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey([u8; 32]);

impl CacheKey {
    /// The key of `statement` for `database`, whose data is in the state that `version` names. Everything that the
    /// answer may depend on is in it: who asks with which roles and claims, under which configuration; `shape` is what
    /// else was said of the rows.
    pub(crate) fn for_statement(statement: &Statement, database: &str, version: u64, shape: &str, job: &Job) -> Self {
        let principal = job.principal();
        // Text that was parsed is spelled anew, so that space and comments do not matter.
        let text = statement.ast().map_or_else(|| statement.text().to_owned(), ToString::to_string);
        let owner = Owner::from_caller(job.caller()).to_text();
        let roles: Vec<&str> = principal.roles.iter().map(String::as_str).collect();
        let claims = serde_json::to_string(&principal.claims).unwrap_or_default();
        let parameters = format!("{:?}", statement.parameters());
        let numbers = format!("{} {version} {}", principal.generation, statement.dialect().name());
        Self::from_parts(&[&owner, &roles.join("\n"), &claims, database, &numbers, &text, &parameters, shape])
    }

    /// The key of `file` in the state that `state` names, for whoever asked for it in `job`.
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
    /// The answer to `key`, if one is remembered that is whole, and not older than `age`.
    pub(crate) fn cached_answer(
        &self,
        key: &CacheKey,
        age: Option<Duration>,
        caller: &Caller,
    ) -> Option<Arc<StoredResult>> {
        let id = *self.answers.lock().get(key)?;
        let result = self.get(id, caller).ok()?;
        let is_young = age.is_none_or(|age| now_ms() < result.header().created_at_ms.saturating_add(to_ms(age)));
        // What is damaged is asked for again.
        (is_young && result.is_complete()).then_some(result)
    }

    /// Remembers that `id` answers `key`.
    pub(crate) fn cache_answer(&self, key: CacheKey, id: ResultId) {
        self.answers.lock().put(key, id);
    }
}

/// Nothing remembered yet.
pub(super) fn new_answer_cache() -> lru::LruCache<CacheKey, ResultId> {
    lru::LruCache::new(std::num::NonZeroUsize::new(ANSWERS_MAX).unwrap_or(std::num::NonZeroUsize::MIN))
}
