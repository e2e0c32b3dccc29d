//! Why a call gave no valid answer, and its error in words for the caller.

use tidegate_core::{Error, ErrorKind};
use tidegate_postgres::error::internal_statement_error;
use tidegate_postgres::handler_error::{common_error, is_function_missing, log_detail};

use crate::record::HandlerRecord;

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

impl From<tokio_postgres::Error> for HandlerFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
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

fn server_error(text: &tokio_postgres::Error, record: &HandlerRecord, database: &str, may_write: bool) -> Error {
    let (kind, name) = (record.kind.name(), &record.name);
    let Some(server) = text.as_db_error() else { return internal_statement_error(text, database) };
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
