//! Converts errors of the server to errors for callers.
//!
//! The primary message and the hint go to the caller, because they are about the caller's SQL. Detail and context stay
//! in the log, because they may quote rows. A message of a handler in the database may contain data of any user, so it
//! goes to the caller only if the handler raises it with `mcp_refuse`.

use tidegate_core::{Error, ErrorKind};
use tidegate_sql::{SqlDialect, equivalent_function};
use tokio_postgres::error::{DbError, ErrorPosition, Severity, SqlState};

/// The SQLSTATE of `mcp_refuse`, whose message is for the caller.
const MCP_REFUSE_CODE: &str = "MCP01";

/// The error of a caller's statement `text`, which is used to convert positions to line and column.
pub(crate) fn statement_error(error: &tokio_postgres::Error, database: &str, text: &str) -> Error {
    match error.as_db_error() {
        Some(db_error) => server_error(db_error, database, text),
        None if error.is_closed() => connection_lost_error(database, error),
        None => driver_error(error, database),
    }
}

/// The error of an internal statement.
pub fn internal_statement_error(error: &tokio_postgres::Error, database: &str) -> Error {
    match error.as_db_error() {
        Some(db_error) if error_kind(db_error.code()) == ErrorKind::Unavailable => server_error(db_error, database, ""),
        Some(db_error) => Error::internal(format!("database {database}: {db_error}")),
        None => connection_lost_error(database, error),
    }
}

/// The error of beginning a transaction as `role`. The configuration names a role that does not exist, or that the login
/// role is not a member of.
pub(crate) fn role_error(error: &tokio_postgres::Error, database: &str, role: &str) -> Error {
    match error.as_db_error() {
        Some(db_error) if error_kind(db_error.code()) != ErrorKind::Unavailable => {
            let message =
                format!("the database {database} refuses the role that the configuration has for your identity");
            Error::new(ErrorKind::Internal, message)
                .with_detail(format!("database {database}: cannot run as the role {role}: {}", db_error.message()))
                .with_hint("The owner of the node finds the reason in its log and with tidegate doctor.")
        }
        _ => internal_statement_error(error, database),
    }
}

/// Whether the transaction can be retried: it conflicted with a concurrent one.
pub fn is_retryable(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED)
}

/// Whether the connection ends with the error, or may have ended: only an answer of the server to the statement shows
/// that it goes on.
pub(crate) fn ends_session(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        Some(db_error) => matches!(db_error.parsed_severity(), Some(Severity::Fatal | Severity::Panic)),
        None => true,
    }
}

/// Whether the columns of a prepared statement have changed.
pub(crate) fn is_result_type_changed(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|db_error| {
        *db_error.code() == SqlState::FEATURE_NOT_SUPPORTED && db_error.routine() == Some("RevalidateCachedQuery")
    })
}

/// Whether the server does not know the name of a prepared statement, or has another statement under it.
pub(crate) fn is_statement_name_unknown(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| *code == SqlState::INVALID_SQL_STATEMENT_NAME || *code == SqlState::DUPLICATE_PSTATEMENT)
}

/// Whether a prepared statement no longer matches its tables.
pub(crate) fn is_statement_outdated(error: &tokio_postgres::Error) -> bool {
    is_result_type_changed(error)
        || is_statement_name_unknown(error)
        || error.code().is_some_and(|code| {
            // The object no longer exists, or its type does not match. Preparing the statement again gives an error
            // with a position in the caller's text, or other types for its parameters.
            code.code() == "3F000" || code.code().starts_with("42") && *code != SqlState::INSUFFICIENT_PRIVILEGE
        })
}

fn connection_lost_error(database: &str, error: &tokio_postgres::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the connection to the database {database} was lost; try again"))
        .with_detail(error.to_string())
}

/// An error of the driver before the statement was sent: a parameter has a wrong type.
fn driver_error(error: &tokio_postgres::Error, database: &str) -> Error {
    let source = std::error::Error::source(error).map(ToString::to_string);
    let text = error.to_string();
    if text.starts_with("error serializing parameter") {
        let reason = source.unwrap_or_default();
        return Error::new(ErrorKind::InvalidArguments, format!("invalid parameter: {reason}"));
    }
    connection_lost_error(database, error).with_detail(format!("{text}: {}", source.unwrap_or_default()))
}

fn server_error(db_error: &DbError, database: &str, text: &str) -> Error {
    let kind = server_error_kind(db_error);
    let detail = format!("database {database}: {} {db_error:?}", db_error.code().code());
    let message = match kind {
        ErrorKind::Unavailable => {
            format!("the database {database} is not available: {}", unavailable_reason(db_error))
        }
        ErrorKind::Cancelled => "the query was cancelled".to_owned(),
        ErrorKind::TimedOut if *db_error.code() == SqlState::QUERY_CANCELED => {
            format!("the query exceeded the time limit that the database {database} sets for its statements")
        }
        ErrorKind::TooLarge if *db_error.code() == SqlState::INTERNAL_ERROR => {
            "a value of the query exceeds the size that PostgreSQL can allocate, 1 GB".to_owned()
        }
        ErrorKind::Forbidden if *db_error.code() == SqlState::READ_ONLY_SQL_TRANSACTION => {
            format!("only reading is allowed: {}", db_error.message())
        }
        ErrorKind::Internal => return Error::internal(detail),
        _ => match error_position(db_error, text) {
            Some(position) => format!("{} at {position}", db_error.message()),
            None => db_error.message().to_owned(),
        },
    };
    let error = Error::new(kind, message).with_detail(detail);
    // Hints about problems of the server are for its administrator.
    let hint = db_error.hint().filter(|_| kind != ErrorKind::Unavailable).map(str::to_owned);
    match equivalent_hint(db_error).or(hint).or_else(|| default_hint(db_error.code())) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The reason why the server is not available. Its own messages about files contain paths, which callers must not
/// receive.
fn unavailable_reason(db_error: &DbError) -> &str {
    match db_error.code().code() {
        code if code.starts_with("28") => "it refuses the login of the node",
        "53100" => "its disk is full",
        "58000" | "58030" | "58P01" | "58P02" => "it has a problem with its files",
        _ => db_error.message(),
    }
}

fn server_error_kind(db_error: &DbError) -> ErrorKind {
    match db_error.code().code() {
        // Only the message distinguishes the limit of the database from a request to cancel.
        "57014" if db_error.message().contains("statement timeout") => ErrorKind::TimedOut,
        // At the login it is fatal. Otherwise, the database is an argument, as of has_database_privilege.
        "3D000" if matches!(db_error.parsed_severity(), Some(Severity::Error)) => ErrorKind::InvalidArguments,
        // The allocator has no SQLSTATE of its own for a value that is too large.
        "XX000" if db_error.message().starts_with("invalid memory alloc request size") => ErrorKind::TooLarge,
        _ => error_kind(db_error.code()),
    }
}

/// The kind of error for an SQLSTATE. The class decides, with exceptions. Errors of a statement, its values and the
/// functions that it calls are the caller's; classes 2D, 2F, 38 and 39 are of functions, such as those of pgcrypto. Errors
/// of the connection, the transaction (25, 3B), the configuration (F0), a foreign server (HV) and the server (XX) are
/// not.
///
/// [PostgreSQL, Error Codes](https://www.postgresql.org/docs/current/errcodes-appendix.html)
fn error_kind(code: &SqlState) -> ErrorKind {
    match code.code() {
        MCP_REFUSE_CODE => ErrorKind::Failed,
        "25006" | "42501" => ErrorKind::Forbidden,
        "42P01" => ErrorKind::NotFound,
        "57014" => ErrorKind::Cancelled,
        "25P03" | "25P04" => ErrorKind::TimedOut,
        "53200" | "53400" => ErrorKind::TooLarge,
        // A lock that is held; a prepared statement that a pooler has lost; a foreign server that cannot be reached.
        "55P03" | "42P05" | "HV00N" => ErrorKind::Unavailable,
        // ASSERT in a function.
        "P0004" => ErrorKind::Internal,
        other => match other.get(..2) {
            Some("54") => ErrorKind::TooLarge,
            Some("08" | "26" | "28" | "3D" | "40" | "53" | "57" | "58" | "72") => ErrorKind::Unavailable,
            Some("25" | "3B" | "F0" | "HV" | "XX") => ErrorKind::Internal,
            _ => ErrorKind::InvalidArguments,
        },
    }
}

/// The equivalent of a function of other databases that PostgreSQL lacks. Only the message has the name: `function
/// year(date) does not exist`.
fn equivalent_hint(db_error: &DbError) -> Option<String> {
    let message = db_error.message();
    let is_unknown = *db_error.code() == SqlState::UNDEFINED_FUNCTION;
    let (name, _) = message.strip_prefix("function ").filter(|_| is_unknown)?.split_once('(')?;
    equivalent_function(name, SqlDialect::Postgres).map(|equivalent| format!("Write {equivalent}."))
}

fn default_hint(code: &SqlState) -> Option<String> {
    let advice = match code.code() {
        "42P01" => "Use the tool list_tables to list the readable tables.",
        "42703" => "Use the tool get_schema to list the columns of a table.",
        "42501" => "The role of the call has no privilege for it; list_tables lists what the role may read.",
        "40001" | "40P01" => "A concurrent transaction changed the same rows; try again.",
        "26000" | "42P05" => "If a pooler in transaction mode is in use, set pgbouncer: true for this database.",
        "55P03" => "Another transaction holds a lock; try again.",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// The position in the statement: line and column, both from 1.
fn error_position(db_error: &DbError, text: &str) -> Option<String> {
    let Some(ErrorPosition::Original(position)) = db_error.position() else { return None };
    let before: String = text.chars().take(usize::try_from(*position).ok()?.checked_sub(1)?).collect();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Some(format!("line {line}, column {column}"))
}

/// The error of a handler while its rows are read. It runs in a read-only transaction.
pub fn handler_rows_error(error: &tokio_postgres::Error, database: &str) -> Error {
    let Some(server) = error.as_db_error() else { return internal_statement_error(error, database) };
    if is_function_missing(server) {
        return Error::new(ErrorKind::NotFound, "the tool no longer exists");
    }
    common_handler_error(error, server, "tool", database)
        .unwrap_or_else(|| Error::internal(handler_error_detail(server, "a handler with rows", database)))
}

/// The error of a handler of a `kind`, if it does not depend on the handler.
pub fn common_handler_error(
    error: &tokio_postgres::Error,
    server: &DbError,
    kind: &str,
    database: &str,
) -> Option<Error> {
    let detail = || handler_error_detail(server, &format!("a handler of a {kind}"), database);
    Some(match server.code().code() {
        MCP_REFUSE_CODE => Error::new(ErrorKind::Failed, server.message()),
        "57014" => Error::new(ErrorKind::TimedOut, format!("the {kind} exceeded its time limit and was cancelled"))
            .with_detail(detail()),
        "40001" | "40P01" => {
            let message = format!("the {kind} failed after repeated conflicts with concurrent changes");
            Error::new(ErrorKind::Unavailable, message).with_hint("Try again.").with_detail(detail())
        }
        // A message that the connection replaced because of its size; an error of the server is not fatal.
        "54000" if server.severity() == "FATAL" => {
            Error::new(ErrorKind::TooLarge, server.message()).with_detail(detail())
        }
        code if code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") => {
            internal_statement_error(error, database)
        }
        _ => return None,
    })
}

/// The detail of an error of `subject`, which only the log may contain.
pub fn handler_error_detail(server: &DbError, subject: &str, database: &str) -> String {
    let context = server.where_().unwrap_or_default();
    format!("database {database}: {subject} failed: {}: {}\n{context}", server.code().code(), server.message())
}

/// Whether the function does not exist or the role may not execute it. Only the outermost call has no context.
pub fn is_function_missing(server: &DbError) -> bool {
    server.where_().is_none() && matches!(server.code().code(), "42501" | "42883" | "3F000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_of_sqlstate_has_a_kind() {
        let kinds = [
            (
                ErrorKind::InvalidArguments,
                "0A000 21000 22001 22003 22011 22P02 23505 2D000 2F002 2F003 2F005 38000 38001 38002 38003 38004 \
                 39000 39001 39004 39P01 39P02 39P03 42601 42703 42883 42P02 44000 55000 P0001 P0002 P0003",
            ),
            (ErrorKind::Forbidden, "25006 42501"),
            (ErrorKind::NotFound, "42P01"),
            (ErrorKind::Cancelled, "57014"),
            (ErrorKind::TimedOut, "25P03 25P04"),
            (ErrorKind::TooLarge, "53200 53400 54000 54001 54011 54023"),
            (
                ErrorKind::Unavailable,
                "08006 26000 28P01 3D000 40001 40P01 42P05 53100 53300 55P03 57P01 57P05 58030 72000 HV00N",
            ),
            (ErrorKind::Internal, "25001 25P01 25P02 3B001 F0000 HV000 HV00R P0004 XX000 XX001 XX002"),
            (ErrorKind::Failed, MCP_REFUSE_CODE),
        ];
        for (kind, codes) in kinds {
            for code in codes.split(' ') {
                assert_eq!(error_kind(&SqlState::from_code(code)), kind, "{code}");
            }
        }
    }
}
