//! Why a handler gave no answer, in words for whoever called it.
//!
//! What a handler's own error says may be anybody's data: the caller reads an id, the log the detail under it. What the
//! handler means for the caller it raises with `mcp_refuse`.

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::error::DbError;

use super::record::HandlerRecord;
use crate::error;

/// The code of `mcp_refuse`, whose message is meant for the caller.
const MCP_REFUSE_CODE: &str = "MCP01";

/// Why a handler gave no answer.
#[derive(Debug)]
pub(crate) enum HandlerFailure {
    /// The server says so.
    Server(tokio_postgres::Error),
    /// Its answer is none.
    InvalidAnswer(String),
    /// Its answer is beyond the bound.
    TooLarge,
    /// The database does not know who calls.
    UnknownCaller,
    /// Something else, in words for the caller already.
    ClientError(Error),
}

impl From<Error> for HandlerFailure {
    fn from(error: Error) -> Self {
        Self::ClientError(error)
    }
}

impl HandlerFailure {
    /// The error for the caller. `may_write` says whether the node lets handlers write.
    pub(crate) fn into_error(self, record: &HandlerRecord, database: &str, may_write: bool) -> Error {
        let (kind, name) = (record.kind.name(), &record.name);
        match self {
            Self::ClientError(error) => error,
            Self::InvalidAnswer(why) => {
                Error::internal(format!("database {database}: the handler of the {kind} {name:?}: {why}"))
            }
            Self::TooLarge => {
                Error::new(ErrorKind::TooLarge, format!("the answer of the {kind} {name:?} is beyond 16 MiB"))
            }
            Self::UnknownCaller => Error::new(
                ErrorKind::Unauthenticated,
                "the database does not know who you are, and the handler asks for it",
            ),
            Self::Server(text) => server_error(&text, record, database, may_write),
        }
    }
}

/// The error of a handler whose rows were being read. It runs in a transaction that only reads.
pub(crate) fn rows_error(text: &tokio_postgres::Error, database: &str) -> Error {
    let Some(server) = text.as_db_error() else { return error::internal_statement_error(text, database) };
    if is_function_missing(server) {
        return Error::new(ErrorKind::NotFound, "there is no such tool any more");
    }
    common_error(text, server, "tool", database)
        .unwrap_or_else(|| Error::internal(log_detail(server, "a handler with rows", database)))
}

/// What is the same for every handler.
fn common_error(text: &tokio_postgres::Error, server: &DbError, kind: &str, database: &str) -> Option<Error> {
    let detail = || log_detail(server, &format!("a handler of a {kind}"), database);
    Some(match server.code().code() {
        MCP_REFUSE_CODE => Error::new(ErrorKind::Failed, server.message()),
        "57014" => Error::new(ErrorKind::TimedOut, format!("the {kind} was stopped: it took longer than it may"))
            .with_detail(detail()),
        "40001" | "40P01" => {
            let message = format!("the {kind} met others that changed the same rows, again and again");
            Error::new(ErrorKind::Unavailable, message).with_hint("Try again.").with_detail(detail())
        }
        code if code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") => {
            error::internal_statement_error(text, database)
        }
        _ => return None,
    })
}

/// What only the log may show.
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
            let message =
                format!("write_in_read_only_handler: the {kind} tried to write, and says of itself that it only reads");
            Error::new(ErrorKind::Forbidden, message).with_detail(detail())
        }
        "25006" if !may_write => {
            let message = format!("the {kind} tried to write, and this node lets the handlers of {database} only read");
            Error::new(ErrorKind::Forbidden, message)
                .with_hint("The owner of the node allows it with writes: true under handlers.")
                .with_detail(detail())
        }
        _ if is_function_missing(server) => not_found_error(record),
        _ => Error::internal(detail()),
    }
}

/// Whether the function itself is not there, or not for the role. Only our own call of it has no context.
fn is_function_missing(server: &DbError) -> bool {
    server.where_().is_none() && matches!(server.code().code(), "42501" | "42883" | "3F000")
}

/// The refusal when the call could not be prepared: most often the handler was dropped, or taken from the role, and the
/// registry has not heard of it yet.
pub(crate) fn prepare_error(error: Error, record: &HandlerRecord) -> HandlerFailure {
    HandlerFailure::ClientError(match error.kind() {
        ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal => error,
        _ => not_found_error(record),
    })
}

/// The words for a name that nobody ever gave.
fn not_found_error(record: &HandlerRecord) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no {} {:?}", record.kind.name(), record.name))
}
