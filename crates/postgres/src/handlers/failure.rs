//! Why a handler gave no answer, in words for whoever called it.
//!
//! What a handler's own error says may be anybody's data: the caller reads an id, the log the detail under it. What the
//! handler means for the caller it raises with `mcp_refuse`.

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::error::DbError;

use super::record::HandlerRecord;
use crate::error;

/// The code of `mcp_refuse`, whose message is meant for the caller.
const REFUSED: &str = "MCP01";

/// Why a handler gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server says so.
    Server(tokio_postgres::Error),
    /// Its answer is none.
    Broken(String),
    /// Its answer is beyond the bound.
    TooLarge,
    /// The database does not know who calls.
    Unknown,
    /// Something else, in words for the caller already.
    Told(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl Failure {
    /// The error for the caller. `may_write` says whether the node lets handlers write.
    pub(crate) fn told(self, record: &HandlerRecord, database: &str, may_write: bool) -> Error {
        let (kind, name) = (record.kind.name(), &record.name);
        match self {
            Self::Told(error) => error,
            Self::Broken(why) => {
                Error::internal(format!("database {database}: the handler of the {kind} {name:?}: {why}"))
            }
            Self::TooLarge => {
                Error::new(ErrorKind::TooLarge, format!("the answer of the {kind} {name:?} is beyond 16 MiB"))
            }
            Self::Unknown => Error::new(
                ErrorKind::Unauthenticated,
                "the database does not know who you are, and the handler asks for it",
            ),
            Self::Server(said) => of_server(&said, record, database, may_write),
        }
    }
}

/// The error of a handler whose rows were being read. It runs in a transaction that only reads.
pub(crate) fn of_rows(said: &tokio_postgres::Error, database: &str) -> Error {
    let Some(server) = said.as_db_error() else { return error::of_own(said, database) };
    if is_gone(server) {
        return Error::new(ErrorKind::NotFound, "there is no such tool any more");
    }
    common(said, server, "tool", database)
        .unwrap_or_else(|| Error::internal(detail(server, "a handler with rows", database)))
}

/// What is the same for every handler.
fn common(said: &tokio_postgres::Error, server: &DbError, kind: &str, database: &str) -> Option<Error> {
    let detail = || detail(server, &format!("a handler of a {kind}"), database);
    Some(match server.code().code() {
        REFUSED => Error::new(ErrorKind::Failed, server.message()),
        "57014" => Error::new(ErrorKind::TimedOut, format!("the {kind} was stopped: it took longer than it may"))
            .with_detail(detail()),
        "40001" | "40P01" => {
            let message = format!("the {kind} met others that changed the same rows, again and again");
            Error::new(ErrorKind::Unavailable, message).with_hint("Try again.").with_detail(detail())
        }
        code if code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") => {
            error::of_own(said, database)
        }
        _ => return None,
    })
}

/// What only the log may show.
fn detail(server: &DbError, what: &str, database: &str) -> String {
    let context = server.where_().unwrap_or_default();
    format!("database {database}: {what} failed: {}: {}\n{context}", server.code().code(), server.message())
}

fn of_server(said: &tokio_postgres::Error, record: &HandlerRecord, database: &str, may_write: bool) -> Error {
    let (kind, name) = (record.kind.name(), &record.name);
    let Some(server) = said.as_db_error() else { return error::of_own(said, database) };
    if let Some(error) = common(said, server, kind, database) {
        return error;
    }
    let detail = || detail(server, &format!("the handler of the {kind} {name:?}"), database);
    match server.code().code() {
        "25006" if record.only_reads => {
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
        _ if is_gone(server) => gone(record),
        _ => Error::internal(detail()),
    }
}

/// Whether the function itself is not there, or not for the role. Only our own call of it has no context.
fn is_gone(server: &DbError) -> bool {
    server.where_().is_none() && matches!(server.code().code(), "42501" | "42883" | "3F000")
}

/// The refusal when the call could not be prepared: most often the handler was dropped, or taken from the role, and the
/// registry has not heard of it yet.
pub(crate) fn of_preparing(error: Error, record: &HandlerRecord) -> Failure {
    Failure::Told(match error.kind() {
        ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal => error,
        _ => gone(record),
    })
}

/// The words for a name that nobody ever gave.
fn gone(record: &HandlerRecord) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no {} {:?}", record.kind.name(), record.name))
}
