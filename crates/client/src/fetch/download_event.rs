//! Events of a download, for progress and warnings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An event of a download. Contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadEvent {
    /// More of the result has arrived, or its manifest has changed.
    Progressed(DownloadProgress),
    /// An attempt failed; the next one starts after the delay.
    Retrying {
        /// Why the attempt failed.
        reason: String,
        /// Time until the next attempt.
        delay: Duration,
    },
    /// A block did not match its hash; it is fetched once more.
    BlockDamaged {
        /// Index of the block.
        block: u64,
    },
}

/// Progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DownloadProgress {
    /// Bytes of blocks that have arrived.
    pub bytes: u64,
    /// Bytes of all blocks in the manifest so far.
    pub bytes_known: u64,
    /// Rows of blocks that have arrived and match their hashes.
    pub rows: u64,
    /// Rows of all blocks in the manifest so far.
    pub rows_known: u64,
    /// Whether the result is still being written, so that more blocks will follow.
    pub is_running: bool,
}

impl fmt::Display for DownloadEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Progressed(download_progress) => {
                write!(f, "{} of {} bytes have arrived", download_progress.bytes, download_progress.bytes_known)
            }
            Self::Retrying { reason, delay } => write!(f, "{reason}; trying again in {} ms", delay.as_millis()),
            Self::BlockDamaged { block } => write!(f, "block {block} does not match its hash; it is fetched once more"),
        }
    }
}

/// Receives the events of a download. It must not block.
pub type DownloadListener = Arc<dyn Fn(&DownloadEvent) + Send + Sync>;
