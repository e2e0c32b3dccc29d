//! Options of an audit log, and the key of its hash chain. Without the key nobody can forge a line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::redaction::Redaction;

/// What happens when lines cannot be written, because the disk is full or slower than the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Calls wait for a limited time and are then refused. No call runs without its line.
    #[default]
    Block,
    /// Lines are dropped and counted; a later line reports their number.
    Drop,
}

/// Options of an audit log.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// The current file. Rotated files are beside it as `.1`, `.2`, …; the head as `.head`, the lock as `.lock`.
    pub file: PathBuf,
    /// What happens when lines cannot be written.
    pub when_full: WhenFull,
    /// Bytes of a file at most.
    pub bytes_max: u64,
    /// Rotated files that are kept.
    pub kept_files: usize,
    /// Redaction of the values of arguments; `None` logs only their names.
    pub values: Option<Redaction>,
    /// The key of the hash chain; `None` for a plain hash.
    pub key: Option<AuditKey>,
    /// How long a call waits for its reservation.
    pub reserve_timeout: Duration,
    /// The time between two attempts after a write failure.
    pub retry_after: Duration,
    /// Lines in the queue at most.
    pub queue_lines_max: usize,
}

impl AuditOptions {
    /// The defaults for a log in `file`.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            when_full: WhenFull::default(),
            bytes_max: 100_000_000,
            kept_files: 10,
            values: None,
            key: None,
            reserve_timeout: Duration::from_secs(5),
            retry_after: Duration::from_millis(250),
            queue_lines_max: 8_192,
        }
    }
}

/// The key of a hash chain.
#[derive(Clone)]
pub struct AuditKey(Arc<[u8]>);

impl AuditKey {
    /// Bytes of a key at least; shorter keys can be guessed.
    pub const BYTES_MIN: usize = 16;

    /// The key with these bytes, trimmed of white space; `None` if it is too short.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.trim_ascii();
        (bytes.len() >= Self::BYTES_MIN).then(|| Self(bytes.into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

tidegate_core::impl_debug!(AuditKey, "***");
