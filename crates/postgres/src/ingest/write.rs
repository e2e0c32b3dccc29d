//! A write: the rows of its tables, in one transaction.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use tidegate_core::{Error, ErrorKind, Violation};
use tidegate_query::WriteReceipt;
use tidegate_sql::SqlDialect;

use super::column::TargetColumn;
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
    name: String,
    pub(super) table: TargetTable,
    columns: Vec<PlannedColumn>,
    rows: u64,
}

/// A column of the batches.
#[derive(Debug)]
struct PlannedColumn {
    /// The position in [`TargetTable::columns`].
    target: usize,
    sql_name: String,
    presence: Presence,
}

/// Whether a column is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Copied,
    /// The first rows decide.
    Undecided,
    /// Its default applies.
    Defaulted,
    /// Its default applies where a batch has only nulls, which it does not take.
    ByBatch,
}

impl TablePlan {
    /// Batches with the columns of `schema` for `table`, which is declared as `name`.
    pub(super) fn new(name: &str, table: TargetTable, schema: &Schema) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let mut problem = |message: String| problems.push(Violation { path: field.name().clone(), message });
            let Some(target) = table.columns.iter().position(|column| column.field.name() == field.name()) else {
                problem("the table has no such column that takes values".to_owned());
                continue;
            };
            let Some(column) = table.columns.get(target) else { continue };
            let expected = column.field.data_type();
            if columns.iter().any(|planned: &PlannedColumn| planned.target == target) {
                problem("the rows have the column twice".to_owned());
            } else if !is_fitting(field.data_type(), &column.form, expected) {
                problem(format!("the rows have {}, and the column takes {expected}", field.data_type()));
            }
            let sql_name = SqlDialect::Postgres.quote_identifier(field.name());
            columns.push(PlannedColumn { target, sql_name, presence: presence_of(column) });
        }
        for (position, column) in table.columns.iter().enumerate() {
            if !column.field.is_nullable() && !columns.iter().any(|planned| planned.target == position) {
                let message = "each row needs a value, and the rows have no such column".to_owned();
                problems.push(Violation { path: column.field.name().clone(), message });
            }
        }
        if problems.is_empty() {
            return Ok(Self { name: name.to_owned(), table, columns, rows: 0 });
        }
        Err(Error::invalid_arguments(format!("the columns do not fit the table {name:?}"), problems))
    }

    /// The positions of the columns of `batch` that are copied.
    fn copied_columns(&mut self, batch: &RecordBatch) -> Result<Vec<usize>, Error> {
        if batch.num_columns() != self.columns.len() {
            let (count, planned) = (batch.num_columns(), self.columns.len());
            return Err(Error::internal(format!("a batch has {count} columns, not {planned}")));
        }
        let mut copied = Vec::with_capacity(self.columns.len());
        for (position, (column, array)) in self.columns.iter_mut().zip(batch.columns()).enumerate() {
            let is_empty = array.logical_null_count() == array.len();
            if column.presence == Presence::Undecided {
                column.presence = if is_empty { Presence::Defaulted } else { Presence::Copied };
            }
            match column.presence {
                Presence::Defaulted if !is_empty => {
                    let message = format!(
                        "the column {} of {:?} has a default, which applies to the rows before; later rows have values",
                        column.sql_name, self.name
                    );
                    return Err(Error::new(ErrorKind::InvalidArguments, message)
                        .with_hint("Send the column in all rows, or in none."));
                }
                Presence::Defaulted => {}
                Presence::ByBatch if is_empty => {}
                Presence::Copied | Presence::ByBatch | Presence::Undecided => copied.push(position),
            }
        }
        if copied.is_empty() {
            let message = format!("the rows for the table {:?} have no value in any column", self.name);
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        Ok(copied)
    }

    fn values(&self, batch: &RecordBatch, copied: &[usize]) -> Result<Vec<(&str, ColumnValues)>, Error> {
        let values = copied.iter().filter_map(|position| {
            let column = self.table.columns.get(self.columns.get(*position)?.target)?;
            let values = ColumnValues::new(batch.columns().get(*position)?, &column.form);
            Some(values.map(|values| (column.field.name().as_str(), values)))
        });
        values.collect()
    }
}

fn presence_of(column: &TargetColumn) -> Presence {
    match (column.has_default, column.takes_nulls) {
        (false, _) => Presence::Copied,
        (true, true) => Presence::Undecided,
        (true, false) => Presence::ByBatch,
    }
}

/// The command that runs now.
struct RunningCopy {
    table: usize,
    copied: Vec<usize>,
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
        for row in 0..batch.num_rows() {
            command.buffer.extend_from_slice(&columns);
            for (name, column) in &values {
                column.append(row, &mut command.buffer).map_err(|misfit| {
                    let row = plan.rows + command.rows + 1;
                    let message = format!("row {row}: {} (column {name})", misfit.reason);
                    Error::new(ErrorKind::InvalidArguments, message)
                })?;
            }
            command.rows += 1;
            let sent = command.send_if_full().await;
            sent.map_err(|error| write_error(&error, &self.database, &plan.table, plan.rows))?;
        }
        Ok(())
    }

    async fn start_command(&mut self, table: usize, copied: Vec<usize>) -> Result<(), Error> {
        let Some(plan) = self.plans.get(table) else { return Ok(()) };
        let names = copied.iter().filter_map(|position| plan.columns.get(*position));
        let names: Vec<String> = names.map(|column| column.sql_name.clone()).collect();
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
        let stored = stored.map_err(|error| write_error(&error, &self.database, &plan.table, plan.rows))?;
        if stored != rows {
            let message =
                format!("a trigger of the table {:?} stored {stored} of {rows} rows, so nothing was stored", plan.name);
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
