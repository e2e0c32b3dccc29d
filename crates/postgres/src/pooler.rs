//! What a session must heed behind a pooler in transaction mode (PgBouncer): each of its transactions may run on
//! another connection to the server.
//!
//! The driver names each statement that it prepares, and keeps a few of its own by which it looks up types. A pooler
//! that keeps no book of names (PgBouncer before 1.21, and with `max_prepared_statements = 0`) hands them on as they
//! are, so that a name may be unknown to the next connection, or be another process's there. Then every transaction
//! begins by forgetting all names; a session whose driver relies on a forgotten one is replaced when the server says
//! so; and a new session looks up all types that others have met within its first transaction, while the names hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use crate::transaction::ROLLBACK;

/// Types that are remembered; who has more connects anew more often.
const TYPES_MAX: usize = 1_000;
/// Prepared to see by which name the server knows it.
const PROBE: &str = "SELECT 'by which name does the server know this'";
/// Whether the server knows the probe by the driver's name, and not by one of the pooler's.
const IS_NAMED_BY_DRIVER: &str = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_prepared_statements
    WHERE statement = 'SELECT ''by which name does the server know this''' AND name ~ '^s[0-9]+$')";
/// Makes a connection to the server forget all names.
pub(crate) const DEALLOCATE_ALL: &str = "DEALLOCATE ALL";

/// What a session behind a pooler must heed.
pub(crate) struct PoolerSession {
    /// Whether the pooler makes names hold on whichever connection a transaction runs.
    keeps_statement_names: bool,
    /// Whether this session is in the place of one that met outdated statements.
    replaces_outdated: bool,
    has_run_transaction: AtomicBool,
    seen_types: Arc<SeenTypes>,
}

/// Types of users that answers and parameters had, which a driver must ask the server about.
#[derive(Default)]
pub(crate) struct SeenTypes(Mutex<BTreeMap<u32, Type>>);

impl SeenTypes {
    /// Remembers `seen_types`.
    pub(crate) fn remember(&self, types: &[Type]) {
        let mut met = self.0.lock();
        for new in types {
            if met.len() < TYPES_MAX {
                met.insert(new.oid(), new.clone());
            }
        }
    }

    fn all(&self) -> Vec<Type> {
        self.0.lock().values().cloned().collect()
    }

    fn clear(&self) {
        self.0.lock().clear();
    }
}

impl PoolerSession {
    /// Finds out how the pooler behind `client` treats names.
    pub(crate) async fn detect(client: &Client, types: Arc<SeenTypes>, is_replacement: bool) -> Result<Self, Error> {
        client.batch_execute("BEGIN READ ONLY").await?;
        let names_hold = match client.prepare(PROBE).await {
            Ok(probe) => {
                let rows = client.query_typed(IS_NAMED_BY_DRIVER, &[]).await?;
                let is_named_by_driver: bool = rows.first().map_or(Ok(true), |row| row.try_get(0))?;
                // Closed while the transaction holds the connection that knows it.
                drop(probe);
                !is_named_by_driver
            }
            // Another process has left the same name.
            Err(error) if error.code() == Some(&SqlState::DUPLICATE_PSTATEMENT) => false,
            Err(error) => return Err(error),
        };
        client.batch_execute(ROLLBACK).await?;
        Ok(Self {
            keeps_statement_names: names_hold,
            replaces_outdated: is_replacement,
            has_run_transaction: AtomicBool::new(false),
            seen_types: types,
        })
    }

    /// Whether the transaction that begins now must forget all names.
    pub(crate) fn must_deallocate(&self) -> bool {
        // What a pooler keeps is worth keeping, unless a table has changed under it.
        !self.keeps_statement_names || self.replaces_outdated && !self.has_run_transaction.load(Ordering::Relaxed)
    }

    /// Looks up the types that others have met, once, in the transaction that has begun. False when one of them is
    /// gone: then the transaction has failed.
    pub(crate) async fn load_types(&self, client: &Client) -> Result<bool, Error> {
        if self.has_run_transaction.swap(true, Ordering::Relaxed) || self.keeps_statement_names {
            return Ok(true);
        }
        let types = self.seen_types.all();
        if types.is_empty() {
            return Ok(true);
        }
        let positions: Vec<String> = (1..=types.len()).map(|place| format!("${place}")).collect();
        match client.prepare_typed(&format!("SELECT {}", positions.join(", ")), &types).await {
            Ok(_) => Ok(true),
            Err(error) if error.as_db_error().is_some() => {
                tracing::debug!(%error, "a type that was met is gone");
                self.seen_types.clear();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
