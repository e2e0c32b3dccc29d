//! A session behind a pooler in transaction mode (PgBouncer): each of its transactions may run on another connection to
//! the server.
//!
//! The driver names each statement that it prepares, and keeps some of its own for looking up types. PgBouncer before
//! 1.21, and with `max_prepared_statements = 0`, passes these names on unchanged. Then a name may be unknown on the next
//! connection, or belong to another process there. Therefore every transaction begins with `DEALLOCATE ALL`. If the
//! driver uses a name that no longer exists, the server reports it and the session is replaced. A new session looks up
//! all types that other sessions have seen in its first transaction, in which the names stay valid.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// The maximum number of remembered types. With more types, sessions are replaced more often.
const TYPES_MAX: usize = 1_000;
/// A statement that is prepared to find its name on the server.
const PROBE: &str = "SELECT 'by which name does the server know this'";
/// Whether the probe has the driver's name on the server, and not one of the pooler's.
const IS_NAMED_BY_DRIVER: &str = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_prepared_statements
    WHERE statement = 'SELECT ''by which name does the server know this''' AND name ~ '^s[0-9]+$')";
pub(crate) const DEALLOCATE_ALL: &str = "DEALLOCATE ALL";

/// The state of a session behind a pooler.
pub(crate) struct PoolerSession {
    /// Whether the pooler makes statement names valid on every connection.
    keeps_statement_names: bool,
    /// Whether this session replaces one with outdated statements.
    is_replacement: bool,
    has_run_transaction: AtomicBool,
    seen_types: Arc<SeenTypes>,
}

/// User-defined types of results and parameters, which the driver must look up on the server.
#[derive(Default)]
pub(crate) struct SeenTypes(Mutex<BTreeMap<u32, Type>>);

impl SeenTypes {
    pub(crate) fn remember(&self, types: &[Type]) {
        let mut seen = self.0.lock();
        for new in types {
            if seen.len() < TYPES_MAX {
                seen.insert(new.oid(), new.clone());
            }
        }
    }
}

impl PoolerSession {
    /// Detects how the pooler behind `client` treats statement names.
    pub(crate) async fn detect(
        client: &Client,
        seen_types: Arc<SeenTypes>,
        is_replacement: bool,
    ) -> Result<Self, Error> {
        client.batch_execute("BEGIN READ ONLY").await?;
        let keeps_statement_names = match client.prepare(PROBE).await {
            Ok(probe) => {
                let rows = client.query_typed(IS_NAMED_BY_DRIVER, &[]).await?;
                let is_named_by_driver: bool = rows.first().map_or(Ok(true), |row| row.try_get(0))?;
                // It must be closed on the connection on which it was prepared, and so in this transaction.
                drop(probe);
                !is_named_by_driver
            }
            // Another process has left a statement with the same name.
            Err(error) if error.code() == Some(&SqlState::DUPLICATE_PSTATEMENT) => false,
            Err(error) => return Err(error),
        };
        client.batch_execute("ROLLBACK").await?;
        Ok(Self { keeps_statement_names, is_replacement, has_run_transaction: AtomicBool::new(false), seen_types })
    }

    /// Whether the next transaction must deallocate all statements.
    pub(crate) fn must_deallocate(&self) -> bool {
        // Statements that the pooler keeps are reused, unless one of their tables has changed.
        !self.keeps_statement_names || self.is_replacement && !self.has_run_transaction.load(Ordering::Relaxed)
    }

    /// Looks up the types that other sessions have seen, once, in the transaction that has begun. Returns false if one of
    /// them no longer exists; the transaction has then failed.
    pub(crate) async fn load_types(&self, client: &Client) -> Result<bool, Error> {
        if self.has_run_transaction.swap(true, Ordering::Relaxed) || self.keeps_statement_names {
            return Ok(true);
        }
        let types: Vec<Type> = self.seen_types.0.lock().values().cloned().collect();
        if types.is_empty() {
            return Ok(true);
        }
        let parameters: Vec<String> = (1..=types.len()).map(|number| format!("${number}")).collect();
        match client.prepare_typed(&format!("SELECT {}", parameters.join(", ")), &types).await {
            Ok(_) => Ok(true),
            Err(error) if error.as_db_error().is_some() => {
                tracing::debug!(%error, "a remembered type no longer exists");
                self.seen_types.0.lock().clear();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
