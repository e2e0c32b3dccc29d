//! Errors of a write. The message names constraint, columns and row, and quotes no row that is in the table.

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::error::DbError;

use super::table::TargetTable;
use crate::error::statement_error;

/// The error of copying rows into `table`; `rows_before` rows were copied by earlier commands of the write.
pub(super) fn write_error(
    error: &tokio_postgres::Error,
    database: &str,
    table: &TargetTable,
    rows_before: u64,
) -> Error {
    let mapped = statement_error(error, database, "");
    let Some(server) = error.as_db_error().filter(|_| mapped.kind() == ErrorKind::InvalidArguments) else {
        return mapped;
    };
    let row = row_of(server).map(|row| format!("row {}: ", rows_before.saturating_add(row))).unwrap_or_default();
    let columns = match columns_of(server, table) {
        columns if columns.is_empty() => String::new(),
        columns => format!(" (column {})", columns.join(", ")),
    };
    let described = Error::new(mapped.kind(), format!("{row}{}{columns}", server.message()));
    match server.hint() {
        Some(hint) => described.with_hint(hint),
        None => described,
    }
    .with_detail(mapped.detail().unwrap_or_default())
}

/// The error of the commit: deferred constraints are checked there.
pub(super) fn commit_error(error: &tokio_postgres::Error, database: &str, table: Option<&TargetTable>) -> Error {
    if error.as_db_error().is_some() {
        return match table {
            Some(table) => write_error(error, database, table, 0),
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
pub(super) fn key_in_use_error() -> Error {
    Error::new(ErrorKind::Failed, "a write with the same key is running")
        .with_hint("Wait for its end, then send the rows again with the same key.")
}

/// The row of the command, from 1. Only the context has it: `COPY events, line 3, column id: "7"`.
fn row_of(error: &DbError) -> Option<u64> {
    let (_, rest) = error.where_().filter(|context| context.starts_with("COPY "))?.split_once(", line ")?;
    rest.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// The columns of the constraint. Keys are in the detail, in front of their values: `Key (a, b)=(1, 2) already exists.`
fn columns_of(error: &DbError, table: &TargetTable) -> Vec<String> {
    let is_named = |(name, _): &&(String, Vec<String>)| Some(name.as_str()) == error.constraint();
    if let Some((_, columns)) = table.constraints.iter().find(is_named) {
        return columns.clone();
    }
    let of_key = error.detail().and_then(|detail| detail.strip_prefix("Key (")?.split_once(")=("));
    of_key.map(|(columns, _)| vec![columns.to_owned()]).unwrap_or_default()
}
