//! Why a journal file, or a part of one, cannot be read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A journal file, or an object in it, that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}", path.display(), at_byte(*offset))]
pub struct JournalError {
    path: Arc<Path>,
    offset: u64,
    reason: String,
}

fn at_byte(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!(", at byte {offset}") }
}

impl JournalError {
    pub(crate) fn new(path: &Arc<Path>, offset: u64, reason: impl Into<String>) -> Self {
        Self { path: path.clone(), offset, reason: reason.into() }
    }

    pub(crate) fn of_path(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self { path: path.into().into(), offset: 0, reason: reason.into() }
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The position of the object in the file, in bytes; 0 for the file as a whole.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What is wrong.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
