//! What a download tells whoever waits for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something that happened on the way. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadEvent {
    /// More of the result is here, or is known.
    Progressed(DownloadProgress),
    /// Something failed for that reason; it is tried again after the delay.
    Retrying {
        /// What failed.
        reason: String,
        /// Until the next attempt.
        delay: Duration,
    },
    /// A block did not have its hash; it is fetched once more.
    BlockDamaged {
        /// The block's index.
        block: u64,
    },
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DownloadProgress {
    /// Bytes of blocks that are here.
    pub bytes: u64,
    /// Bytes of all blocks that are known.
    pub bytes_known: u64,
    /// Rows of blocks that are here and checked.
    pub rows: u64,
    /// Rows of all blocks that are known.
    pub rows_known: u64,
    /// Whether the result is still being written, so that there will be more.
    pub is_running: bool,
}

impl fmt::Display for DownloadEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Progressed(download_progress) => {
                write!(f, "{} of {} bytes are here", download_progress.bytes, download_progress.bytes_known)
            }
            Self::Retrying { reason, delay } => write!(f, "{reason}; trying again in {} ms", delay.as_millis()),
            Self::BlockDamaged { block } => write!(f, "block {block} does not have its hash; it is fetched once more"),
        }
    }
}

/// Hears notices; it must not wait.
pub type DownloadListener = Arc<dyn Fn(&DownloadEvent) + Send + Sync>;
