//! A write: the rows of its tables, in one transaction, sent by a task with one `COPY … FROM STDIN BINARY` for each table. The
//! keys of writes are stored, so that a repeated write stores nothing.
//!
//! The message of an error names constraint and columns, and quotes no row that is in the table.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use bytes::Bytes;
use futures::SinkExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{RowWriter, StepWriter, StoredColumn, WritePlan, WriteReceipt, WriteStep, WriteSteps};
use tidegate_sql::{SqlDialect, Transaction};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, CopyInSink};

use super::TargetTable;
use super::encode::{ColumnValues, is_fitting};
use crate::connect::OpenConnection;
use crate::error::{internal_statement_error, statement_error};
use crate::pool::{Lease, Pool, ROLLBACK_TIMEOUT};
use crate::session::{COMMIT, ROLLBACK, TransactionIdentity};

/// How much longer the server waits for the next command than the node.
const SERVER_TIMEOUT_MARGIN: Duration = Duration::from_secs(30);
const SEQUENCE_SQL: &str = "SELECT pg_catalog.txid_current()";
/// From this version on, transactions have a time limit.
const TRANSACTION_TIMEOUT_VERSION: u32 = 170_000;

/// The settings of a transaction with a body of any length.
pub(super) fn transaction_settings(server_version: u32) -> String {
    let idle = (ROWS_TIMEOUT + SERVER_TIMEOUT_MARGIN).as_millis();
    let mut settings =
        format!("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = {idle}");
    if server_version >= TRANSACTION_TIMEOUT_VERSION {
        settings.push_str("; SET LOCAL transaction_timeout = 0");
    }
    settings
}

/// A table of a write, and how the columns of its batches are stored.
#[derive(Debug)]
pub(super) struct TablePlan {
    pub(super) table: TargetTable,
    plan: WritePlan,
    rows: u64,
}

impl TablePlan {
    /// Batches with the columns of `schema` for `table`, which is declared as `name`.
    pub(super) fn new(name: &str, table: TargetTable, schema: &Schema) -> Result<Self, Error> {
        let plan = WritePlan::new(name, &table.columns, schema, |data_type, column| {
            is_fitting(data_type, &column.form, column.field.data_type())
        })?;
        Ok(Self { table, plan, rows: 0 })
    }

    /// The columns of `batch` that are copied.
    fn copied_columns(&mut self, batch: &RecordBatch) -> Result<Vec<StoredColumn>, Error> {
        let copied = self.plan.stored_columns(batch)?;
        if copied.is_empty() {
            let message = format!("the rows for the table {:?} have no value in any column", self.plan.table());
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        Ok(copied)
    }

    /// The quoted names of the columns that are copied.
    fn sql_names(&self, copied: &[StoredColumn]) -> Vec<String> {
        let targets = copied.iter().filter_map(|column| self.table.columns.get(column.target));
        targets.map(|target| SqlDialect::Postgres.quote_identifier(target.field.name())).collect()
    }

    fn values(&self, batch: &RecordBatch, copied: &[StoredColumn]) -> Result<Vec<(&str, ColumnValues)>, Error> {
        let values = copied.iter().filter_map(|stored| {
            let column = self.table.columns.get(stored.target)?;
            let values = ColumnValues::new(batch.columns().get(stored.position)?, &column.form);
            Some(values.map(|values| (column.field.name().as_str(), values)))
        });
        values.collect()
    }
}

/// The command that runs now.
struct RunningCopy {
    table: usize,
    copied: Vec<StoredColumn>,
    command: CopyCommand,
}

/// A write in its open transaction. Dropping it cancels what runs, and rolls back.
pub(super) struct Write {
    database: Arc<str>,
    /// Before the lease, so that the command fails before the connection is discarded.
    running: Option<RunningCopy>,
    connection: Arc<OpenConnection>,
    plans: Vec<TablePlan>,
    key: Option<StoredKey>,
    lease: Lease,
}

impl Write {
    pub(super) fn new(
        database: Arc<str>,
        mut lease: Lease,
        plans: Vec<TablePlan>,
        key: Option<StoredKey>,
    ) -> Result<Self, Error> {
        let connection = lease.connection()?;
        lease.mark_busy();
        Ok(Self { database, running: None, connection, plans, key, lease })
    }

    /// Copies the rows of `batch` into the table at this position.
    async fn copy(&mut self, table: usize, batch: &RecordBatch) -> Result<(), Error> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let plan = self.plans.get_mut(table).ok_or_else(|| Error::internal("the write has no such table"))?;
        let copied = plan.copied_columns(batch)?;
        let is_other =
            |running: &RunningCopy| running.table != table || running.copied != copied || running.command.is_full();
        if self.running.as_ref().is_some_and(is_other) {
            self.finish_command().await?;
        }
        if self.running.is_none() {
            self.start_command(table, copied).await?;
        }
        let (Some(running), Some(plan)) = (&mut self.running, self.plans.get(table)) else { return Ok(()) };
        let values = plan.values(batch, &running.copied)?;
        let command = &mut running.command;
        // A table has at most 1,600 columns.
        let columns = (values.len() as u16).to_be_bytes();
        let rows_before = rows_before(table, plan);
        for row in 0..batch.num_rows() {
            command.buffer.extend_from_slice(&columns);
            for (name, column) in &values {
                column.append(row, &mut command.buffer).map_err(|misfit| {
                    let message = format!("{} (column {name})", misfit.reason);
                    let error = Error::new(ErrorKind::InvalidArguments, message);
                    match rows_before {
                        Some(before) => error.with_refused_row(before + command.rows),
                        None => error,
                    }
                })?;
            }
            command.rows += 1;
            let sent = command.send_if_full().await;
            sent.map_err(|error| write_error(&error, &self.database, &plan.table, rows_before))?;
        }
        Ok(())
    }

    async fn start_command(&mut self, table: usize, copied: Vec<StoredColumn>) -> Result<(), Error> {
        let Some(plan) = self.plans.get(table) else { return Ok(()) };
        let names = plan.sql_names(&copied);
        let started = CopyCommand::start(self.connection.client(), &plan.table.sql_name, &names).await;
        let command = started.map_err(|error| statement_error(&error, &self.database, ""))?;
        self.running = Some(RunningCopy { table, copied, command });
        Ok(())
    }

    async fn finish_command(&mut self) -> Result<(), Error> {
        let Some(RunningCopy { table, command, .. }) = self.running.take() else { return Ok(()) };
        let Some(plan) = self.plans.get_mut(table) else { return Ok(()) };
        let rows = command.rows;
        let stored = command.finish().await;
        let rows_before = rows_before(table, plan);
        let stored = stored.map_err(|error| write_error(&error, &self.database, &plan.table, rows_before))?;
        if stored != rows {
            let message =
                format!("a trigger of {:?} stored {stored} of {rows} rows, so nothing was stored", plan.plan.table());
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        plan.rows += rows;
        Ok(())
    }

    /// Commits the transaction.
    pub(super) async fn commit(&mut self) -> Result<WriteReceipt, Error> {
        self.finish_command().await?;
        let failed = |error: tokio_postgres::Error| internal_statement_error(&error, &self.database);
        let rows = self.connection.client().query_typed(SEQUENCE_SQL, &[]).await.map_err(failed)?;
        let sequence: i64 = match rows.first() {
            Some(row) => row.try_get(0).map_err(failed)?,
            None => return Err(Error::internal("the server has no number of the transaction")),
        };
        let rows = self.plans.iter().map(|plan| plan.rows).collect();
        // Numbers of transactions are positive.
        let receipt = WriteReceipt { sequence: sequence.cast_unsigned(), rows };
        if let Some(key) = &self.key {
            key.store(&mut self.lease, &receipt, &self.database).await?;
        }
        let committed = self.lease.end(COMMIT).await;
        let table = self.plans.first().map(|plan| &plan.table);
        committed.map_err(|error| commit_error(&error, &self.database, table))?;
        Ok(receipt)
    }

    /// Lets the running command fail and rolls back, so that the connection can be used again. If the server does not
    /// answer in time, the lease cancels what runs and discards the connection.
    pub(super) async fn roll_back(mut self) {
        drop(self.running.take());
        let _ = tokio::time::timeout(ROLLBACK_TIMEOUT, self.lease.end(ROLLBACK)).await;
    }
}

/// How many rows of the write were copied by earlier commands. Nothing for the table of rejected rows, which has rows of
/// its own.
fn rows_before(table: usize, plan: &TablePlan) -> Option<u64> {
    (table == 0).then_some(plan.rows)
}

/// How long a write waits for its next rows. It holds locks and a connection.
const ROWS_TIMEOUT: Duration = Duration::from_secs(300);

/// Starts the task of `write`. Dropping the writer ends the task, and rolls back.
pub(super) fn spawn(write: Write, pool: &Pool) -> Box<dyn RowWriter> {
    let (writer, steps, mut finished) = StepWriter::new(ROWS_TIMEOUT, ());
    let background_tasks = pool.background_tasks();
    let closing = background_tasks.closing().clone();
    background_tasks.spawn(async move {
        let mut write = write;
        let outcome = tokio::select! {
            biased;
            () = finished.closed() => Ok(None),
            () = closing.cancelled() => Err(Error::new(ErrorKind::Unavailable, "the database is being closed")),
            outcome = run(&mut write, steps) => outcome.map(Some),
        };
        // The connection returns before the outcome.
        match outcome {
            Ok(Some(_)) => drop(write),
            _ => write.roll_back().await,
        }
        if let Some(outcome) = outcome.transpose() {
            // Nobody waits if the writer was dropped.
            let _ = finished.send(outcome);
        }
    });
    Box::new(writer)
}

/// Writes until the commit.
async fn run(write: &mut Write, mut steps: WriteSteps) -> Result<WriteReceipt, Error> {
    loop {
        match steps.next().await? {
            Some(WriteStep::Rows(table, batch)) => write.copy(table, &batch).await?,
            Some(WriteStep::Commit) => return write.commit().await,
            None => return Err(Error::new(ErrorKind::Cancelled, "the write was abandoned")),
        }
    }
}

/// The signature, the flags and the length of the header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The number of columns of the end.
const TRAILER: &[u8] = &[0xff; 2];
/// The size of the buffer at which it is sent.
const BUFFER_BYTES: usize = 64 * 1024;
/// The size after which a command ends and another one follows. Errors of rows become known then, and the server checks
/// foreign keys, for which it otherwise keeps an entry in memory for each row.
const COMMAND_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A running command. Dropping it lets the command fail.
struct CopyCommand {
    sink: Pin<Box<CopyInSink<Bytes>>>,
    pub(super) buffer: Vec<u8>,
    bytes_sent: usize,
    pub(super) rows: u64,
}

impl CopyCommand {
    /// Begins to copy into `columns` (quoted) of the table `sql_name`.
    pub(super) async fn start(
        client: &Client,
        sql_name: &str,
        columns: &[String],
    ) -> Result<Self, tokio_postgres::Error> {
        let sql = format!("COPY {sql_name} ({}) FROM STDIN BINARY", columns.join(", "));
        let sink = Box::pin(client.copy_in(&sql).await?);
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(HEADER);
        Ok(Self { sink, buffer, bytes_sent: 0, rows: 0 })
    }

    /// Sends the buffer if it is full. Waits until the connection takes it.
    async fn send_if_full(&mut self) -> Result<(), tokio_postgres::Error> {
        if self.buffer.len() >= BUFFER_BYTES { self.send().await } else { Ok(()) }
    }

    async fn send(&mut self) -> Result<(), tokio_postgres::Error> {
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(BUFFER_BYTES));
        self.bytes_sent += bytes.len();
        self.sink.send(bytes.into()).await
    }

    /// Whether the command has received so much that another one should follow.
    fn is_full(&self) -> bool {
        self.bytes_sent >= COMMAND_BYTES_MAX
    }

    /// Ends the command; returns the number of rows that the server stored.
    pub(super) async fn finish(mut self) -> Result<u64, tokio_postgres::Error> {
        self.buffer.extend_from_slice(TRAILER);
        self.send().await?;
        self.sink.as_mut().finish().await
    }
}

/// The error of copying rows into `table`. `rows_before` rows were copied by earlier commands of the write; nothing if they
/// are not the rows that the write is about.
pub(super) fn write_error(
    error: &tokio_postgres::Error,
    database: &str,
    table: &TargetTable,
    rows_before: Option<u64>,
) -> Error {
    let mapped = statement_error(error, database, "");
    let Some(server) = error.as_db_error().filter(|_| mapped.kind() == ErrorKind::InvalidArguments) else {
        return mapped;
    };
    let (row, column) = place_of(server);
    let columns = match columns_of(server, table, column) {
        columns if columns.is_empty() => String::new(),
        columns => format!(" (column {})", columns.join(", ")),
    };
    let described = Error::new(mapped.kind(), format!("{}{columns}", server.message()))
        .with_detail(mapped.detail().unwrap_or_default());
    let described = match server.hint() {
        Some(hint) => described.with_hint(hint),
        None => described,
    };
    // The server counts the rows of the command from 1.
    match rows_before.zip(row) {
        Some((before, row)) => described.with_refused_row(before.saturating_add(row).saturating_sub(1)),
        None => described,
    }
}

/// The error of the commit: deferred constraints are checked there.
fn commit_error(error: &tokio_postgres::Error, database: &str, table: Option<&TargetTable>) -> Error {
    if error.as_db_error().is_some() {
        return match table {
            Some(table) => write_error(error, database, table, None),
            None => statement_error(error, database, ""),
        };
    }
    let message = format!(
        "the connection to the database {database} was lost while the rows were committed; they are stored or not"
    );
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("Send the rows again with the same key, which stores them once; without a key, look for them first.")
        .with_detail(error.to_string())
}

/// A write with the same key is running.
fn key_in_use_error() -> Error {
    Error::new(ErrorKind::Conflict, "a write with the same key is running")
        .with_hint("Wait for its end, then send the rows again with the same key.")
}

/// The row of the command, from 1, and its column. Only the context has them: `COPY events, line 3, column id`.
fn place_of(error: &DbError) -> (Option<u64>, Option<String>) {
    let context = error.where_().unwrap_or_default().lines().find(|line| line.starts_with("COPY "));
    let Some((_, rest)) = context.and_then(|context| context.split_once(", line ")) else { return (None, None) };
    let row = rest.split(|character: char| !character.is_ascii_digit()).next().and_then(|row| row.parse().ok());
    let column = rest.split_once(", column ").map(|(_, column)| column.to_owned());
    (row, column)
}

/// The columns of the constraint. Keys are in the detail, in front of their values: `Key (a, b)=(1, 2) already exists.`
fn columns_of(error: &DbError, table: &TargetTable, column: Option<String>) -> Vec<String> {
    let is_named = |(name, _): &&(String, Vec<String>)| Some(name.as_str()) == error.constraint();
    if let Some((_, columns)) = table.constraints.iter().find(is_named) {
        return columns.clone();
    }
    let of_key = error.detail().and_then(|detail| detail.strip_prefix("Key (")?.split_once(")=("));
    of_key.map(|(columns, _)| columns.to_owned()).or(column).into_iter().collect()
}

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
