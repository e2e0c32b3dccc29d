//! Whether columns fit a table, and batches as the table has them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use tidegate_core::{Error, Violation};

use super::options::{SchemaEvolution, TableDeclaration};
use crate::delta::PartitionBy;

/// Columns of a table.
const COLUMNS_MAX: usize = 10_000;

/// The columns of the table after a write with the columns `incoming`.
///
/// # Errors
/// `InvalidArguments` with one violation for each column that does not fit.
pub(crate) fn merge_columns(
    table: &str,
    current: &SchemaRef,
    incoming: &Schema,
    evolve: SchemaEvolution,
) -> Result<SchemaRef, Error> {
    let mut violations = Vec::new();
    let mut added: Vec<FieldRef> = Vec::new();
    for field in incoming.fields() {
        let name = field.name();
        match current.column_with_name(name) {
            Some((_, known)) if known.data_type() == field.data_type() => {}
            Some((_, known)) => {
                let (expected, received) = (known.data_type(), field.data_type());
                violations.push(violation(name, format!("has type {received}; the table has type {expected}")));
            }
            None if evolve == SchemaEvolution::AddColumns => {
                added.push(Arc::new(field.as_ref().clone().with_nullable(true)));
            }
            None => {
                let message = "is not a column of the table, which adds no columns (\"evolve\" is \"strict\")";
                violations.push(violation(name, message.to_owned()));
            }
        }
    }
    for field in current.fields().iter().filter(|field| !field.is_nullable()) {
        if incoming.column_with_name(field.name()).is_none() {
            violations
                .push(violation(field.name(), format!("is missing; the table requires it ({})", field.data_type())));
        }
    }
    violations.extend(duplicates(incoming));
    if current.fields().len() + added.len() > COLUMNS_MAX {
        violations.push(violation("", format!("a table may have {COLUMNS_MAX} columns")));
    }
    if !violations.is_empty() {
        let message = format!("the columns do not fit table \"{table}\"");
        return Err(Error::invalid_arguments(message, violations));
    }
    if added.is_empty() {
        return Ok(current.clone());
    }
    let fields: Vec<FieldRef> = current.fields().iter().cloned().chain(added).collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, current.metadata().clone())))
}

/// Checks the columns of a table that does not exist.
pub(crate) fn check_new_columns(table: &str, columns: &Schema) -> Result<(), Error> {
    let mut violations: Vec<_> = duplicates(columns).collect();
    if columns.fields().is_empty() {
        violations.push(violation("", "a table needs a column".to_owned()));
    }
    if columns.fields().len() > COLUMNS_MAX {
        violations.push(violation("", format!("a table may have {COLUMNS_MAX} columns")));
    }
    if violations.is_empty() {
        return Ok(());
    }
    Err(Error::invalid_arguments(format!("the columns of table \"{table}\" are not valid"), violations))
}

/// Columns whose names differ at most in case: Delta tables compare names without case.
fn duplicates(columns: &Schema) -> impl Iterator<Item = Violation> + '_ {
    let mut names = HashSet::new();
    let repeated = columns.fields().iter().filter(move |field| !names.insert(field.name().to_lowercase()));
    repeated
        .map(|field| violation(field.name(), "occurs twice, or differs from another column only in case".to_owned()))
}

/// `rows` with exactly the columns `schema`, in this order. Absent columns become null.
///
/// # Errors
/// `InvalidArguments` when a column is unknown, has another type, or has a null that the table does not take.
pub(crate) fn conform(table: &str, rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    if rows.schema_ref() == schema {
        return Ok(rows.clone());
    }
    merge_columns(table, schema, rows.schema_ref(), SchemaEvolution::Strict)?;
    let nulls = schema
        .fields()
        .iter()
        .filter(|field| !field.is_nullable())
        .filter(|field| rows.column_by_name(field.name()).is_some_and(|column| column.logical_null_count() > 0));
    let violations: Vec<_> =
        nulls.map(|field| violation(field.name(), "has a null; it takes none".to_owned())).collect();
    if !violations.is_empty() {
        return Err(Error::invalid_arguments(format!("the rows do not fit table \"{table}\""), violations));
    }
    pad(rows, schema).map_err(|error| {
        Error::invalid_arguments(
            format!("the rows do not fit table \"{table}\""),
            vec![violation("", error.to_string())],
        )
    })
}

/// `rows` with the types of the columns of `schema` that have the same name, where no value changes: a transform computes
/// its own types. Other columns stay as they are.
///
/// # Errors
/// `InvalidArguments` when a value has no equal one in the type of the table.
pub(crate) fn convert_exactly(table: &str, rows: &RecordBatch, schema: &Schema) -> Result<RecordBatch, Error> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let mut violations = Vec::new();
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let table_type = schema.field_with_name(field.name()).map(|known| known.data_type());
        let Some(table_type) = table_type.ok().filter(|table_type| *table_type != field.data_type()) else {
            fields.push(field.clone());
            columns.push(column.clone());
            continue;
        };
        let converted = cast_with_options(column, table_type, &options);
        let is_same = |converted: &ArrayRef| {
            cast_with_options(converted, field.data_type(), &options)
                .is_ok_and(|again| again.as_ref() == column.as_ref())
        };
        match converted {
            Ok(converted) if is_same(&converted) => {
                fields.push(Arc::new(field.as_ref().clone().with_data_type(table_type.clone())));
                columns.push(converted);
            }
            _ => {
                let from = field.data_type();
                let message = format!("the transform computes {from}, and some values have no equal {table_type}");
                violations.push(violation(field.name(), message));
            }
        }
    }
    if !violations.is_empty() {
        return Err(Error::invalid_arguments(format!("the rows do not fit table \"{table}\""), violations));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| Error::internal(error.to_string()))
}

/// `rows` with the columns `schema`, where columns that are absent become null.
pub(crate) fn pad(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if rows.schema_ref() == schema {
        return Ok(rows.clone());
    }
    let column = |field: &FieldRef| -> ArrayRef {
        match rows.column_by_name(field.name()) {
            Some(column) => column.clone(),
            None => new_null_array(field.data_type(), rows.num_rows()),
        }
    };
    let columns = schema.fields().iter().map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

/// The columns of `first`, and those of `second` that it lacks as nullable ones. The types of common columns are equal,
/// as every write was checked.
pub(crate) fn union(first: &SchemaRef, second: &SchemaRef) -> SchemaRef {
    let is_new = |field: &&FieldRef| first.column_with_name(field.name()).is_none();
    let added: Vec<FieldRef> = second.fields().iter().filter(is_new).cloned().collect();
    if added.is_empty() {
        return first.clone();
    }
    let added = added.into_iter().map(|field| Arc::new(Field::clone(&field).with_nullable(true)) as FieldRef);
    let fields: Vec<FieldRef> = first.fields().iter().cloned().chain(added).collect();
    Arc::new(Schema::new_with_metadata(fields, first.metadata().clone()))
}

/// Whether some values of these columns have no form in a data file, such as a time beyond all dates of partitions. Such
/// rows are written to data files at once, so that none is acknowledged that could never be moved.
pub(crate) fn may_not_be_storable(schema: &Schema, declaration: &TableDeclaration) -> bool {
    let has_wide_days = declaration.partition_by.iter().any(|partition| match partition {
        PartitionBy::Day(column) | PartitionBy::Month(column) | PartitionBy::Hour(column) => {
            let field = schema.column_with_name(column).map(|(_, field)| field.data_type());
            !matches!(field, Some(DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)))
        }
        PartitionBy::Column(_) => false,
    });
    has_wide_days || schema.fields().iter().any(|field| has_wide_decimal(field.data_type()))
}

fn has_wide_decimal(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal256(_, _) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_wide_decimal(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_wide_decimal(field.data_type())),
        _ => false,
    }
}

fn violation(column: &str, message: String) -> Violation {
    Violation { path: column.to_owned(), message }
}
