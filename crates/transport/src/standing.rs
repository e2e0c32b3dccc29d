//! Whether the caller of an answer that takes long is still let in: asked again and again while it is waited for and
//! while it streams, so that a key that is revoked ends what it began: at once when another configuration is entered or
//! keys are read again, and now and then for what ends by itself, such as a token.

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
    changes: Changes,
    at: Instant,
}

/// Tells when somebody who was let in may be let in no longer: another configuration is entered, or keys are read again.
pub(crate) struct Changes {
    versions: watch::Receiver<u64>,
    renewals: watch::Receiver<u64>,
}

impl Changes {
    /// Those of `registry` from now on, and of what `identity` was let in by.
    pub(crate) fn of(identity: &dyn Identity, registry: &Registry) -> Self {
        Self { versions: registry.versions(), renewals: identity.renewals() }
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            Ok(()) = self.versions.changed() => {}
            Ok(()) = self.renewals.changed() => {}
            else => std::future::pending().await,
        }
    }
}

/// The caller is let in no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lapsed;

impl Standing {
    /// Of a caller of `registry` who was let in just now.
    pub(crate) fn new(identity: Arc<dyn Identity>, registry: &Registry) -> Self {
        let changes = Changes::of(&*identity, registry);
        Self { identity, changes, at: Instant::now() + ASK_EVERY }
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
                () = self.changes.next() => self.at = Instant::now(),
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

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tidegate_core::event::Events;
    use tidegate_core::{Caller, SnapshotBuilder};
    use tidegate_mcp::RpcError;

    use super::*;

    /// Somebody whose key was revoked, which no registry hears of.
    struct Revoked(watch::Sender<u64>);

    #[async_trait]
    impl Identity for Revoked {
        async fn caller(&self) -> Result<Caller, RpcError> {
            Err(RpcError::invalid_request("revoked"))
        }

        async fn is_let_in(&self) -> bool {
            false
        }

        fn renewals(&self) -> watch::Receiver<u64> {
            self.0.subscribe()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_asked_at_once_when_keys_are_read_again() {
        let registry = Registry::new(SnapshotBuilder::new().build(), Events::default());
        let identity = Arc::new(Revoked(watch::Sender::new(0)));
        let mut standing = Standing::new(identity.clone(), &registry);
        let begun = Instant::now();
        let work = async {
            identity.0.send_replace(1);
            std::future::pending::<()>().await;
        };
        assert_eq!(standing.during(work).await, Err(Lapsed));
        // Time stands still but for what is waited for.
        assert_eq!(Instant::now(), begun);
        // Where nothing tells of it, now and then.
        drop(registry);
        let silent = Arc::new(Revoked(watch::Sender::new(0)));
        let mut standing = Standing::new(silent, &Registry::new(SnapshotBuilder::new().build(), Events::default()));
        assert_eq!(standing.during(std::future::pending::<()>()).await, Err(Lapsed));
        assert_eq!(Instant::now(), begun + ASK_EVERY);
    }
}
