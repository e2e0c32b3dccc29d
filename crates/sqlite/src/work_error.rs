//! What fails in SQLite, and what the caller reads of it: the database's name and never a path, which only the log has.

use rusqlite::ErrorCode;
use tidegate_core::{Error, ErrorKind};

use crate::session::OpenFileError;

/// The extended code of a database that was left in the middle of a write, which only a writer can undo.
const READONLY_ROLLBACK: i32 = 776;
/// The same, when there is no right to see what must be undone.
const READONLY_RECOVERY: i32 = 264;

/// Why a piece of work failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    /// The files cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenFileError),
    /// SQLite says so.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The wall refused this.
    #[error("{0} is refused")]
    Unauthorized(String),
    /// The statement gives no rows, or does more than that.
    #[error("the statement is no query")]
    NotAQuery,
    /// Nobody wants the answer any more, or the time is over.
    #[error("the query is no longer wanted")]
    Cancelled,
    /// The reader takes no rows.
    #[error("the reader takes no rows")]
    Stalled,
    /// The tables or files changed where they must not.
    #[error("the files changed")]
    Changed,
    /// One row has more bytes than may be held.
    #[error("one row has more than {0} bytes")]
    RowTooLarge(usize),
    /// A value is not of its column's type, which the schema promises.
    #[error("column {0:?} holds a value that its type forbids")]
    TypeMismatch(String),
    /// What stands before a table fails, or what is behind it.
    #[error("a view of a row policy: {0}")]
    PolicyView(rusqlite::Error),
    /// The error for the caller is known.
    #[error("{0}")]
    ClientError(Error),
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

    /// Whether it is what a stopped piece of work fails with.
    pub(crate) fn is_interruption(&self) -> bool {
        match self {
            Self::Cancelled => true,
            Self::Sqlite(error) | Self::PolicyView(error) | Self::Open(OpenFileError::RejectedBySqlite(_, error)) => {
                matches!(
                    error_code(error),
                    Some(ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                )
            }
            _ => false,
        }
    }

    /// Whether the caller would read SQLite's own words, or the wall's, of what was asked.
    pub(crate) fn is_about_statement(&self) -> bool {
        match self {
            Self::Unauthorized(_) => true,
            Self::Sqlite(error) => is_statement_error(error_code(error)),
            _ => false,
        }
    }

    /// What the caller of `database` reads.
    pub(crate) fn into_error(self, database: &str) -> Error {
        let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message);
        match self {
            Self::ClientError(error) => error,
            Self::Open(error) => open_error(&error, database),
            Self::Sqlite(error) => sqlite_error(&error, database),
            Self::Unauthorized(subject) => {
                Error::new(ErrorKind::InvalidArguments, format!("{subject} is refused: only reading tables is allowed"))
                    .with_hint("Ask with one SELECT over the tables of the catalog.")
            }
            Self::PolicyView(error) => match error_code(&error) {
                Some(ErrorCode::OperationInterrupted) => Self::Cancelled.into_error(database),
                // What it says may tell of what is hidden.
                _ => Error::internal(format!("a view of a row policy of {database:?} failed: {error}")),
            },
            Self::NotAQuery => {
                Error::new(ErrorKind::InvalidArguments, "only a statement that reads and gives rows is allowed")
                    .with_hint("Ask with one SELECT over the tables of the catalog.")
            }
            Self::Cancelled => Error::new(ErrorKind::Cancelled, "the call was cancelled"),
            Self::Stalled => {
                Error::new(ErrorKind::TimedOut, "the answer was not read for too long, so the query was ended")
                    .with_hint("Ask again, and for less.")
            }
            Self::Changed => {
                unavailable(format!("the database {database:?} changed while it was read")).with_hint("Ask again.")
            }
            Self::RowTooLarge(bytes) => {
                let message = format!("one row of the answer has more than {} MiB", bytes >> 20);
                Error::new(ErrorKind::TooLarge, message)
                    .with_hint("Select fewer columns, or parts of long ones: substr(column, 1, 1000).")
            }
            Self::TypeMismatch(column) => {
                let message = format!("column {column:?} of {database:?} holds a value that its type forbids");
                unavailable(message).with_hint("The file is damaged; its owner can look with PRAGMA integrity_check.")
            }
        }
    }
}

/// SQLite's code, wherever rusqlite keeps it.
fn error_code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        other => other.sqlite_error_code(),
    }
}

/// Whether it is what was asked that is wrong, and not the files.
fn is_statement_error(code: Option<ErrorCode>) -> bool {
    matches!(code, None | Some(ErrorCode::Unknown | ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange))
}

fn open_error(error: &OpenFileError, database: &str) -> Error {
    tracing::warn!(database, %error, "a file of SQLite cannot be opened");
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message).with_detail(error.to_string());
    match error {
        OpenFileError::FileUnavailable(schema, reason) => {
            let reason = match reason.kind() {
                std::io::ErrorKind::NotFound => "is gone".to_owned(),
                kind => format!("cannot be seen: {kind}"),
            };
            unavailable(format!("{} {reason}", file_label(schema, database)))
        }
        OpenFileError::LogUnreadable(schema) => {
            let message = format!("{} has a write-ahead log that cannot be read here", file_label(schema, database));
            unavailable(message).with_hint(
                "Its owner can give the server the right to write the folder, or close the program that writes the file.",
            )
        }
        OpenFileError::RejectedBySqlite(schema, error) => file_error(error, &file_label(schema, database)),
    }
}

/// How texts name a file: by its schema where there are several.
fn file_label(schema: &str, database: &str) -> String {
    match schema {
        crate::files::MAIN_SCHEMA => format!("the file of the database {database:?}"),
        schema => format!("the file {schema:?} of the database {database:?}"),
    }
}

fn sqlite_error(error: &rusqlite::Error, database: &str) -> Error {
    let code = error_code(error);
    match code {
        Some(ErrorCode::OperationInterrupted) => WorkError::Cancelled.into_error(database),
        Some(ErrorCode::TooBig) => {
            Error::new(ErrorKind::TooLarge, "a text, a blob or a row is longer than may be read")
                .with_hint("Leave out the column; a part of it can only be had when the row as a whole is shorter.")
        }
        Some(ErrorCode::OutOfMemory) => {
            Error::new(ErrorKind::TooLarge, "the query needs more memory than there is for SQLite")
                .with_hint("Try again later, or ask for less: filter, aggregate, or select fewer columns.")
        }
        code if is_statement_error(code) => Error::new(ErrorKind::InvalidArguments, sqlite_message(error)),
        _ => file_error(error, &format!("the database {database:?}")),
    }
}

/// What is wrong with `file` itself.
fn file_error(error: &rusqlite::Error, file: &str) -> Error {
    tracing::warn!(file, %error, "SQLite cannot read a file");
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message).with_detail(error.to_string());
    let extended = error.sqlite_error().map(|error| error.extended_code);
    match error_code(error) {
        Some(ErrorCode::OperationInterrupted) => WorkError::Cancelled.into_error(file),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            unavailable(format!("{file} is locked by a program that writes it"))
                .with_hint("Try again in a few seconds.")
        }
        Some(ErrorCode::NotADatabase) => unavailable(format!("{file} is no SQLite database, or is encrypted")),
        Some(ErrorCode::DatabaseCorrupt) => unavailable(format!("{file} is damaged"))
            .with_hint("Its owner can look with PRAGMA integrity_check, or put back a copy."),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => unavailable(format!("{file} cannot be opened"))
            .with_hint("Its owner can give the server the right to read it and, in WAL mode, to write its folder."),
        Some(ErrorCode::ReadOnly) if matches!(extended, Some(READONLY_ROLLBACK | READONLY_RECOVERY)) => {
            unavailable(format!("{file} was left in the middle of a write"))
                .with_hint("It is put right when a program that may write it opens it.")
        }
        Some(ErrorCode::DiskFull) => unavailable("there is no room for temporary files".to_owned()),
        Some(ErrorCode::SchemaChanged) => {
            unavailable(format!("{file} changed while it was read")).with_hint("Ask again.")
        }
        _ => unavailable(format!("{file} cannot be read")),
    }
}

/// What SQLite says, without what rusqlite adds.
pub(crate) fn sqlite_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::MultipleStatement => "the text holds more than one statement".to_owned(),
        rusqlite::Error::NulError(_) => "the text holds a NUL character".to_owned(),
        other => other.to_string(),
    }
}
