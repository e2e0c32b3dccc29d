//! The progress of a download across its tasks: its events, and a bar on the terminal.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use tidegate_core::escape_control_characters;

use crate::fetch::manifest::{ResultManifest, ResultStatus};

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
            Self::Progressed(DownloadProgress { bytes, bytes_known, .. }) => {
                write!(f, "{bytes} of {bytes_known} bytes have arrived")
            }
            Self::Retrying { reason, delay } => write!(f, "{reason}; trying again in {} ms", delay.as_millis()),
            Self::BlockDamaged { block } => write!(f, "block {block} does not match its hash; it is fetched once more"),
        }
    }
}

/// Receives the events of a download. It must not block.
pub type DownloadListener = Arc<dyn Fn(&DownloadEvent) + Send + Sync>;

pub(crate) struct ProgressTracker {
    progress: Mutex<DownloadProgress>,
    listener: DownloadListener,
}

impl ProgressTracker {
    pub(crate) fn new(listener: DownloadListener) -> Self {
        Self { progress: Mutex::default(), listener }
    }

    pub(crate) fn update_from_manifest(&self, manifest: &ResultManifest) {
        self.update(|progress| {
            progress.bytes_known = manifest.bytes;
            progress.rows_known = manifest.rows;
            progress.is_running = manifest.status == ResultStatus::Running;
        });
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.update(|progress| progress.bytes += bytes);
    }

    pub(crate) fn remove_bytes(&self, bytes: u64) {
        self.update(|progress| progress.bytes = progress.bytes.saturating_sub(bytes));
    }

    pub(crate) fn add_verified_rows(&self, rows: u64) {
        self.update(|progress| progress.rows += rows);
    }

    fn update(&self, change: impl FnOnce(&mut DownloadProgress)) {
        let progress = {
            let mut progress = self.progress.lock();
            change(&mut progress);
            *progress
        };
        (self.listener)(&DownloadEvent::Progressed(progress));
    }
}

const DRAWN_PER_SECOND_MAX: u8 = 10;
const COMPLETE_TEMPLATE: &str = "{bar:24} {binary_bytes} {msg}, {binary_bytes_per_sec}, {eta} left";
/// Template while the result is still being written, so that its size is unknown.
const RUNNING_TEMPLATE: &str = "{bar:24} {binary_bytes} {msg}, {binary_bytes_per_sec}, still growing";

/// A progress bar on standard error. Hidden if that is not a terminal, and removed on drop.
pub struct DownloadProgressBar {
    bar: ProgressBar,
    complete_style: ProgressStyle,
    running_style: ProgressStyle,
}

impl DownloadProgressBar {
    /// Creates a bar; `is_quiet` hides it.
    pub fn new(is_quiet: bool) -> Self {
        let target = match is_quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND_MAX),
        };
        let style = |template| {
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> ")
        };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, complete_style: style(COMPLETE_TEMPLATE), running_style: style(RUNNING_TEMPLATE) }
    }

    /// Whether the bar is hidden.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Displays a download event.
    pub fn on_event(&self, notice: &DownloadEvent) {
        match notice {
            DownloadEvent::Progressed(progress) => self.update_progress(progress),
            DownloadEvent::Retrying { .. } | DownloadEvent::BlockDamaged { .. } => {
                self.bar.println(escape_control_characters(&notice.to_string()));
            }
        }
    }

    fn update_progress(&self, progress: &DownloadProgress) {
        let style = if progress.is_running { &self.running_style } else { &self.complete_style };
        self.bar.set_style(style.clone());
        let (bytes, rows) = (BinaryBytes(progress.bytes_known), HumanCount(progress.rows));
        self.bar.set_message(format!("of {bytes}, {rows} rows"));
        self.bar.update(|state| {
            state.set_len(progress.bytes_known);
            state.set_pos(progress.bytes);
        });
    }
}

impl Drop for DownloadProgressBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
