//! The keys of writes, so that a repeated write stores nothing.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, params};
use tidegate_core::{Error, ErrorKind, HmacSigner};
use tidegate_query::WriteReceipt;

use super::session::write_error;

const CREATE_SQL: &str = "CREATE TABLE IF NOT EXISTS main.tidegate_ingest_keys \
    (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL, rows TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID";
const FIND_SQL: &str = "SELECT sequence, rows FROM main.tidegate_ingest_keys WHERE key = ?1 AND at > ?2";
const STORE_SQL: &str =
    "INSERT OR REPLACE INTO main.tidegate_ingest_keys (key, sequence, rows, at) VALUES (?1, ?2, ?3, ?4)";
const CLEAN_SQL: &str = "DELETE FROM main.tidegate_ingest_keys WHERE at <= ?1";
/// How long a key is remembered: 24 hours.
const KEY_AGE_MAX_MICROSECONDS: i64 = 24 * 3600 * 1_000_000;

/// The form in which `key` is stored: callers who may read the table do not learn the keys of others.
fn stored_form(key: &str) -> String {
    hex::encode(HmacSigner::new(b"tidegate_ingest_keys").sign("the key of a write", &[key.as_bytes()]))
}

/// The keys of the writes that run in this process.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningKeys(Arc<Mutex<HashSet<String>>>);

/// A key that is in use until this is dropped.
#[derive(Debug)]
pub(super) struct KeyInUse {
    keys: RunningKeys,
    pub(super) key: String,
}

impl RunningKeys {
    /// Takes `key`; an error if a write with it is running.
    pub(super) fn take(&self, key: &str) -> Result<KeyInUse, Error> {
        match self.0.lock().insert(key.to_owned()) {
            true => Ok(KeyInUse { keys: self.clone(), key: key.to_owned() }),
            false => Err(key_in_use_error()),
        }
    }
}

impl Drop for KeyInUse {
    fn drop(&mut self) {
        self.keys.0.lock().remove(&self.key);
    }
}

fn key_in_use_error() -> Error {
    Error::new(ErrorKind::Conflict, "a write with the same key is running")
        .with_hint("Wait for its end, then send the rows again with the same key.")
}

pub(super) fn unsupported_error(database: &str) -> Error {
    let message = format!("the database {database:?} does not remember the keys of writes");
    Error::new(ErrorKind::InvalidArguments, message).with_hint(
        "The owner of the node allows the table tidegate_ingest_keys in the file. Or send the rows without a key.",
    )
}

/// The receipt of an earlier write with `key`, in the transaction of the write. `now` is in microseconds since 1970.
pub(super) fn find(
    connection: &Connection,
    key: &str,
    now: i64,
    database: &str,
) -> Result<Option<WriteReceipt>, Error> {
    let found = || {
        connection.execute_batch(CREATE_SQL)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        connection.query_row(FIND_SQL, params![stored_form(key), now - KEY_AGE_MAX_MICROSECONDS], read).optional()
    };
    let Some((sequence, rows)) = found().map_err(|error| write_error(error, database))? else { return Ok(None) };
    let rows: Result<Vec<u64>, _> = rows.split_terminator(',').map(str::parse).collect();
    let rows = rows.map_err(|_| Error::internal("a stored receipt is damaged"))?;
    Ok(Some(WriteReceipt { sequence: sequence.cast_unsigned(), rows }))
}

/// Stores the receipt, in the transaction of the rows, and removes old ones.
pub(super) fn store(connection: &Connection, key: &str, receipt: &WriteReceipt, now: i64) -> rusqlite::Result<()> {
    let rows: Vec<String> = receipt.rows.iter().map(u64::to_string).collect();
    connection.execute(CLEAN_SQL, [now - KEY_AGE_MAX_MICROSECONDS])?;
    connection.execute(STORE_SQL, params![stored_form(key), receipt.sequence.cast_signed(), rows.join(","), now])?;
    Ok(())
}
