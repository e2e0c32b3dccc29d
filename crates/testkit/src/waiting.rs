//! Waiting for a condition, with a deadline that only a failing test reaches.

use std::future::Future;
use std::time::Duration;

/// Longer than anything that a test waits for takes, on any machine.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for `future`. Fails after [`TEST_TIMEOUT`] with `subject`.
pub async fn within_timeout<T>(subject: &str, future: impl Future<Output = T>) -> T {
    let Ok(result) = tokio::time::timeout(TEST_TIMEOUT, future).await else { panic!("{subject}: timed out") };
    result
}

/// Waits until `condition` holds. Fails after [`TEST_TIMEOUT`] with `subject`.
pub async fn wait_until<F: Future<Output = bool>>(subject: &str, mut condition: impl FnMut() -> F) {
    within_timeout(subject, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
