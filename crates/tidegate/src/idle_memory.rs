//! Returns the memory of ended calls to the system.

use std::sync::Arc;
use std::time::Duration;

use tidegate_process_memory::{anonymous_bytes, release_free_memory};
use tidegate_runtime::Registry;
use tokio_util::sync::CancellationToken;

const CHECK_INTERVAL: Duration = Duration::from_secs(4);
/// Memory is returned while calls run, too, after so many checks.
const BUSY_CHECKS_MAX: u32 = 15;
/// Less memory is kept for the next calls.
const KEPT_BYTES: usize = 16 << 20;

/// Returns memory when no call runs and the process has grown since the last time, until `ended` fires.
pub(crate) fn spawn_release(registry: Arc<Registry>, ended: CancellationToken) {
    tokio::spawn(async move {
        let (mut released_to, mut busy_checks) = (anonymous_bytes().unwrap_or_default(), 0);
        while ended.run_until_cancelled(tokio::time::sleep(CHECK_INTERVAL)).await.is_some() {
            let has_grown = anonymous_bytes().is_some_and(|bytes| bytes > released_to + KEPT_BYTES);
            busy_checks = if has_grown && registry.jobs().open_count() > 0 { busy_checks + 1 } else { 0 };
            let is_busy = (1..BUSY_CHECKS_MAX).contains(&busy_checks);
            if has_grown && !is_busy && tokio::task::spawn_blocking(release_free_memory).await.is_ok() {
                released_to = anonymous_bytes().unwrap_or_default();
                busy_checks = 0;
            }
        }
    });
}
