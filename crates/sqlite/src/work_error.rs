//! The errors of SQLite, and their form for callers: with the name of the database and never with a path. Only the log
//! contains paths.

use rusqlite::ErrorCode;
use tidegate_core::{Error, ErrorKind};

/// The extended code of a database with an incomplete write, which only a writer can roll back.
const READONLY_ROLLBACK: i32 = 776;
/// The same, if the process may not read the journal.
const READONLY_RECOVERY: i32 = 264;

#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    #[error(transparent)]
    Open(#[from] OpenFileError),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The authorizer refused this.
    #[error("{0} is refused")]
    Unauthorized(String),
    #[error("the statement is not a query")]
    NotAQuery,
    #[error("the query was cancelled")]
    Cancelled,
    /// The time limit of the call passed.
    #[error("the call ran too long")]
    TimedOut,
    #[error("the client reads no rows")]
    Stalled,
    /// The tables or files changed while they were read.
    #[error("the files changed")]
    Changed,
    #[error("one row has more than {0} bytes")]
    RowTooLarge(usize),
    #[error("column {0:?} contains a value that its type does not allow")]
    TypeMismatch(String),
    #[error("column {0:?} holds text that is not UTF-8")]
    NotUtf8(String),
    /// A policy view failed, or a table that it reads.
    #[error("a view of a row policy: {0}")]
    PolicyView(rusqlite::Error),
    /// The final error for the caller.
    #[error("{0}")]
    ClientError(#[from] Error),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFileError {
    /// The schema of the file, and the reason.
    #[error("{0}: {1}")]
    FileUnavailable(String, std::io::Error),
    #[error("{0}: the write-ahead log cannot be opened")]
    WalUnreadable(String),
    #[error("{0}: {1}")]
    RejectedBySqlite(String, rusqlite::Error),
}

impl WorkError {
    /// Whether the connection must be closed.
    pub(crate) fn requires_reconnect(&self) -> bool {
        match self {
            Self::Open(_) | Self::Changed | Self::TypeMismatch(_) | Self::PolicyView(_) => true,
            Self::Sqlite(error) => !matches!(
                error_code(error),
                None | Some(
                    ErrorCode::Unknown
                        | ErrorCode::OperationInterrupted
                        | ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::TooBig
                        | ErrorCode::OutOfMemory
                        | ErrorCode::AuthorizationForStatementDenied
                )
            ),
            _ => false,
        }
    }

    pub(crate) fn is_interruption(&self) -> bool {
        match self {
            Self::Cancelled | Self::TimedOut => true,
            Self::Sqlite(error) | Self::PolicyView(error) | Self::Open(OpenFileError::RejectedBySqlite(_, error)) => {
                matches!(
                    error_code(error),
                    Some(ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                )
            }
            _ => false,
        }
    }

    /// Whether the caller would receive SQLite's or the authorizer's message about the statement.
    pub(crate) fn is_about_statement(&self) -> bool {
        match self {
            Self::Unauthorized(_) => true,
            Self::Sqlite(error) => is_statement_error(error_code(error)),
            _ => false,
        }
    }

    pub(crate) fn into_error(self, database: &str) -> Error {
        let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message);
        match self {
            Self::ClientError(error) => error,
            Self::Open(error) => open_error(&error, database),
            Self::Sqlite(error) => sqlite_error(&error, database),
            Self::Unauthorized(subject) => {
                Error::new(ErrorKind::InvalidArguments, format!("{subject} is refused: only reading tables is allowed"))
                    .with_hint("Write one SELECT statement over tables of the catalog.")
            }
            Self::PolicyView(error) => match error_code(&error) {
                Some(ErrorCode::OperationInterrupted) => Self::Cancelled.into_error(database),
                // The message could reveal hidden data.
                _ => Error::internal(format!("a view of a row policy of {database:?} failed: {error}")),
            },
            Self::NotAQuery => {
                Error::new(ErrorKind::InvalidArguments, "only a statement that reads and returns rows is allowed")
                    .with_hint("Write one SELECT statement over tables of the catalog.")
            }
            Self::Cancelled => Error::cancelled(),
            Self::TimedOut => Error::new(ErrorKind::TimedOut, "the call ran too long"),
            Self::Stalled => Error::new(ErrorKind::TimedOut, "the client stopped reading, so the query was cancelled")
                .with_hint("Try again, and request fewer rows."),
            Self::Changed => {
                unavailable(format!("the database {database:?} changed while it was read")).with_hint("Try again.")
            }
            Self::RowTooLarge(bytes) => {
                let message = format!("one row of the result exceeds the limit of {} MiB", bytes >> 20);
                Error::new(ErrorKind::TooLarge, message)
                    .with_hint("Select fewer columns, or parts of long ones: substr(column, 1, 1000).")
            }
            Self::TypeMismatch(column) => {
                let message =
                    format!("column {column:?} of {database:?} contains a value that its type does not allow");
                unavailable(message).with_hint("The file is damaged; check it with PRAGMA integrity_check.")
            }
            Self::NotUtf8(column) => {
                Error::new(ErrorKind::InvalidArguments, format!("column {column:?} holds text that is not UTF-8"))
                    .with_hint("Select its bytes: CAST(column AS BLOB).")
            }
        }
    }
}

/// SQLite's code, wherever rusqlite stores it.
fn error_code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        other => other.sqlite_error_code(),
    }
}

fn is_statement_error(code: Option<ErrorCode>) -> bool {
    matches!(code, None | Some(ErrorCode::Unknown | ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange))
}

fn open_error(error: &OpenFileError, database: &str) -> Error {
    tracing::warn!(database, %error, "cannot open a SQLite file");
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message).with_detail(error.to_string());
    match error {
        OpenFileError::FileUnavailable(schema, reason) => {
            let reason = match reason.kind() {
                std::io::ErrorKind::NotFound => "does not exist".to_owned(),
                kind => format!("cannot be accessed: {kind}"),
            };
            unavailable(format!("{} {reason}", file_label(schema, database)))
        }
        OpenFileError::WalUnreadable(schema) => {
            let message = format!("{} has a write-ahead log that cannot be read", file_label(schema, database));
            unavailable(message)
                .with_hint("Grant the server write access to the folder, or close the program that uses the file.")
        }
        OpenFileError::RejectedBySqlite(schema, error) => file_error(error, &file_label(schema, database)),
    }
}

fn file_label(schema: &str, database: &str) -> String {
    match schema {
        crate::tables::MAIN_SCHEMA => format!("the file of the database {database:?}"),
        schema => format!("the file {schema:?} of the database {database:?}"),
    }
}

fn sqlite_error(error: &rusqlite::Error, database: &str) -> Error {
    let code = error_code(error);
    match code {
        Some(ErrorCode::OperationInterrupted) => WorkError::Cancelled.into_error(database),
        Some(ErrorCode::TooBig) => Error::new(ErrorKind::TooLarge, "a text, a blob or a row exceeds the size limit")
            .with_hint("Leave out the column. A part of it can be selected only if the whole row is within the limit."),
        Some(ErrorCode::OutOfMemory) => Error::new(ErrorKind::TooLarge, "the query exceeds the memory limit of SQLite")
            .with_hint("Try again later, or reduce the query: filter, aggregate, or select fewer columns."),
        code if is_statement_error(code) => Error::new(ErrorKind::InvalidArguments, sqlite_message(error)),
        _ => file_error(error, &format!("the database {database:?}")),
    }
}

fn file_error(error: &rusqlite::Error, file: &str) -> Error {
    tracing::warn!(file, %error, "cannot read a SQLite file");
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message).with_detail(error.to_string());
    let extended = error.sqlite_error().map(|error| error.extended_code);
    match error_code(error) {
        Some(ErrorCode::OperationInterrupted) => WorkError::Cancelled.into_error(file),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            unavailable(format!("{file} is locked by a program that writes to it"))
                .with_hint("Try again in a few seconds.")
        }
        Some(ErrorCode::NotADatabase) => unavailable(format!("{file} is not a SQLite database, or is encrypted")),
        Some(ErrorCode::DatabaseCorrupt) => unavailable(format!("{file} is damaged"))
            .with_hint("Check it with PRAGMA integrity_check, or restore a copy."),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => unavailable(format!("{file} cannot be opened"))
            .with_hint("Grant the server read access to the file and, in WAL mode, write access to its folder."),
        Some(ErrorCode::ReadOnly) if matches!(extended, Some(READONLY_ROLLBACK | READONLY_RECOVERY)) => {
            unavailable(format!("{file} contains an incomplete write"))
                .with_hint("Open it once with a program that may write it; SQLite then recovers it.")
        }
        Some(ErrorCode::DiskFull) => unavailable("no space is left for temporary files".to_owned()),
        Some(ErrorCode::SchemaChanged) => {
            unavailable(format!("{file} changed while it was read")).with_hint("Try again.")
        }
        _ => unavailable(format!("{file} cannot be read")),
    }
}

/// SQLite's message, without the additions of rusqlite.
pub(crate) fn sqlite_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::MultipleStatement => "the text contains more than one statement".to_owned(),
        rusqlite::Error::NulError(_) => "the text contains a NUL character".to_owned(),
        other => other.to_string(),
    }
}
