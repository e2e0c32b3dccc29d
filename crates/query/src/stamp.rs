//! Stamps that detect changes of a table or a database.
//!
//! The default is computed from the visible schema. Engines with more information (such as file times) include it.
//! Engines that must query a server keep stamps for a while in [`StampCache`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Principal};

use crate::database::{Database, TableStatus};

/// Maximum number of stamps per database; the least recently used one is evicted first.
const STAMPS_MAX: NonZeroUsize = match NonZeroUsize::new(1_000) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};

/// A stamp of the columns of `table`, or of the names and comments of all tables; not of the rows. `None` when the
/// table does not exist.
///
/// # Errors
/// Those of [`Database::columns`] and [`Database::catalog`].
pub async fn compute_schema_stamp<D: Database + ?Sized>(
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

/// Stamps with the generation in which they were computed.
#[derive(Debug)]
pub struct StampCache {
    entries: Mutex<LruCache<String, (u64, Option<String>)>>,
}

impl Default for StampCache {
    fn default() -> Self {
        Self { entries: Mutex::new(LruCache::new(STAMPS_MAX)) }
    }
}

impl StampCache {
    /// The stamp under `key`, if it was computed in the generation `moment`; otherwise computes it with `find` and
    /// stores it if that succeeds.
    ///
    /// # Errors
    /// Those of `find`.
    pub async fn get(
        &self,
        key: String,
        moment: u64,
        find: impl Future<Output = Result<Option<String>, Error>>,
    ) -> Result<Option<String>, Error> {
        if let Some((at, stamp)) = self.entries.lock().get(&key)
            && *at == moment
        {
            return Ok(stamp.clone());
        }
        let stamp = find.await?;
        self.entries.lock().put(key, (moment, stamp.clone()));
        Ok(stamp)
    }
}
