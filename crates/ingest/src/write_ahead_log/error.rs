//! Errors of the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a log could not be opened, or a record was not appended. Several waiting records may get the same error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteAheadLogError {
    /// Another process, or another part of this one, has the log open.
    #[error("the log {} is open already", folder.display())]
    Locked {
        /// The folder of the log.
        folder: PathBuf,
    },
    /// The disk or the quota is full. The record was not stored.
    #[error("no space for the log: {source}")]
    NoSpace {
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// The log has its maximum size. The record was not stored.
    #[error("the log is full: it has {bytes} of at most {bytes_max} bytes")]
    Full {
        /// The bytes of the log.
        bytes: u64,
        /// The bound of [`WriteAheadLogOptions`](super::WriteAheadLogOptions).
        bytes_max: u64,
    },
    /// The record is too large for any log.
    #[error("the record has {bytes} bytes; a record may have {bytes_max}")]
    TooLarge {
        /// The bytes of the record.
        bytes: u64,
        /// The bytes that a record may have.
        bytes_max: u64,
    },
    /// The record was not stored, for another reason.
    #[error("the log cannot be written: {source}")]
    Write {
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// A sync failed: it is unknown what is on disk. The log refuses everything until it is opened again.
    #[error("the log failed and must be opened again; the last records may be stored or not: {source}")]
    Failed {
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
    /// A file does not contain what was written to it, other than at the end of the log.
    #[error("the log is damaged: {} at byte {offset}: {problem}", file.display())]
    Damaged {
        /// The segment.
        file: PathBuf,
        /// Where the damage begins, in bytes.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// The log comes from another version of the program.
    #[error("the log {} has version {version} of the format, and this program reads version {supported}", file.display())]
    Version {
        /// The segment.
        file: PathBuf,
        /// The version of the file.
        version: u32,
        /// The version that can be read.
        supported: u32,
    },
    /// The content of a record was refused when the log was opened.
    #[error("record {sequence} of the log cannot be applied: {source}")]
    Replay {
        /// The record.
        sequence: u64,
        /// The error of the function that applies records.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: Arc<io::Error>,
    },
}

impl WriteAheadLogError {
    /// Makes the error of an operation on `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source: Arc::new(source) }
    }

    /// The error of the function that applies the record `sequence`.
    pub(crate) fn replay(sequence: u64, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Replay { sequence, source: Arc::new(error) }
    }

    /// The error of a write that was undone.
    pub(crate) fn not_written(source: io::Error) -> Self {
        let is_full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let source = Arc::new(source);
        if is_full { Self::NoSpace { source } } else { Self::Write { source } }
    }
}
