//! The background task of a folder.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

use super::shared::FolderShared;

/// The wait after a failed move of rows.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Moves rows when they are many or old, and maintains the tables, until the folder is closed.
pub(crate) async fn run(shared: Arc<FolderShared>) {
    let mut stop = shared.stop.subscribe();
    let interval = shared.options.maintenance_interval.max(Duration::from_millis(1));
    let mut maintenance = tokio::time::interval_at(Instant::now() + interval, interval);
    maintenance.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // No row becomes old enough sooner, so a table that gets its first row needs no wake-up.
    let idle = shared.options.flush_age.max(Duration::from_millis(1));
    let mut retry_at = None;
    while !*stop.borrow_and_update() {
        let next = shared.next_flush().unwrap_or_else(|| Instant::now() + idle);
        let next = retry_at.map_or(next, |retry: Instant| retry.max(next));
        tokio::select! {
            // The folder was closed, or dropped.
            _ = stop.changed() => return,
            () = shared.flush_due.notified() => {}
            () = tokio::time::sleep_until(next) => {}
            _ = maintenance.tick() => {
                shared.maintain().await;
                continue;
            }
        }
        let is_waiting = retry_at.is_some_and(|retry| Instant::now() < retry);
        if is_waiting && shared.memory_waiters.load(Ordering::SeqCst) == 0 {
            continue;
        }
        // The error is in the log and in the status of the table.
        let flushed = shared.flush_due_tables().await;
        retry_at = flushed.is_err().then(|| Instant::now() + RETRY_AFTER);
    }
}
