//! Time in tests with a paused clock (`start_paused = true`): it passes only while every task waits.

use std::time::Duration;

/// Lets `time` pass. Other tasks run until they wait, in the order of their timers.
pub async fn pass_time(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Runs all other tasks until they wait.
pub async fn settle() {
    pass_time(Duration::from_millis(1)).await;
}
