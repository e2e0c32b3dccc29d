//! Tables that take rows: each write is one transaction, and its rows are sent with `COPY … FROM STDIN BINARY`.
//!
//! # Who writes
//!
//! A write runs as the role of the connection, with connections of its own. The role and the claims of a caller do not
//! apply: whether a caller may write is decided before. The role needs `INSERT` on the columns, `DELETE` on a table that
//! is replaced, and no row-level security on the table, which `COPY` does not support.
//!
//! # Columns
//!
//! The columns of a body are those of the table, without generated ones, without `GENERATED ALWAYS AS IDENTITY`, and
//! without columns that may be missing and whose type has no binary form here. Their Arrow types are those of reading,
//! except that `numeric` without a precision is `Decimal256(76, 38)`, and that times and timestamps with a precision have
//! the coarsest unit that holds it. The server would round and cut values silently, so the values are checked before.
//!
//! [`WritePlan`](tidegate_query::WritePlan) says when the default of a column applies.
//!
//! # Replacing
//!
//! `WriteMode::Replace` locks the table against other writers (`SHARE ROW EXCLUSIVE`), deletes its rows and copies the
//! new ones, in one transaction. Readers see the old rows until then. `TRUNCATE` would block readers for the whole body,
//! and would show an empty table to transactions with an older snapshot.
//!
//! # Sequence
//!
//! The sequence of a receipt is the number of its transaction (`txid_current`). Numbers grow in the order in which
//! transactions begin to write, not in the order in which they commit.
//!
//! # Keys
//!
//! The key of a write is stored as its SHA-256 in `tidegate.ingest_keys`, in the transaction of the rows. The table is
//! created if the role may do so. A key is remembered for 24 hours.

mod encode;
mod table;
mod write;

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use tidegate_core::Error;
use tidegate_query::{DeclaredTable, DeclaredTables, IngestTable, IngestTarget, WriteMode, WriteRequest, WriteStart};
use tidegate_sql::{SqlDialect, Transaction};

use crate::connect::ConnectTarget;
use crate::identity::{ClaimSettings, RunAs};
use crate::options::PostgresOptions;
use crate::pool::{Lease, Pool};
use crate::session::{ROLLBACK, TransactionIdentity};
use table::TargetTable;
use write::{TablePlan, Write};

/// How long closing waits for writes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The default of [`PostgresIngestOptions::writes_max`].
const WRITES_MAX: usize = 4;

/// The tables of a PostgreSQL database that take rows.
#[derive(Debug, Clone, PartialEq)]
pub struct PostgresIngestOptions {
    /// The tables, with those of rejected rows. A name has its schema unless the search path has it.
    pub tables: Vec<DeclaredTable>,
    /// The maximum number of writes at once, each with its own connection. Further writes wait for as long as
    /// [`PostgresOptions::acquire_timeout`].
    pub writes_max: usize,
}

impl Default for PostgresIngestOptions {
    fn default() -> Self {
        Self { tables: Vec::new(), writes_max: WRITES_MAX }
    }
}

/// Tables of a PostgreSQL database that take rows. It connects on demand.
pub struct PostgresIngest {
    database: Arc<str>,
    pool: Pool,
    tables: DeclaredTables,
    schemas: Option<Vec<String>>,
}

tidegate_core::impl_debug!(PostgresIngest { database, tables });

impl PostgresIngest {
    /// The tables of `ingest` in the database `name` at `target`; opens no connection. Of `options`, the limits and times
    /// of connections apply, and the schemas.
    ///
    /// # Errors
    /// `InvalidArguments` if a table is declared twice; `Internal` if the pool cannot be created.
    pub fn open(
        name: impl Into<String>,
        target: ConnectTarget,
        options: PostgresOptions,
        ingest: PostgresIngestOptions,
    ) -> Result<Self, Error> {
        let database: Arc<str> = name.into().into();
        let target = target.with_message_bytes_max(options.message_bytes_max);
        let tables = DeclaredTables::new(database.clone(), SqlDialect::Postgres, ingest.tables)?;
        let schemas = options.schemas.clone();
        let options = PostgresOptions {
            run_as: RunAs::default(),
            claims: ClaimSettings::default(),
            connections_max: ingest.writes_max,
            ..options
        };
        let pool = Pool::new(database.clone(), target, Arc::new(options))?;
        Ok(Self { database, pool, tables, schemas })
    }

    /// Ends running writes, whose rows are not stored, and closes the connections.
    pub async fn close(&self) {
        self.pool.close(CLOSE_TIMEOUT).await;
    }

    /// The number of connections that writes hold now.
    pub fn connections_in_use(&self) -> usize {
        self.pool.connections_in_use()
    }

    async fn begin_transaction(&self, writes: bool) -> Result<Lease, Error> {
        let mut lease = self.pool.acquire().await?;
        let transaction = Transaction { writes, ..Transaction::default() };
        lease.begin(&transaction, &TransactionIdentity::default()).await?;
        Ok(lease)
    }

    async fn look_up(&self, lease: &mut Lease, name: &str, mode: WriteMode) -> Result<TargetTable, Error> {
        let connection = lease.connection()?;
        let found = TargetTable::look_up(connection.client(), name, self.schemas.as_ref(), mode);
        lease.run(found).await.map_err(|error| error.into_error(name, &self.database))
    }

    /// Prepares the tables of `request` in the transaction of `lease`, and deletes the rows that it replaces.
    async fn prepare(&self, lease: &mut Lease, request: &WriteRequest) -> Result<Vec<TablePlan>, Error> {
        let mut plans = Vec::with_capacity(request.tables.len());
        for (position, write) in request.tables.iter().enumerate() {
            let mode = if position == 0 { request.mode } else { WriteMode::Append };
            let declared = self.tables.find(&write.table)?;
            let table = self.look_up(lease, &declared.name, mode).await?;
            let plan = TablePlan::new(&declared.name, table, &write.schema)?;
            if mode == WriteMode::Replace {
                let connection = lease.connection()?;
                let sql = format!("DELETE FROM {}", plan.table.sql_name);
                let deleted = lease.run(connection.client().batch_execute(&sql)).await;
                deleted.map_err(|error| write::write_error(&error, &self.database, &plan.table, None))?;
            }
            plans.push(plan);
        }
        Ok(plans)
    }
}

#[async_trait]
impl IngestTarget for PostgresIngest {
    fn database(&self) -> &str {
        &self.database
    }

    fn tables(&self) -> Vec<String> {
        self.tables.names()
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        let declared = self.tables.find(table)?;
        let mut lease = self.begin_transaction(false).await?;
        let target = self.look_up(&mut lease, &declared.name, WriteMode::Append).await?;
        // If this fails, the lease discards the connection.
        let _ = lease.end(ROLLBACK).await;
        Ok(IngestTable {
            name: declared.name.clone(),
            schema: Some(body_schema(&target)),
            adds_columns: false,
            stamps: declared.stamps.clone(),
        })
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        for write in &request.tables {
            self.tables.find(&write.table)?;
        }
        if request.key.is_some() {
            write::ensure_table(&self.pool, &self.database).await?;
        }
        let mut lease = self.begin_transaction(true).await?;
        let connection = lease.connection()?;
        let settings = write::transaction_settings(connection.server_version());
        let set = lease.run(connection.client().batch_execute(&settings)).await;
        set.map_err(|error| crate::error::internal_statement_error(&error, &self.database))?;
        let key = request.key.as_deref().map(write::StoredKey::new);
        if let Some(key) = &key
            && let Some(receipt) = key.begin(&mut lease, &self.database).await?
        {
            let _ = lease.end(ROLLBACK).await;
            return Ok(WriteStart::Repeated(receipt));
        }
        let plans = self.prepare(&mut lease, &request).await?;
        let write = Write::new(self.database.clone(), lease, plans, key)?;
        Ok(WriteStart::Writer(write::spawn(write, &self.pool)))
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        self.tables.refuse_drop(table)
    }
}

fn body_schema(table: &TargetTable) -> SchemaRef {
    Arc::new(Schema::new(table.columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()))
}
