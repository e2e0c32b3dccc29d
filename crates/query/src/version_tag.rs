//! Version tags that detect changes of a table or a database.
//!
//! The default is computed from the visible schema. Engines with more information (such as file times) include it.
//! Engines that must query a server keep version tags for a while in [`VersionTagCache`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Principal};

use crate::database::{Database, TableStatus};

/// Maximum number of version tags per database; the least recently used one is evicted first.
const VERSION_TAGS_MAX: NonZeroUsize = match NonZeroUsize::new(1_000) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};

/// A version tag of the columns of `table`, or of the names and comments of all tables; not of the rows. `None` when
/// the table does not exist.
///
/// # Errors
/// Those of [`Database::columns`] and [`Database::catalog`].
pub async fn compute_schema_version_tag<D: Database + ?Sized>(
    database: &D,
    table: Option<&str>,
    principal: &Principal,
) -> Result<Option<String>, Error> {
    let mut hash = DefaultHasher::new();
    match table {
        Some(table) => match database.columns(table, principal).await {
            Ok(columns) => {
                for column in columns {
                    (column.name, column.type_name, column.nullable, column.comment).hash(&mut hash);
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        },
        None => {
            for table in &database.catalog(principal).await?.tables {
                (&table.name, &table.comment).hash(&mut hash);
                if let TableStatus::Unreadable(reason) = &table.status {
                    reason.hash(&mut hash);
                }
            }
        }
    }
    Ok(Some(format!("{:016x}", hash.finish())))
}

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
    /// The version tag under `key`, if it was computed in the generation `moment`; otherwise computes it with `find`
    /// and stores it if that succeeds.
    ///
    /// # Errors
    /// Those of `find`.
    pub async fn get(
        &self,
        key: String,
        moment: u64,
        find: impl Future<Output = Result<Option<String>, Error>>,
    ) -> Result<Option<String>, Error> {
        if let Some((at, version_tag)) = self.entries.lock().get(&key)
            && *at == moment
        {
            return Ok(version_tag.clone());
        }
        let version_tag = find.await?;
        self.entries.lock().put(key, (moment, version_tag.clone()));
        Ok(version_tag)
    }
}
