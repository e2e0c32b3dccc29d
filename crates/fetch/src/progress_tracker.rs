//! Counts the progress of a download across its tasks.

use parking_lot::Mutex;

use crate::download_event::{DownloadEvent, DownloadListener, DownloadProgress};
use crate::manifest::{ResultManifest, ResultStatus};

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
        self.update(|download_progress| {
            download_progress.bytes_known = manifest.bytes;
            download_progress.rows_known = manifest.rows;
            download_progress.is_running = manifest.status == ResultStatus::Running;
        });
    }

    /// More bytes of blocks are here.
    /// Counts bytes that have arrived.
        self.update(|download_progress| download_progress.bytes += bytes);
    }

    /// Subtracts bytes that were discarded.
    pub(crate) fn remove_bytes(&self, bytes: u64) {
        self.update(|download_progress| download_progress.bytes = download_progress.bytes.saturating_sub(bytes));
    }

    /// Counts the rows of a block that has arrived and matches its hash.
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
