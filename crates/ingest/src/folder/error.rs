//! Errors of a folder of tables, and what callers read of them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::error::ArrowError;
use tidegate_core::{Error, ErrorKind};

use crate::delta::DeltaError;
use crate::write_ahead_log::WriteAheadLogError;

/// When a caller may try again after a failure of the storage.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// EIO, ENFILE and EMFILE, which are of no [`io::ErrorKind`].
const TRANSIENT_CODES: [i32; 3] = [5, 23, 24];

/// Why a folder could not be opened, or an operation of its owner failed.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// Another process writes to the folder.
    #[error("the folder {} is in use for writing by {holder}", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The process, its host and its start, as it wrote them itself.
        holder: String,
    },
    /// The log.
    #[error(transparent)]
    Log(#[from] WriteAheadLogError),
    /// A Delta table.
    #[error("table \"{table}\": {source}")]
    Delta {
        /// The name of the table.
        table: String,
        /// The error.
        #[source]
        source: Box<DeltaError>,
    },
    /// The declaration of a table contradicts the table.
    #[error("the declaration of table \"{table}\" does not fit: {problem}")]
    Declaration {
        /// The name of the table.
        table: String,
        /// What does not fit.
        problem: String,
    },
    /// A record of the log cannot be understood or applied.
    #[error("record {sequence} of the log: {problem}")]
    Record {
        /// The record.
        sequence: u64,
        /// What is wrong.
        problem: String,
    },
    /// Rows cannot be encoded or decoded.
    #[error("the rows cannot be converted: {0}")]
    Arrow(#[from] ArrowError),
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The table does not exist.
    #[error("there is no table \"{0}\"")]
    UnknownTable(String),
    /// A part of the rows of the table is damaged.
    #[error("table \"{table}\" is closed: {reason}")]
    TableClosed {
        /// The name of the table.
        table: String,
        /// What is damaged, and what the owner can do.
        reason: String,
    },
    /// Rows cannot be written to the Delta table of the table. They can be read.
    #[error("table \"{table}\" takes no rows: {reason}")]
    TableUnwritable {
        /// The name of the table.
        table: String,
        /// What the Delta table needs, and what the owner can do.
        reason: String,
    },
    /// The folder is closed or closes.
    #[error("the database takes no rows any more, as it is closed")]
    Closed,
    /// A background step ended unexpectedly.
    #[error("a step of the ingestion panicked")]
    Panicked,
}

impl IngestError {
    /// Makes the error of an operation on `path`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Adds the name of the table.
    pub(crate) fn delta(table: &str) -> impl Fn(DeltaError) -> Self {
        let table = table.to_owned();
        move |source| Self::Delta { table: table.clone(), source: Box::new(source) }
    }

    /// The error of a Delta table that lasts until its owner acts.
    pub(crate) fn damage(&self) -> Option<&DeltaError> {
        match self {
            Self::Delta { source, .. } if source.is_damage() => Some(source),
            _ => None,
        }
    }

    /// Whether the folder may open later although nobody mends it: the system lacked space, memory or file descriptors, or
    /// failed to read or write. Damage lasts.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Io { source, .. } => is_transient(source),
            Self::Log(
                WriteAheadLogError::NoSpace { source }
                | WriteAheadLogError::Write { source }
                | WriteAheadLogError::Failed { source }
                | WriteAheadLogError::Io { source, .. },
            ) => is_transient(source),
            _ => false,
        }
    }

    /// Whether work was ended because the folder is closed.
    pub(crate) fn is_stop(&self) -> bool {
        matches!(self, Self::Delta { source, .. } if matches!(source.as_ref(), DeltaError::Stopped))
    }

    /// The error for a caller whose write failed. `database` is the name of the database.
    pub(crate) fn for_caller(&self, database: &str) -> Error {
        match self {
            Self::Log(WriteAheadLogError::TooLarge { bytes, bytes_max }) => Error::new(
                ErrorKind::TooLarge,
                format!("the write has {bytes} bytes in one record; a record may have {bytes_max}"),
            ),
            Self::Log(WriteAheadLogError::NoSpace { .. }) => {
                unavailable(format!("there is no space left for rows of database \"{database}\"; nothing was stored"))
            }
            Self::Log(WriteAheadLogError::Full { bytes_max, .. }) => unavailable(format!(
                "the log of database \"{database}\" has its maximum size of {bytes_max} bytes; nothing was stored"
            )),
            Self::Log(WriteAheadLogError::Write { .. }) => {
                unavailable(format!("the log of database \"{database}\" cannot be written; nothing was stored"))
            }
            Self::Log(WriteAheadLogError::Failed { .. }) => unavailable(format!(
                "the log of database \"{database}\" failed while it was written; whether the rows were stored is known \
                 after a restart, and a repeat with the same idempotency key is safe"
            )),
            Self::Log(WriteAheadLogError::Closed) | Self::Closed => {
                unavailable(format!("database \"{database}\" takes no rows now, as it is closed"))
            }
            _ if self.is_stop() => unavailable(format!("database \"{database}\" is being closed")),
            Self::Delta { table, source } => match source.as_ref() {
                DeltaError::UnsupportedType { .. } | DeltaError::InvalidSchema(_) | DeltaError::InvalidRows(_) => {
                    Error::new(ErrorKind::InvalidArguments, format!("table \"{table}\": {source}"))
                }
                _ => unavailable(format!("the rows of table \"{table}\" cannot be stored now; nothing was stored")),
            },
            Self::UnknownTable(table) => Error::new(ErrorKind::NotFound, format!("there is no table \"{table}\"")),
            Self::TableClosed { .. } | Self::TableUnwritable { .. } => {
                Error::new(ErrorKind::Unavailable, self.to_string())
            }
            Self::Io { .. } => unavailable(format!("the storage of database \"{database}\" failed")),
            _ => Error::internal(self.to_string()),
        }
        .with_detail(self.to_string())
    }
}

fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{
        Interrupted, OutOfMemory, QuotaExceeded, ResourceBusy, StaleNetworkFileHandle, StorageFull, TimedOut,
        WouldBlock,
    };
    let is_transient_kind = matches!(
        error.kind(),
        Interrupted
            | OutOfMemory
            | QuotaExceeded
            | ResourceBusy
            | StaleNetworkFileHandle
            | StorageFull
            | TimedOut
            | WouldBlock
    );
    is_transient_kind || error.raw_os_error().is_some_and(|code| TRANSIENT_CODES.contains(&code))
}

/// The storage fails or has no room; the caller may try again.
pub(crate) fn unavailable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, message).with_retry_after(RETRY_AFTER)
}

/// A write with the same key is running.
pub(crate) fn conflict(message: String) -> Error {
    Error::new(ErrorKind::Conflict, message).with_retry_after(RETRY_AFTER)
}
