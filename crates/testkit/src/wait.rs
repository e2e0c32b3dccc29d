//! Waiting in tests: for a condition or for a future, and never without a time limit; and time in tests with a paused clock
//! (`start_paused = true`), which passes only while every task waits.

use std::future::Future;
use std::time::Duration;

/// The time limit of every wait, long enough for slow machines.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The interval at which a condition is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits for `future`; panics after the time limit.
pub async fn within_timeout<T>(subject: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.unwrap_or_else(|_| panic!("{subject} did not come in time"))
}

/// Waits until `condition` holds; panics after the time limit.
pub async fn wait_until<F: Future<Output = bool>>(subject: &str, mut condition: impl FnMut() -> F) {
    within_timeout(subject, async {
        while !condition().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// Lets `time` pass. Other tasks run until they wait, in the order of their timers.
pub async fn pass_time(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Runs all other tasks until they wait.
pub async fn settle() {
    pass_time(Duration::from_millis(1)).await;
}
