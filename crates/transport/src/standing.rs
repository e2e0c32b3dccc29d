//! Whether the caller of an answer that takes long is still let in: asked again and again while it is waited for and
//! while it streams, so that a key that is revoked ends what it began: at once when another configuration is entered, and
//! now and then for what ends by itself, such as a token.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Registry;
use tidegate_mcp::{AnswerStream, Frame};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::batch::Identity;

/// How often it is asked. What takes less costs nothing.
pub(crate) const ASK_EVERY: Duration = Duration::from_secs(5);

/// The caller of one answer, and when it is asked about again.
pub(crate) struct Standing {
    identity: Arc<dyn Identity>,
    /// Tells when another configuration is entered.
    versions: watch::Receiver<u64>,
    at: Instant,
}

/// The caller is let in no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lapsed;

impl Standing {
    /// Of a caller of `registry` who was let in just now.
    pub(crate) fn new(identity: Arc<dyn Identity>, registry: &Registry) -> Self {
        Self { identity, versions: registry.versions(), at: Instant::now() + ASK_EVERY }
    }

    /// What `work` gives, unless its caller is let in no longer; then it is dropped.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Lapsed> {
        let mut work = std::pin::pin!(work);
        loop {
            self.ask().await?;
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                () = sleep_until(self.at) => {}
                Ok(()) = self.versions.changed() => self.at = Instant::now(),
            }
        }
    }

    /// The next part of `stream`; `None` at its end.
    pub(crate) async fn next(&mut self, stream: &mut AnswerStream) -> Result<Option<Frame>, Lapsed> {
        self.during(stream.next()).await
    }

    /// When it is asked next.
    pub(crate) fn asks_at(&self) -> Instant {
        self.at
    }

    /// Asks if it is time to.
    pub(crate) async fn ask(&mut self) -> Result<(), Lapsed> {
        if Instant::now() < self.at {
            return Ok(());
        }
        let is_let_in = self.identity.is_let_in().await;
        self.at = Instant::now() + ASK_EVERY;
        if is_let_in { Ok(()) } else { Err(Lapsed) }
    }
}
