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
mod download;
mod manifest;
mod output_file;
mod tool_call;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use thiserror::Error;
use tidegate_core::escape_control_characters;

use crate::server::{AddressError, BearerToken, ServerMessage, ServerRefusal, TrustedAuthorities};
use manifest::{ResultManifest, ResultStatus};

pub use address::{ResultAddress, ResultServer};
pub use download::{FetchedFile, fetch};
pub use output_file::{ArrowFileConverter, OutputFile, UnfinishedFile, format_names, parse_format};
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

/// Why a result could not be fetched. No message contains a token.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum FetchError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("{}: a result can be written as {}; set one with --format", .path.display(), format_names())]
    UnknownFormat { path: PathBuf },
    #[error("the result is a file and cannot be written as {}; leave out --format to write the file itself", .format.name())]
    ResultIsFile { format: tidegate_core::Format },
    #[error("{} exists; --force overwrites it", .path.display())]
    DestinationExists { path: PathBuf },
    #[error("{}: {what}", .path.display())]
    InvalidDestination { path: PathBuf, what: &'static str },
    #[error("{} is being written by another run", .path.display())]
    DestinationBusy { path: PathBuf },
    #[error("the disk is full: {} could not be written", .path.display())]
    DiskFull { path: PathBuf },
    #[error("{} could not be {doing}: {source}", .path.display())]
    Disk { path: PathBuf, doing: &'static str, source: io::Error },
    #[error(
        "{subject}: the result does not exist; it may have expired, or belong to another caller, or no toolset of your \
         roles contains stored_result*{message}"
    )]
    ResultNotFound { subject: String, message: ServerMessage },
    #[error("{subject}: {refusal}")]
    Refused { subject: String, refusal: ServerRefusal },
    #[error(
        "{subject}: the link has expired (401); links are valid for five minutes; request a new one from the manifest with an API key{message}"
    )]
    LinkExpired { subject: String, message: ServerMessage },
    #[error("{subject}: this server has no REST endpoint at /rest/sql ({status}){message}")]
    RestNotFound { subject: String, status: u16, message: ServerMessage },
    #[error("{subject}: the server refuses the request ({status}){message}")]
    RequestRejected { subject: String, status: u16, message: ServerMessage },
    #[error("{subject} could not be reached: {reason}; given up after {attempts} attempts")]
    Unreachable { subject: String, attempts: u32, reason: String },
    #[error("{subject}: {reason}")]
    Tls { subject: String, reason: String },
    #[error("{subject}: {reason}; the query may still be running on the server and was not sent again")]
    ResponseLost { subject: String, reason: String },
    #[error("{subject}: this is not a valid response of a server with stored results: {what}")]
    InvalidResponse { subject: String, what: String },
    #[error("the server's block {block} is damaged: {what}")]
    Damaged { block: u64, what: String },
    #[error("the server's file has {expected} bytes, but {bytes} arrived")]
    LengthMismatch { expected: u64, bytes: u64 },
    #[error("the result changed while it was fetched; fetch it again")]
    ResultChanged,
    #[error("the result has not grown for {minutes} minutes; its query may be blocked")]
    ResultStalled { minutes: u64 },
    #[error("the stored result is incomplete after {rows} rows: {reason}; --partial accepts these rows")]
    Incomplete { rows: u64, reason: String },
    // This process writes the format, so the detail is for its own user.
    #[error("the rows cannot be written in this format: {}", .0.detail().unwrap_or(.0.message()))]
    Format(tidegate_core::Error),
    #[error("stopped")]
    Interrupted,
    #[error("a part of this program failed: {0}")]
    Internal(String),
    /// The download failed, and its blocks are kept.
    #[error("{error}\n{kept}")]
    Resumable { error: Box<FetchError>, kept: ResumeInfo },
}

impl FetchError {
    /// Whether the arguments were invalid, so that nothing was requested.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Address(_)
                | Self::UnknownFormat { .. }
                | Self::DestinationExists { .. }
                | Self::InvalidDestination { .. }
        )
    }

    /// The error itself, without the information about kept blocks.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Resumable { error, .. } => error.cause(),
            error => error,
        }
    }

    /// The error for the status 404 of a path of REST: the server has no REST, or what the call names is not there.
    fn path_not_found(subject: String, message: ServerMessage) -> Self {
        let status = 404;
        match message.is_refused_call() {
            true => Self::RequestRejected { subject, status, message },
            false => Self::RestNotFound { subject, status, message },
        }
    }

    fn disk_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Disk { path, doing, source },
        }
    }

    fn from_join_error(error: &tokio::task::JoinError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// The kept blocks of a failed download, and the command that continues it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeInfo {
    /// Number of blocks that need not be fetched again.
    pub blocks: usize,
    /// Folder of the blocks.
    pub folder: PathBuf,
    /// Command that continues the download.
    pub command: String,
}

impl fmt::Display for ResumeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, folder, command } = self;
        let (noun, verb) = if *blocks == 1 { ("block", "is") } else { ("blocks", "are") };
        write!(f, "{blocks} {noun} {verb} kept in {}; to continue: {command}", folder.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_has_its_own_error() {
        let error =
            |kind: io::ErrorKind| FetchError::disk_error(Path::new("out.csv"), "written")(kind.into()).to_string();
        assert_eq!(error(io::ErrorKind::StorageFull), "the disk is full: out.csv could not be written");
        assert_eq!(error(io::ErrorKind::PermissionDenied), "out.csv could not be written: permission denied");
    }

    #[test]
    fn errors_stay_small() {
        assert!(size_of::<FetchError>() <= 120, "{}", size_of::<FetchError>());
    }
}
