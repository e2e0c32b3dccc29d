//! The activity of a PostgreSQL database as live tables: sessions, statements, locks, sizes and the use of indexes.
//!
//! They are read with statements of the owner that run as the role of the caller, so that PostgreSQL decides what the
//! role may see. The text of statements is sensitive. Columns that are not needed are not computed.

mod queries;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind, Principal, PrincipalRule};
use tidegate_query::Database;
use tidegate_sql::Statement;
use tidegate_system::{
    MASK, ReadOptions, ReadSummary, SystemColumn, SystemColumnType, SystemTableDescription, SystemValue,
};

use self::queries::{ActivityQuery, QUERIES};
use super::live_table::{LiveTable, ReadContext, RowCallback};

/// The extension without which statements are not recorded.
const STATEMENTS_EXTENSION: &str = "pg_stat_statements";

/// A table about the activity of a PostgreSQL database.
pub struct PostgresTable {
    database: Arc<dyn Database>,
    /// Who may query the database.
    admits: PrincipalRule,
    description: SystemTableDescription,
    query: &'static ActivityQuery,
}

impl PostgresTable {
    /// The tables about `database`, named after it, for principals that `admits` allows.
    pub fn all(database: &Arc<dyn Database>, admits: &PrincipalRule) -> Vec<Arc<dyn LiveTable>> {
        let table = |query: &'static ActivityQuery| Self {
            description: query.description(database.name()),
            database: database.clone(),
            admits: admits.clone(),
            query,
        };
        QUERIES.iter().map(|query| Arc::new(table(query)) as Arc<dyn LiveTable>).collect()
    }

    async fn read_rows(
        &self,
        context: &ReadContext,
        options: &ReadOptions,
        on_row: RowCallback<'_>,
    ) -> Result<ReadSummary, Error> {
        let cells: Vec<Cell> = self.description.columns.iter().map(|column| Cell::of_column(column, options)).collect();
        let sql = self.query.sql(|position| matches!(cells.get(position), Some(Cell::Read(_))), options.rows_max);
        let statement = Statement::from_owner(sql, Vec::new(), self.database.dialect());
        let plan = self.database.plan(&statement, &context.principal).await.map_err(|error| self.explain(error))?;
        let mut batches = plan.run(&context.job).await.map_err(|error| self.explain(error))?.batches;
        let mut summary = ReadSummary { rows: 0, is_truncated: false };
        while let Some(batch) = batches.next().await {
            let columns = convert_columns(&batch.map_err(|error| self.explain(error))?, &cells)?;
            let rows = columns.first().map_or(0, Vec::len);
            let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
            for _ in 0..rows {
                if summary.rows >= options.rows_max {
                    summary.is_truncated = true;
                    return Ok(summary);
                }
                let row = columns.iter_mut().map(|values| values.next().unwrap_or(SystemValue::Null)).collect();
                summary.rows += 1;
                if on_row(row) == ControlFlow::Break(()) {
                    return Ok(summary);
                }
            }
        }
        Ok(summary)
    }

    /// `error` of the statement, with the extension if that is missing.
    fn explain(&self, error: Error) -> Error {
        let is_about_extension = |text: &str| text.contains(STATEMENTS_EXTENSION);
        let mentions = is_about_extension(error.message()) || error.detail().is_some_and(is_about_extension);
        if !self.query.needs_extension || !mentions {
            return error;
        }
        let database = self.database.name();
        let message =
            format!("the database {database:?} has no extension {STATEMENTS_EXTENSION} that its role may read");
        Error::new(ErrorKind::Unavailable, message).with_hint(format!(
            "Add {STATEMENTS_EXTENSION} to shared_preload_libraries, restart PostgreSQL, and run CREATE EXTENSION \
             {STATEMENTS_EXTENSION}."
        ))
    }
}

impl LiveTable for PostgresTable {
    fn description(&self) -> &SystemTableDescription {
        &self.description
    }

    fn is_visible_to(&self, principal: &Principal) -> bool {
        self.admits.allows_principal(principal)
    }

    fn read(
        &self,
        context: &ReadContext,
        options: &ReadOptions,
        on_row: RowCallback<'_>,
    ) -> Result<ReadSummary, Error> {
        context.runtime.block_on(self.read_rows(context, options, on_row))
    }
}

/// How the value of a column is produced.
#[derive(Clone, Copy)]
enum Cell {
    Masked,
    NotNeeded,
    Read(SystemColumnType),
}

impl Cell {
    fn of_column(column: &SystemColumn, options: &ReadOptions) -> Self {
        let is_needed = options.columns.as_ref().is_none_or(|names| names.iter().any(|name| *name == column.name));
        match is_needed {
            false => Self::NotNeeded,
            true if column.is_sensitive && !options.grants_sensitive => Self::Masked,
            true => Self::Read(column.column_type),
        }
    }
}

/// The columns of the table from the columns of the answer, which has one for each cell.
fn convert_columns(batch: &RecordBatch, cells: &[Cell]) -> Result<Vec<Vec<SystemValue>>, Error> {
    let column = |(cell, values): (&Cell, &Arc<dyn Array>)| match cell {
        Cell::Masked => Ok(vec![SystemValue::from(MASK); values.len()]),
        Cell::NotNeeded => Ok(vec![SystemValue::Null; values.len()]),
        Cell::Read(column_type) => convert_values(values, *column_type),
    };
    cells.iter().zip(batch.columns()).map(column).collect()
}

fn convert_values(values: &Arc<dyn Array>, column_type: SystemColumnType) -> Result<Vec<SystemValue>, Error> {
    let internal = |error: arrow::error::ArrowError| Error::internal(error.to_string());
    let cast_to = |data_type: &DataType| cast(values, data_type).map_err(internal);
    fn with_null<T: Into<SystemValue>>(value: Option<T>) -> SystemValue {
        value.map_or(SystemValue::Null, Into::into)
    }
    Ok(match column_type {
        SystemColumnType::Text => cast_to(&DataType::Utf8)?.as_string::<i32>().iter().map(with_null).collect(),
        SystemColumnType::Integer => {
            cast_to(&DataType::Int64)?.as_primitive::<Int64Type>().iter().map(with_null).collect()
        }
        SystemColumnType::Unsigned => {
            let numbers = cast_to(&DataType::Int64)?;
            let unsigned = |number: Option<i64>| with_null(number.and_then(|number| u64::try_from(number).ok()));
            numbers.as_primitive::<Int64Type>().iter().map(unsigned).collect()
        }
        SystemColumnType::Float | SystemColumnType::Duration => {
            cast_to(&DataType::Float64)?.as_primitive::<Float64Type>().iter().map(with_null).collect()
        }
        SystemColumnType::Boolean => cast_to(&DataType::Boolean)?.as_boolean().iter().map(with_null).collect(),
        SystemColumnType::Timestamp => {
            let times = cast_to(&DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))?;
            let time = |time: Option<i64>| time.map_or(SystemValue::Null, SystemValue::Timestamp);
            times.as_primitive::<TimestampMicrosecondType>().iter().map(time).collect()
        }
    })
}
