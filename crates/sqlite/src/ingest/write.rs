//! A write: the rows of its tables, in one transaction of a connection.

use std::fmt::Write as _;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use rusqlite::Connection;
use rusqlite::types::ToSqlOutput;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{TargetColumn, WriteMode, WritePlan, WriteReceipt, WriteRequest};

use super::column::ValueForm;
use super::keys;
use super::session::write_error;
use super::table::TargetTable;
use super::values::{ColumnValues, is_fitting};
use super::writer::WriteContext;
use crate::tables::quote_identifier;

/// A table of a write, and how the columns of its batches are stored.
struct TablePlan {
    table: TargetTable,
    plan: WritePlan,
    rows: u64,
}

impl TablePlan {
    fn new(name: &str, table: TargetTable, schema: &Schema) -> Result<Self, Error> {
        let fits = |data_type: &DataType, column: &TargetColumn<ValueForm>| is_fitting(data_type, column.form);
        let plan = WritePlan::new(name, &table.columns, schema, fits)?;
        Ok(Self { table, plan, rows: 0 })
    }

    /// The columns of `batch` that are stored, with their names.
    fn stored_columns(&mut self, batch: &RecordBatch) -> Result<Vec<(String, ColumnValues)>, Error> {
        let stored = self.plan.stored_columns(batch)?;
        let values = stored.into_iter().filter_map(|stored| {
            let column = self.table.columns.get(stored.target)?;
            let values = ColumnValues::new(batch.columns().get(stored.position)?, column.form);
            Some(values.map(|values| (column.field.name().clone(), values)))
        });
        values.collect()
    }
}

/// How a write begins.
pub(super) enum Beginning<'a> {
    Write(Write<'a>),
    Repeated(WriteReceipt),
}

/// A write in its open transaction. If it is not committed, closing the connection rolls back.
pub(super) struct Write<'a> {
    connection: &'a Connection,
    context: &'a WriteContext,
    plans: Vec<TablePlan>,
    key: Option<String>,
}

impl<'a> Write<'a> {
    /// Begins `request`, whose tables are in the file of `connection`.
    pub(super) fn begin(
        connection: &'a Connection,
        context: &'a WriteContext,
        request: &WriteRequest,
    ) -> Result<Beginning<'a>, Error> {
        let database = &context.database;
        let failed = |error| write_error(error, database);
        connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        if let Some(key) = &request.key
            && let Some(receipt) = keys::find(connection, key, context.now(), database)?
        {
            return Ok(Beginning::Repeated(receipt));
        }
        let mut plans = Vec::with_capacity(request.tables.len());
        for (position, write) in request.tables.iter().enumerate() {
            let (_, name) = context.locate(&write.table)?;
            let table = TargetTable::look_up(connection, &write.table, &name, database)?;
            let plan = TablePlan::new(&write.table, table, &write.schema)?;
            if position == 0 && request.mode == WriteMode::Replace {
                connection.execute(&format!("DELETE FROM {}", plan.table.sql_name), []).map_err(failed)?;
            }
            plans.push(plan);
        }
        Ok(Beginning::Write(Self { connection, context, plans, key: request.key.clone() }))
    }

    /// Inserts the rows of `batch` into the table at this position.
    pub(super) fn insert(&mut self, table: usize, batch: &RecordBatch) -> Result<(), Error> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let database = &self.context.database;
        let plan = self.plans.get_mut(table).ok_or_else(|| Error::internal("the write has no such table"))?;
        let columns = plan.stored_columns(batch)?;
        let sql = insert_sql(&plan.table.sql_name, columns.iter().map(|(name, _)| name.as_str()));
        let mut statement = self.connection.prepare(&sql).map_err(|error| write_error(error, database))?;
        let mut scratch = String::new();
        for row in 0..batch.num_rows() {
            // The table of rejected rows has rows of its own.
            let refused_row = (table == 0).then_some(plan.rows);
            let failed = |error| in_row(write_error(error, database), refused_row);
            for (position, (name, values)) in columns.iter().enumerate() {
                let value = values.value(row, &mut scratch).map_err(|misfit| {
                    let message = format!("{} (column {name})", misfit.0);
                    in_row(Error::new(ErrorKind::InvalidArguments, message), refused_row)
                })?;
                statement.raw_bind_parameter(position + 1, ToSqlOutput::Borrowed(value)).map_err(failed)?;
            }
            if statement.raw_execute().map_err(failed)? != 1 {
                let message = format!("a trigger of {:?} ignored a row, so nothing was stored", plan.plan.table());
                return Err(in_row(Error::new(ErrorKind::InvalidArguments, message), refused_row));
            }
            plan.rows += 1;
        }
        Ok(())
    }

    /// Commits the transaction.
    pub(super) fn commit(self) -> Result<WriteReceipt, Error> {
        let database = &self.context.database;
        let rows = self.plans.iter().map(|plan| plan.rows).collect();
        let receipt = WriteReceipt { sequence: self.context.next_sequence(), rows };
        let stored = match &self.key {
            Some(key) => keys::store(self.connection, key, &receipt, self.context.now()),
            None => Ok(()),
        };
        let committed = stored.and_then(|()| self.connection.execute_batch("COMMIT"));
        committed.map_err(|error| write_error(error, database))?;
        Ok(receipt)
    }
}

/// A conflict is an error, also where a constraint of the table declares to ignore or to replace rows.
fn insert_sql<'a>(table: &str, columns: impl Iterator<Item = &'a str> + Clone) -> String {
    let names: Vec<String> = columns.clone().map(quote_identifier).collect();
    if names.is_empty() {
        return format!("INSERT OR ABORT INTO {table} DEFAULT VALUES");
    }
    let mut sql = format!("INSERT OR ABORT INTO {table} ({}) VALUES (?1", names.join(", "));
    for number in 2..=names.len() {
        // Writing to a String cannot fail.
        let _ = write!(sql, ", ?{number}");
    }
    sql.push(')');
    sql
}

/// The error with its row, if it is about a row.
fn in_row(error: Error, row: Option<u64>) -> Error {
    match (error.kind(), row) {
        (ErrorKind::InvalidArguments | ErrorKind::TooLarge, Some(row)) => error.with_refused_row(row),
        _ => error,
    }
}
