//! Whether a table, or a database as a whole, looks the same as it did.
//!
//! Told by what is shown of it. Engines that know more (the times of files) tell more, those that have to ask for it
//! (a server) keep what they heard for a while in [`StampCache`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Principal};

use crate::database::{Database, TableStatus};

/// Stamps that are kept of one database; the one asked for longest ago goes first.
const STAMPS_MAX: NonZeroUsize = match NonZeroUsize::new(1_000) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};

/// A stamp of the columns of `table`, or of the names of all tables and what is said of them; not of the rows. None
/// when there is no such table.
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

/// Stamps that were found out, each as long as something else stands as it stood then.
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
    /// The stamp kept under `key`, if it was found out when things stood at `moment`; else what `find` finds out, which
    /// is kept if it succeeds.
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
