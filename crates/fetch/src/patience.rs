//! How often something is tried, and how long is waited in between.

use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::FetchError;
use crate::notice::Notice;
use crate::refusal::Trouble;

/// The attempts at one thing.
pub(crate) struct Patience<'a> {
    client: &'a Client,
    backoff: Backoff,
    failures: u32,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(client: &'a Client) -> Self {
        let options = client.options();
        Self { client, backoff: Backoff::new(options.delay_first, options.delay_longest), failures: 0 }
    }

    /// The last attempt came further than those before it.
    pub(crate) fn restore(&mut self) {
        self.failures = 0;
        self.backoff.reset();
    }

    /// Waits for the next attempt after `trouble`.
    ///
    /// # Errors
    /// When there is none: because it would not help, or because there were enough.
    pub(crate) async fn after(&mut self, trouble: Trouble) -> Result<(), FetchError> {
        let (reason, pause) = match trouble {
            Trouble::Passing { reason, pause, .. } => (reason, pause),
            Trouble::Final(error) => return Err(error),
        };
        self.failures += 1;
        if self.failures >= self.client.attempts_max() {
            let subject = self.client.subject().to_owned();
            return Err(FetchError::Unreachable { subject, attempts: self.failures, reason });
        }
        let delay = self.backoff.next_delay().max(pause);
        self.client.options().tell(&Notice::Waiting { reason, delay });
        tokio::time::sleep(delay).await;
        Ok(())
    }
}
