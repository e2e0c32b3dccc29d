//! Where a log is and what it does.

use std::path::PathBuf;
use std::time::Duration;

use crate::key::AuditKey;
use crate::redaction::Redaction;

/// What happens when lines cannot be written: the disk is full, or slower than the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Calls wait for a while, and are then refused. None runs whose line would be lost.
    #[default]
    Block,
    /// Lines are dropped and counted; a line tells how many as soon as one can be written.
    Drop,
}

/// Where a log is and what it does.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// The file. Older ones stand beside it as `.1`, `.2`, …; its head as `.head`, its lock as `.lock`.
    pub file: PathBuf,
    /// What happens when lines cannot be written.
    pub when_full: WhenFull,
    /// A file is no larger, in bytes.
    pub bytes_max: u64,
    /// Older files that are kept.
    pub kept_files: usize,
    /// The values of arguments, with what is redacted in them; none for their names alone.
    pub values: Option<Redaction>,
    /// The key of the chain; none for a bare hash.
    pub key: Option<AuditKey>,
    /// How long a call waits for room for its line.
    pub reserve_timeout: Duration,
    /// After how long it is tried again to write what could not be written.
    pub retry_after: Duration,
    /// Lines that wait to be written, at most.
    pub queue_lines_max: usize,
}

impl AuditOptions {
    /// The log in `file`, with everything else as it is unless said.
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
