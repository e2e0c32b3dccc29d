//! The keys of writes, so that a repeated write stores nothing.

use tidegate_core::{Error, ErrorKind};
use tidegate_query::WriteReceipt;
use tidegate_sql::{SqlDialect, Transaction};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::write::key_in_use_error;
use crate::error::internal_statement_error;
use crate::pool::{Lease, Pool};
use crate::session::{COMMIT, ROLLBACK, TransactionIdentity};

/// The table of keys, and how an owner creates it.
const CREATE_SQL: &str = "
CREATE SCHEMA IF NOT EXISTS tidegate;
CREATE TABLE IF NOT EXISTS tidegate.ingest_keys (key text PRIMARY KEY, sequence bigint NOT NULL, rows bigint[] NOT NULL, \
at timestamptz NOT NULL)";
const EXISTS_SQL: &str = "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'tidegate' AND c.relname = 'ingest_keys'";
/// Serializes nodes that create the table at the same time.
const CREATE_LOCK_SQL: &str =
    "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('tidegate.ingest_keys', 0))";
/// Held until the end of the transaction. Other writes with the same key do not wait.
const LOCK_SQL: &str =
    "SELECT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('tidegate.ingest_keys ' || $1, 0))";
/// The key as it is stored: a client that may read the table does not learn the keys of others.
const FIND_SQL: &str = "SELECT sequence, rows FROM tidegate.ingest_keys
    WHERE key = pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to($1, 'UTF8')), 'hex')
      AND at > pg_catalog.clock_timestamp() - interval '24 hours'";
const STORE_SQL: &str = "INSERT INTO tidegate.ingest_keys AS stored (key, sequence, rows, at)
    VALUES (pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to($1, 'UTF8')), 'hex'), $2, $3,
            pg_catalog.clock_timestamp())
    ON CONFLICT (key) DO UPDATE SET sequence = excluded.sequence, rows = excluded.rows, at = excluded.at
    WHERE stored.at <= excluded.at - interval '24 hours'
    RETURNING 1";
/// Removes old keys, a bounded number with each write, and without waiting for other writes that do so.
const CLEAN_SQL: &str = "DELETE FROM tidegate.ingest_keys WHERE key IN (
    SELECT key FROM tidegate.ingest_keys WHERE at <= pg_catalog.clock_timestamp() - interval '24 hours'
    LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// Creates the table of keys if it does not exist, in a transaction of its own: a long write must not hold its locks.
pub(super) async fn ensure_table(pool: &Pool, database: &str) -> Result<(), Error> {
    let failed = |error: tokio_postgres::Error| internal_statement_error(&error, database);
    let mut lease = pool.acquire().await?;
    let transaction = Transaction { writes: true, ..Transaction::default() };
    lease.begin(&transaction, &TransactionIdentity::default()).await?;
    let connection = lease.connection()?;
    let client = connection.client();
    if !lease.run(client.query_typed(EXISTS_SQL, &[])).await.map_err(failed)?.is_empty() {
        return lease.end(ROLLBACK).await.map_err(failed);
    }
    let created = lease.run(async {
        client.query_typed(CREATE_LOCK_SQL, &[]).await?;
        client.batch_execute(CREATE_SQL).await
    });
    match created.await {
        Ok(()) => lease.end(COMMIT).await.map_err(failed),
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            let rows = async {
                lease.end(ROLLBACK).await?;
                client.query_typed("SELECT current_user::text", &[]).await
            };
            let role: String = match rows.await.map_err(failed)?.first() {
                Some(row) => row.try_get(0).map_err(failed)?,
                None => String::new(),
            };
            Err(missing_table_error(database, &role))
        }
        Err(error) => Err(failed(error)),
    }
}

fn missing_table_error(database: &str, role: &str) -> Error {
    let message = format!(
        "the database {database} cannot remember the keys of writes: the table tidegate.ingest_keys does not exist, and \
         the role {role} may not create it"
    );
    let role = SqlDialect::Postgres.quote_identifier(role);
    let grants = format!(
        "GRANT USAGE ON SCHEMA tidegate TO {role}; GRANT SELECT, INSERT, UPDATE, DELETE ON tidegate.ingest_keys TO {role};"
    );
    Error::new(ErrorKind::InvalidArguments, message).with_hint(format!(
        "An owner of the database creates it:{CREATE_SQL}; {grants} Or send the rows without a key."
    ))
}

/// The key of a write.
#[derive(Debug, Clone)]
pub(super) struct StoredKey(String);

impl StoredKey {
    pub(super) fn new(key: &str) -> Self {
        Self(key.to_owned())
    }

    /// Locks the key until the transaction of `lease` ends. Returns the receipt of an earlier write with it.
    pub(super) async fn begin(&self, lease: &mut Lease, database: &str) -> Result<Option<WriteReceipt>, Error> {
        let failed = |error: tokio_postgres::Error| internal_statement_error(&error, database);
        let connection = lease.connection()?;
        let client = connection.client();
        let key: [(&(dyn ToSql + Sync), Type); 1] = [(&self.0, Type::TEXT)];
        let locked = lease.run(client.query_typed(LOCK_SQL, &key)).await.map_err(failed)?;
        let is_locked = locked.first().map_or(Ok(false), |row| row.try_get::<_, bool>(0)).map_err(failed)?;
        if !is_locked {
            return Err(key_in_use_error());
        }
        // A new snapshot: it contains the write that held the lock before.
        let found = lease.run(client.query_typed(FIND_SQL, &key)).await;
        let found = found.map_err(|error| table_error(&error, database))?;
        let Some(row) = found.first() else { return Ok(None) };
        let (sequence, rows): (i64, Vec<i64>) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        // Both were stored from unsigned numbers.
        Ok(Some(WriteReceipt {
            sequence: sequence.cast_unsigned(),
            rows: rows.into_iter().map(i64::cast_unsigned).collect(),
        }))
    }

    /// Stores the receipt, in the transaction of the rows.
    pub(super) async fn store(&self, lease: &mut Lease, receipt: &WriteReceipt, database: &str) -> Result<(), Error> {
        let connection = lease.connection()?;
        let client = connection.client();
        let rows: Vec<i64> = receipt.rows.iter().map(|rows| rows.cast_signed()).collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&self.0, Type::TEXT), (&receipt.sequence.cast_signed(), Type::INT8), (&rows, Type::INT8_ARRAY)];
        lease.mark_busy();
        let stored = client.query_typed(STORE_SQL, &parameters).await;
        if stored.map_err(|error| table_error(&error, database))?.is_empty() {
            return Err(key_in_use_error());
        }
        client.batch_execute(CLEAN_SQL).await.map_err(|error| table_error(&error, database))
    }
}

/// The error of a statement about the table of keys.
fn table_error(error: &tokio_postgres::Error, database: &str) -> Error {
    if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        let message = format!("the role of the node may not use the table tidegate.ingest_keys of {database}");
        return Error::new(ErrorKind::InvalidArguments, message)
            .with_hint("Its owner grants SELECT, INSERT, UPDATE and DELETE on it. Or send the rows without a key.");
    }
    internal_statement_error(error, database)
}
