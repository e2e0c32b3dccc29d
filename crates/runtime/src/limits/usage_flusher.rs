//! Writes the usage file at regular intervals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::meters::Meters;
use super::usage_file;

/// The usage of this time can be lost in a crash.
const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

/// Writes the usage file until it is stopped.
#[derive(Debug)]
pub(crate) struct UsageFlusher {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl UsageFlusher {
    /// Starts to write the usage of `meters` into `file`.
    pub(crate) fn start(meters: Arc<Meters>, file: PathBuf) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut has_failed = false;
            while !stopped.is_cancelled() {
                let _ = tokio::time::timeout(FLUSH_INTERVAL, stopped.cancelled()).await;
                has_failed = flush(&meters, &file, has_failed).await;
            }
        });
        Self { stop, task }
    }

    /// Writes the file for the last time.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        // The task ends by itself; a panic in it was already reported.
        let _ = self.task.await;
    }
}

/// Returns whether writing failed; only the first failure is logged.
async fn flush(meters: &Meters, file: &std::path::Path, has_failed: bool) -> bool {
    let Some(written) = meters.take_changed_usage() else { return has_failed };
    let path = file.to_owned();
    let done = tokio::task::spawn_blocking(move || usage_file::write(&path, &written)).await;
    let failed = done.map_err(std::io::Error::other).and_then(|written| written).err();
    if let Some(error) = &failed {
        meters.mark_changed();
        if !has_failed {
            tracing::error!(file = %file.display(), %error, "cannot write the usage file");
        }
    }
    failed.is_some()
}
