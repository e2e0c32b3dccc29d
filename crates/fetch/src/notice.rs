//! What a download tells whoever waits for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something that happened on the way. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// More of the result is here, or is known.
    Moved(Standing),
    /// Something failed for that reason; it is tried again after the delay.
    Waiting {
        /// What failed.
        reason: String,
        /// Until the next attempt.
        delay: Duration,
    },
    /// A block did not have its hash; it is fetched once more.
    Damaged {
        /// The block's index.
        block: u64,
    },
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
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

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved(standing) => write!(f, "{} of {} bytes are here", standing.bytes, standing.bytes_known),
            Self::Waiting { reason, delay } => write!(f, "{reason}; trying again in {} ms", delay.as_millis()),
            Self::Damaged { block } => write!(f, "block {block} does not have its hash; it is fetched once more"),
        }
    }
}

/// Hears notices; it must not wait.
pub type NoticeListener = Arc<dyn Fn(&Notice) + Send + Sync>;
