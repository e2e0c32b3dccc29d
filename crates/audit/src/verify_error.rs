//! Why verification failed.

use std::io;
use std::path::{Path, PathBuf};

/// The first altered line of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: line {line}: {reason}", .file.display())]
pub struct BrokenLog {
    /// The file.
    pub file: PathBuf,
    /// The line in the file, from 1. If the end is missing, one more than the number of lines.
    pub line: u64,
    /// What is wrong.
    pub reason: String,
}

/// Why verification failed.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The log was altered.
    #[error(transparent)]
    Broken(#[from] BrokenLog),
    /// A file cannot be read.
    #[error("{}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The log was rotated during every attempt.
    #[error("the log is rotated faster than its files can be opened; verify a copy, or raise audit.max_size")]
    RotatedTooOften,
}

/// The altered line `line` of `file`.
pub(crate) fn broken_log(file: &Path, line: u64, reason: impl Into<String>) -> BrokenLog {
    BrokenLog { file: file.to_owned(), line, reason: reason.into() }
}
