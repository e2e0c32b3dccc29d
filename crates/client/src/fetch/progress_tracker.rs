//! Counts the progress of a download across its tasks.

use parking_lot::Mutex;

use super::download_event::{DownloadEvent, DownloadListener, DownloadProgress};
use super::manifest::{ResultManifest, ResultStatus};

/// Counts bytes and rows, and notifies the listener of each change.
pub(crate) struct ProgressTracker {
    progress: Mutex<DownloadProgress>,
    listener: DownloadListener,
}

impl ProgressTracker {
    pub(crate) fn new(listener: DownloadListener) -> Self {
        Self { progress: Mutex::default(), listener }
    }

    /// Takes sizes and state from `manifest`.
    pub(crate) fn update_from_manifest(&self, manifest: &ResultManifest) {
        self.update(|progress| {
            progress.bytes_known = manifest.bytes;
            progress.rows_known = manifest.rows;
            progress.is_running = manifest.status == ResultStatus::Running;
        });
    }

    /// Counts bytes that have arrived.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.update(|progress| progress.bytes += bytes);
    }

    /// Subtracts bytes that were discarded.
    pub(crate) fn remove_bytes(&self, bytes: u64) {
        self.update(|progress| progress.bytes = progress.bytes.saturating_sub(bytes));
    }

    /// Counts the rows of a block that has arrived and matches its hash.
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
