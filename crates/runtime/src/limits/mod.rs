//! Measures and enforces the limits of calls.

mod admission;
mod charges;
mod meter;
mod meter_table;
mod meters;
mod usage;
mod usage_file;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use self::admission::{Admission, AdmissionGuard, PermitQueues, RunPermits};
pub(crate) use self::charges::{ReachedLimit, UsageCharges};
pub(crate) use self::meters::Meters;
pub(crate) use self::usage::{Calendar, UsageAmount};

/// The usage of this time can be lost in a crash.
const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct UsageFlusher {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl UsageFlusher {
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

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        // The task ends by itself; a panic in it was already reported.
        let _ = self.task.await;
    }
}

/// Returns whether writing failed; only the first failure is logged.
async fn flush(meters: &Meters, file: &Path, has_failed: bool) -> bool {
    let Some(record) = meters.take_changed_usage() else { return has_failed };
    let path = file.to_owned();
    let written = tokio::task::spawn_blocking(move || record.write(&path)).await;
    let failure = written.map_err(io::Error::other).and_then(|written| written).err();
    if let Some(error) = &failure {
        meters.mark_changed();
        if !has_failed {
            tracing::error!(file = %file.display(), %error, "cannot write the usage file");
        }
    }
    failure.is_some()
}
