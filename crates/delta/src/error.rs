//! What can go wrong with a Delta table, and the flag that ends work that blocks a thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::error::ArrowError;
use parquet::errors::ParquetError;
use thiserror::Error;

/// An error of a Delta table. Unless the variant says otherwise, the table is as it was before the call.
#[derive(Debug, Error)]
pub enum DeltaError {
    /// The folder has a table already.
    #[error("the folder \"{}\" has a Delta table already", .0.display())]
    Exists(PathBuf),
    /// The version that was to be written exists: another program wrote to the table. Open the table again.
    #[error("another program wrote version {0} of the table; open the table again")]
    Conflict(u64),
    /// The log entry of this version was written, but not confirmed to be on disk. Whether the version exists is known
    /// after the table is opened again; the data files of the commit must be kept until then.
    #[error("version {version} of the table was written, but is not confirmed to be on disk: {source}")]
    Unconfirmed {
        /// The version.
        version: u64,
        /// What failed.
        source: std::io::Error,
    },
    /// The table needs a feature that this reader and writer lacks.
    #[error("the table needs the Delta feature \"{0}\", which is not supported")]
    UnsupportedFeature(String),
    /// The table can be read, and no version can be written: that needs a feature that this writer lacks.
    #[error("writers of the table need the Delta feature \"{0}\", which is not supported")]
    UnsupportedWriterFeature(String),
    /// The log names a file that is not below the folder of the table.
    #[error("the log has the file \"{0}\", which is not below the folder of the table")]
    OutsideOfTable(String),
    /// A column's type has no lossless form in a Delta table.
    #[error("column \"{column}\" has type {data_type}, which a Delta table cannot hold: {reason}")]
    UnsupportedType {
        /// The name of the column.
        column: String,
        /// Its Arrow type.
        data_type: String,
        /// Why.
        reason: &'static str,
    },
    /// The columns, or the columns to partition by, cannot form a table.
    #[error("{0}")]
    InvalidSchema(String),
    /// Rows do not fit the table.
    #[error("{0}")]
    InvalidRows(String),
    /// A commit does not fit the table.
    #[error("{0}")]
    InvalidCommit(String),
    /// The log or a file of the table is not as the protocol demands.
    #[error("\"{}\" is damaged: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused an operation on a file.
    #[error("\"{}\": {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it answered.
        source: std::io::Error,
    },
    /// A Parquet file cannot be written or read.
    #[error("\"{}\": {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ParquetError,
    },
    /// The work was ended by its [`super::StopFlag`]. What it made is removed.
    #[error("the work was stopped")]
    Stopped,
    /// A batch cannot be converted.
    #[error("the rows cannot be converted: {0}")]
    Arrow(#[from] ArrowError),
}

impl DeltaError {
    /// Whether the table is damaged, or has something that is not supported, until its owner acts.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::UnsupportedFeature(_)
                | Self::UnsupportedWriterFeature(_)
                | Self::OutsideOfTable(_)
                | Self::UnsupportedType { .. }
                | Self::InvalidSchema(_)
                | Self::Corrupt { .. }
        )
    }

    /// A function that adds the path to an error of the operating system.
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// A function that adds the path to an error of the Parquet library.
    pub(super) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> Self + '_ {
        move |source| Self::Parquet { path: path.to_owned(), source }
    }

    /// A file that is not as the protocol demands.
    pub(super) fn corrupt(path: &Path, reason: impl ToString) -> Self {
        Self::Corrupt { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// A flag that work checks between two steps. Clones are the same flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Ends the work with its next step.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if the work is to end.
    ///
    /// # Errors
    /// `Stopped`.
    pub fn check(&self) -> Result<(), DeltaError> {
        if self.is_stopped() { Err(DeltaError::Stopped) } else { Ok(()) }
    }
}
