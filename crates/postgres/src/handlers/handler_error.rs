//! Errors of handlers, in words for the caller.
//!
//! An error message of a handler may contain data of any user. Therefore the caller receives an id, under which the log
//! has the detail. Messages for the caller are raised with `mcp_refuse`.

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::error::DbError;

use super::record::HandlerRecord;
use crate::error;

/// The SQLSTATE of `mcp_refuse`, whose message is for the caller.
const MCP_REFUSE_CODE: &str = "MCP01";

/// Why a handler gave no valid answer.
#[derive(Debug)]
pub(crate) enum HandlerFailure {
    /// An error of the server.
    Server(tokio_postgres::Error),
    /// The answer is invalid.
    InvalidAnswer(String),
    /// The answer exceeds the size limit.
    TooLarge,
    /// The database does not recognise the caller.
    UnknownCaller,
    /// Another error, already in words for the caller.
    ClientError(Error),
}

impl From<Error> for HandlerFailure {
    fn from(error: Error) -> Self {
        Self::ClientError(error)
    }
}

impl HandlerFailure {
    /// The error for the caller. `may_write` is whether the node allows handlers to write.
    pub(crate) fn into_error(self, record: &HandlerRecord, database: &str, may_write: bool) -> Error {
        let (kind, name) = (record.kind.name(), &record.name);
        match self {
            Self::ClientError(error) => error,
            Self::InvalidAnswer(why) => {
                Error::internal(format!("database {database}: the handler of the {kind} {name:?}: {why}"))
            }
            Self::TooLarge => Error::new(
                ErrorKind::TooLarge,
                format!("the answer of the {kind} {name:?} exceeds the limit of 16 MiB"),
            ),
            Self::UnknownCaller => {
                Error::new(ErrorKind::Unauthenticated, "the handler requires a caller that the database recognises")
            }
            Self::Server(text) => server_error(&text, record, database, may_write),
        }
    }
}

/// The error of a handler while its rows are read. It runs in a read-only transaction.
pub(crate) fn rows_error(text: &tokio_postgres::Error, database: &str) -> Error {
    let Some(server) = text.as_db_error() else { return error::internal_statement_error(text, database) };
    if is_function_missing(server) {
        return Error::new(ErrorKind::NotFound, "the tool no longer exists");
    }
    common_error(text, server, "tool", database)
        .unwrap_or_else(|| Error::internal(log_detail(server, "a handler with rows", database)))
}

/// The errors that are the same for every handler.
fn common_error(text: &tokio_postgres::Error, server: &DbError, kind: &str, database: &str) -> Option<Error> {
    let detail = || log_detail(server, &format!("a handler of a {kind}"), database);
    Some(match server.code().code() {
        MCP_REFUSE_CODE => Error::new(ErrorKind::Failed, server.message()),
        "57014" => Error::new(ErrorKind::TimedOut, format!("the {kind} exceeded its time limit and was cancelled"))
            .with_detail(detail()),
        "40001" | "40P01" => {
            let message = format!("the {kind} failed after repeated conflicts with concurrent changes");
            Error::new(ErrorKind::Unavailable, message).with_hint("Try again.").with_detail(detail())
        }
        code if code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") => {
            error::internal_statement_error(text, database)
        }
        _ => return None,
    })
}

/// The detail, which only the log may contain.
fn log_detail(server: &DbError, subject: &str, database: &str) -> String {
    let context = server.where_().unwrap_or_default();
    format!("database {database}: {subject} failed: {}: {}\n{context}", server.code().code(), server.message())
}

fn server_error(text: &tokio_postgres::Error, record: &HandlerRecord, database: &str, may_write: bool) -> Error {
    let (kind, name) = (record.kind.name(), &record.name);
    let Some(server) = text.as_db_error() else { return error::internal_statement_error(text, database) };
    if let Some(error) = common_error(text, server, kind, database) {
        return error;
    }
    let detail = || log_detail(server, &format!("the handler of the {kind} {name:?}"), database);
    match server.code().code() {
        "25006" if record.read_only => {
            let message = format!("write_in_read_only_handler: the {kind} is declared read-only and tried to write");
            Error::new(ErrorKind::Forbidden, message).with_detail(detail())
        }
        "25006" if !may_write => {
            let message =
                format!("the {kind} tried to write, but the handlers of {database} are read-only on this node");
            Error::new(ErrorKind::Forbidden, message)
                .with_hint("To allow it, set writes: true under handlers in the configuration.")
                .with_detail(detail())
        }
        _ if is_function_missing(server) => not_found_error(record),
        _ => Error::internal(detail()),
    }
}

/// Whether the function does not exist or the role may not execute it. Only the outermost call has no context.
fn is_function_missing(server: &DbError) -> bool {
    server.where_().is_none() && matches!(server.code().code(), "42501" | "42883" | "3F000")
}

/// The error if the call could not be prepared. Usually the handler was dropped or its privilege revoked, and the
/// registry is not updated yet.
pub(crate) fn prepare_error(error: Error, record: &HandlerRecord) -> HandlerFailure {
    HandlerFailure::ClientError(match error.kind() {
        ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal => error,
        _ => not_found_error(record),
    })
}

/// The same error as for a name that never existed.
fn not_found_error(record: &HandlerRecord) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no {} {:?}", record.kind.name(), record.name))
}
