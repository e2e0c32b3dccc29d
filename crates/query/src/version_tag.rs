//! A cache of version tags, for engines that must query a server to compute them.

use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::Error;

/// Maximum number of version tags per database; the least recently used one is evicted first.
const VERSION_TAGS_MAX: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// Version tags with the generation in which they were computed.
#[derive(Debug)]
pub struct VersionTagCache {
    entries: Mutex<LruCache<String, (u64, Option<String>)>>,
}

impl Default for VersionTagCache {
    fn default() -> Self {
        Self { entries: Mutex::new(LruCache::new(VERSION_TAGS_MAX)) }
    }
}

impl VersionTagCache {
    /// The version tag under `key`, if it was computed in `generation`; otherwise computes it with `find` and stores it
    /// if that succeeds.
    ///
    /// # Errors
    /// Those of `find`.
    pub async fn get(
        &self,
        key: String,
        generation: u64,
        find: impl Future<Output = Result<Option<String>, Error>>,
    ) -> Result<Option<String>, Error> {
        if let Some((computed_in, version_tag)) = self.entries.lock().get(&key)
            && *computed_in == generation
        {
            return Ok(version_tag.clone());
        }
        let version_tag = find.await?;
        self.entries.lock().put(key, (generation, version_tag.clone()));
        Ok(version_tag)
    }
}
