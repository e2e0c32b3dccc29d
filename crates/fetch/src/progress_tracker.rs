//! How far a download is, counted by all who work on it.

use parking_lot::Mutex;

use crate::download_event::{DownloadEvent, DownloadListener, DownloadProgress};
use crate::manifest::{ResultManifest, ResultStatus};

/// Counts, and tells each change.
pub(crate) struct ProgressTracker {
    progress: Mutex<DownloadProgress>,
    listener: DownloadListener,
}

impl ProgressTracker {
    pub(crate) fn new(listener: DownloadListener) -> Self {
        Self { progress: Mutex::default(), listener }
    }

    /// That is known of the result.
    pub(crate) fn update_from_manifest(&self, manifest: &ResultManifest) {
        self.update(|download_progress| {
            download_progress.bytes_known = manifest.bytes;
            download_progress.rows_known = manifest.rows;
            download_progress.is_running = manifest.status == ResultStatus::Running;
        });
    }

    /// More bytes of blocks are here.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.update(|download_progress| download_progress.bytes += bytes);
    }

    /// Bytes that were here are worth nothing.
    pub(crate) fn remove_bytes(&self, bytes: u64) {
        self.update(|download_progress| download_progress.bytes = download_progress.bytes.saturating_sub(bytes));
    }

    /// A block with that many rows is here and checked.
    pub(crate) fn add_verified_rows(&self, rows: u64) {
        self.update(|download_progress| download_progress.rows += rows);
    }

    fn update(&self, change: impl FnOnce(&mut DownloadProgress)) {
        let download_progress = {
            let mut validity = self.progress.lock();
            change(&mut validity);
            *validity
        };
        (self.listener)(&DownloadEvent::Progressed(download_progress));
    }
}
