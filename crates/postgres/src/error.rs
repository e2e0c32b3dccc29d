//! What the server says, as an error for the reader.
//!
//! The primary message and the hint go to the caller, whose own SQL they are about. Detail and context stay in the log:
//! they may quote rows.

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::error::{DbError, ErrorPosition, SqlState};

/// The error of a statement that was sent for a caller. `text` is the statement, which places are told in.
pub(crate) fn of_statement(error: &tokio_postgres::Error, database: &str, text: &str) -> Error {
    match error.as_db_error() {
        Some(said) => of_server(said, database, text),
        None if error.is_closed() => lost(database, error),
        None => of_driver(error, database),
    }
}

/// The error of a statement of ours.
pub(crate) fn of_own(error: &tokio_postgres::Error, database: &str) -> Error {
    match error.as_db_error() {
        Some(said) if kind_of(said.code()) == ErrorKind::Unavailable => of_server(said, database, ""),
        Some(said) => Error::internal(format!("database {database}: {said}")),
        None => lost(database, error),
    }
}

/// The error of beginning a transaction as `role`: it is the configuration that names one which cannot be taken.
pub(crate) fn of_role(error: &tokio_postgres::Error, database: &str, role: &str) -> Error {
    match error.as_db_error() {
        Some(said) if kind_of(said.code()) != ErrorKind::Unavailable => {
            Error::internal(format!("database {database}: the role {role} cannot be taken: {}", said.message()))
        }
        _ => of_own(error, database),
    }
}

/// Whether the server asks to try again: another transaction came in between.
pub(crate) fn is_retryable(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED)
}

/// Whether the columns of a prepared statement are other ones now.
pub(crate) fn has_changed(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|said| {
        *said.code() == SqlState::FEATURE_NOT_SUPPORTED && said.routine() == Some("RevalidateCachedQuery")
    })
}

/// Whether the server does not know a prepared statement by its name, or knows another one by it.
pub(crate) fn is_misnamed(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| *code == SqlState::INVALID_SQL_STATEMENT_NAME || *code == SqlState::DUPLICATE_PSTATEMENT)
}

/// Whether a prepared statement no longer fits its tables.
pub(crate) fn is_outdated(error: &tokio_postgres::Error) -> bool {
    has_changed(error)
        || is_misnamed(error)
        || error.code().is_some_and(|code| {
            // What it names is gone, or is of a type that does not fit. Preparing it anew says what, and where in the
            // caller's own words, or finds other types for its parameters.
            code.code() == "3F000" || code.code().starts_with("42") && *code != SqlState::INSUFFICIENT_PRIVILEGE
        })
}

fn lost(database: &str, error: &tokio_postgres::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the connection to the database {database} was lost; try again"))
        .with_detail(error.to_string())
}

/// What the driver refused before the server saw it: a parameter that does not fit.
fn of_driver(error: &tokio_postgres::Error, database: &str) -> Error {
    let source = std::error::Error::source(error).map(ToString::to_string);
    let text = error.to_string();
    if text.starts_with("error serializing parameter") {
        let reason = source.unwrap_or_default();
        return Error::new(ErrorKind::InvalidArguments, format!("a parameter does not fit: {reason}"));
    }
    lost(database, error).with_detail(format!("{text}: {}", source.unwrap_or_default()))
}

fn of_server(said: &DbError, database: &str, text: &str) -> Error {
    let kind = kind_of(said.code());
    let detail = format!("database {database}: {} {said:?}", said.code().code());
    let message = match kind {
        ErrorKind::Unavailable => format!("the database {database} cannot answer now: {}", trouble(said)),
        ErrorKind::Cancelled => "the query was cancelled".to_owned(),
        ErrorKind::Forbidden if *said.code() == SqlState::READ_ONLY_SQL_TRANSACTION => {
            format!("only reading is allowed: {}", said.message())
        }
        ErrorKind::Internal => return Error::internal(detail),
        _ => match place(said, text) {
            Some(place) => format!("{} at {place}", said.message()),
            None => said.message().to_owned(),
        },
    };
    let error = Error::new(kind, message).with_detail(detail);
    // What the server says about its own troubles is for whoever runs it.
    let hint = said.hint().filter(|_| kind != ErrorKind::Unavailable).map(str::to_owned);
    match hint.or_else(|| advice(said.code())) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// What keeps the server from answering. Its own words about files name them, which is nothing for a caller.
fn trouble(said: &DbError) -> &str {
    match said.code().code() {
        "53100" => "its disk is full",
        "58000" | "58030" | "58P01" | "58P02" => "it has trouble with its files",
        _ => said.message(),
    }
}

/// Which kind a code of the server is.
///
/// [PostgreSQL, Error Codes](https://www.postgresql.org/docs/current/errcodes-appendix.html)
fn kind_of(code: &SqlState) -> ErrorKind {
    match code.code() {
        "25006" | "42501" => ErrorKind::Forbidden,
        "42P01" | "42P02" => ErrorKind::NotFound,
        "57014" => ErrorKind::Cancelled,
        "25P03" | "25P04" | "57P05" => ErrorKind::TimedOut,
        "54000" | "54001" | "54011" | "54023" | "53200" | "53400" => ErrorKind::TooLarge,
        "55P03" => ErrorKind::Unavailable,
        other => match other.get(..2) {
            Some("08" | "40" | "53" | "57" | "58") => ErrorKind::Unavailable,
            Some("XX" | "F0" | "HV") => ErrorKind::Internal,
            _ => ErrorKind::InvalidArguments,
        },
    }
}

fn advice(code: &SqlState) -> Option<String> {
    let advice = match code.code() {
        "42P01" => "Use the tool list_tables to see what can be read.",
        "42703" => "Use the tool get_schema to see a table's columns.",
        "42501" => "The role that the call runs as has no right to it; list_tables shows what it may read.",
        "40001" | "40P01" => "Others changed the same rows meanwhile; try again.",
        "26000" | "42P05" => "A pooler seems to stand between; the owner of the node then has to say pgbouncer: true.",
        "55P03" => "Somebody holds a lock on it; try again.",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// Where in the statement, for the reader: line and column, both from 1.
fn place(said: &DbError, text: &str) -> Option<String> {
    let Some(ErrorPosition::Original(position)) = said.position() else { return None };
    let before: String = text.chars().take(usize::try_from(*position).ok()?.checked_sub(1)?).collect();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Some(format!("line {line}, column {column}"))
}
