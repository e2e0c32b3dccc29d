//! Errors of a write. The message names constraint and columns, and quotes no row that is in the table.

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::error::DbError;

use super::table::TargetTable;
use crate::error::statement_error;

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
pub(super) fn commit_error(error: &tokio_postgres::Error, database: &str, table: Option<&TargetTable>) -> Error {
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
pub(super) fn key_in_use_error() -> Error {
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
