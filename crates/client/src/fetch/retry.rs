//! Retries: how often an operation is attempted, with which delays.

use super::client::ResultClient;
use super::download_event::DownloadEvent;
use super::error::FetchError;
use super::request_failure::RequestFailure;
use crate::backoff::Backoff;

/// The attempts at one operation.
pub(crate) struct RetryState<'a> {
    client: &'a ResultClient,
    backoff: Backoff,
    failures: u32,
}

impl<'a> RetryState<'a> {
    pub(crate) fn new(client: &'a ResultClient) -> Self {
        let options = client.options();
        Self { client, backoff: Backoff::new(options.initial_delay, options.max_delay), failures: 0 }
    }

    /// Resets the count, because the last attempt made progress.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
        self.backoff.reset();
    }

    /// Waits until the next attempt after `trouble`.
    ///
    /// # Errors
    /// Fails if another attempt would not help, or if the maximum is reached.
    pub(crate) async fn wait_after_failure(&mut self, trouble: RequestFailure) -> Result<(), FetchError> {
        let (reason, pause) = match trouble {
            RequestFailure::Transient { reason, retry_after: pause, .. } => (reason, pause),
            RequestFailure::Permanent(error) => return Err(error),
        };
        self.failures += 1;
        if self.failures >= self.client.attempts_max() {
            let subject = self.client.subject().to_owned();
            return Err(FetchError::Unreachable { subject, attempts: self.failures, reason });
        }
        let delay = self.backoff.next_delay().max(pause);
        self.client.options().notify(&DownloadEvent::Retrying { reason, delay });
        tokio::time::sleep(delay).await;
        Ok(())
    }
}
