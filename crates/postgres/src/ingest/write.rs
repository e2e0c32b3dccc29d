//! A write: the rows of its tables, in one transaction.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{StoredColumn, WritePlan, WriteReceipt};
use tidegate_sql::SqlDialect;

use super::copy::CopyCommand;
use super::encode::{ColumnValues, is_fitting};
use super::error::{commit_error, write_error};
use super::keys::StoredKey;
use super::table::TargetTable;
use super::writer::ROWS_TIMEOUT;
use crate::connect::OpenConnection;
use crate::error::{internal_statement_error, statement_error};
use crate::pool::{Lease, ROLLBACK_TIMEOUT};
use crate::session::{COMMIT, ROLLBACK};

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
    pub(super) async fn copy(&mut self, table: usize, batch: &RecordBatch) -> Result<(), Error> {
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
