//! Client of stored results: downloads one over HTTP, block by block, and writes it to a file.
//!
//! Blocks arrive as Arrow, several at the same time. Each one is verified against its hash in the manifest. Blocks stay
//! beside the file until the file is complete, so no block is fetched twice, whatever fails. The writers of the server
//! convert the rows to the requested format.
//!
//! Memory is bounded by the blocks that are being fetched. Blocks are written in order, and a file has its final name
//! only when it is complete. Its progress is reported as events, and shown as a bar on the terminal.

mod address;
mod client;
mod destination;
mod download;
mod error;
mod manifest;
mod result_file_writer;
mod tool_call;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use tidegate_core::escape_control_characters;

use crate::server::{BearerToken, TrustedAuthorities};
use manifest::{ResultManifest, ResultStatus};

pub use address::{ResultAddress, ResultServer};
pub use destination::{Destination, UnfinishedFile, format_names, parse_format};
pub use download::{FetchedFile, fetch};
pub use error::{FetchError, ResumeInfo};
pub use result_file_writer::ArrowFileConverter;
pub use tool_call::{RemoteQuery, TransportChange, call_tool, control_transports, start_query};

/// Options of a download.
#[derive(Clone)]
pub struct FetchOptions {
    /// Bearer token of the caller. It is not sent to a result with a link, for which the link is sufficient.
    pub bearer: Option<BearerToken>,
    /// The authorities that may sign the certificate of the server; `None` for those of the system.
    pub authorities: Option<TrustedAuthorities>,
    /// Number of blocks that are fetched at the same time.
    pub parallel: usize,
    /// Whether the rows of an incomplete result are accepted.
    pub accept_incomplete: bool,
    /// Attempts without progress after which the download fails. A server that has never responded gets fewer.
    pub attempts_max: u32,
    /// Delay after the first failed attempt; later delays double.
    pub initial_delay: Duration,
    /// Longest delay between attempts.
    pub max_delay: Duration,
    /// Timeout for establishing a connection.
    pub connect_timeout: Duration,
    /// How long a server may send nothing during a response.
    pub read_timeout: Duration,
    /// How long a running result may stay without new blocks.
    pub stall_timeout: Duration,
    /// How long a query may take until its response begins.
    pub response_timeout: Duration,
    /// Receives progress, retries and damaged blocks.
    pub listener: DownloadListener,
}

impl Default for FetchOptions {
    /// No credential, four blocks at the same time, ten attempts.
    fn default() -> Self {
        Self {
            bearer: None,
            authorities: None,
            parallel: 4,
            accept_incomplete: false,
            attempts_max: 10,
            initial_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(15 * 60),
            response_timeout: Duration::from_secs(15 * 60),
            listener: Arc::new(|_| {}),
        }
    }
}

impl FetchOptions {
    pub(crate) fn notify(&self, notice: &DownloadEvent) {
        (self.listener)(notice);
    }
}

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

struct ProgressTracker {
    progress: Mutex<DownloadProgress>,
    listener: DownloadListener,
}

impl ProgressTracker {
    pub(crate) fn new(listener: DownloadListener) -> Self {
        Self { progress: Mutex::default(), listener }
    }

    fn update_from_manifest(&self, manifest: &ResultManifest) {
        self.update(|progress| {
            progress.bytes_known = manifest.bytes;
            progress.rows_known = manifest.rows;
            progress.is_running = manifest.status == ResultStatus::Running;
        });
    }

    fn add_bytes(&self, bytes: u64) {
        self.update(|progress| progress.bytes += bytes);
    }

    fn remove_bytes(&self, bytes: u64) {
        self.update(|progress| progress.bytes = progress.bytes.saturating_sub(bytes));
    }

    fn add_verified_rows(&self, rows: u64) {
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
