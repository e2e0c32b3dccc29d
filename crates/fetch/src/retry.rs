//! How often something is tried, and how long is waited in between.

use crate::backoff::Backoff;
use crate::client::ResultClient;
use crate::download_event::DownloadEvent;
use crate::error::FetchError;
use crate::request_failure::RequestFailure;

/// The attempts at one thing.
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

    /// The last attempt came further than those before it.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
        self.backoff.reset();
    }

    /// Waits for the next attempt after `trouble`.
    ///
    /// # Errors
    /// When there is none: because it would not help, or because there were enough.
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
