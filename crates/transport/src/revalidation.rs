//! Whether the caller of an answer that takes long is still let in: asked again and again while it is waited for and
//! while it streams, so that a key that is revoked ends what it began: at once when another configuration is entered or
//! keys are read again, and now and then for what ends by itself, such as a token.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Registry;
use tidegate_mcp::{AnswerFrame, AnswerStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::batch::CallerResolver;

/// How often it is asked. What takes less costs nothing.
pub(crate) const REVALIDATE_EVERY: Duration = Duration::from_secs(5);

/// The caller of one answer, and when it is asked about again.
pub(crate) struct SessionValidity {
    identity: Arc<dyn CallerResolver>,
    changes: RevalidationTriggers,
    next_check: Instant,
}

/// Tells when somebody who was let in may be let in no longer: another configuration is entered, or keys are read again.
pub(crate) struct RevalidationTriggers {
    versions: watch::Receiver<u64>,
    renewals: watch::Receiver<u64>,
}

impl RevalidationTriggers {
    /// Those of `registry` from now on, and of what `identity` was let in by.
    pub(crate) fn subscribe(identity: &dyn CallerResolver, registry: &Registry) -> Self {
        Self { versions: registry.versions(), renewals: identity.credential_reloads() }
    }

    /// Waits for the next.
    pub(crate) async fn triggered(&mut self) {
        tokio::select! {
            Ok(()) = self.versions.changed() => {}
            Ok(()) = self.renewals.changed() => {}
            else => std::future::pending().await,
        }
    }
}

/// The caller is let in no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revoked;

impl SessionValidity {
    /// Of a caller of `registry` who was let in just now.
    pub(crate) fn new(identity: Arc<dyn CallerResolver>, registry: &Registry) -> Self {
        let changes = RevalidationTriggers::subscribe(&*identity, registry);
        Self { identity, changes, next_check: Instant::now() + REVALIDATE_EVERY }
    }

    /// What `work` gives, unless its caller is let in no longer; then it is dropped.
    pub(crate) async fn run_while_valid<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Revoked> {
        let mut work = std::pin::pin!(work);
        loop {
            self.check_if_due().await?;
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                () = sleep_until(self.next_check) => {}
                () = self.changes.triggered() => self.next_check = Instant::now(),
            }
        }
    }

    /// The next part of `stream`; `None` at its end.
    pub(crate) async fn next_frame(&mut self, stream: &mut AnswerStream) -> Result<Option<AnswerFrame>, Revoked> {
        self.run_while_valid(stream.next()).await
    }

    /// When it is asked next.
    pub(crate) fn next_check_at(&self) -> Instant {
        self.next_check
    }

    /// Asks if it is time to.
    pub(crate) async fn check_if_due(&mut self) -> Result<(), Revoked> {
        if Instant::now() < self.next_check {
            return Ok(());
        }
        let is_let_in = self.identity.is_admitted().await;
        self.next_check = Instant::now() + REVALIDATE_EVERY;
        if is_let_in { Ok(()) } else { Err(Revoked) }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tidegate_core::event::EventDispatcher;
    use tidegate_core::{Caller, SnapshotBuilder};
    use tidegate_mcp::RpcError;

    use super::*;

    /// Somebody whose key was revoked, which no registry hears of.
    struct RevokedCaller(watch::Sender<u64>);

    #[async_trait]
    impl CallerResolver for RevokedCaller {
        async fn resolve_caller(&self) -> Result<Caller, RpcError> {
            Err(RpcError::invalid_request("revoked"))
        }

        async fn is_admitted(&self) -> bool {
            false
        }

        fn credential_reloads(&self) -> watch::Receiver<u64> {
            self.0.subscribe()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn revalidates_at_once_when_keys_are_reloaded() {
        let registry = Registry::new(SnapshotBuilder::new().build(), EventDispatcher::default());
        let identity = Arc::new(RevokedCaller(watch::Sender::new(0)));
        let mut session_validity = SessionValidity::new(identity.clone(), &registry);
        let begun = Instant::now();
        let work = async {
            identity.0.send_replace(1);
            std::future::pending::<()>().await;
        };
        assert_eq!(session_validity.run_while_valid(work).await, Err(Revoked));
        // Time stands still but for what is waited for.
        assert_eq!(Instant::now(), begun);
        // Where nothing tells of it, now and then.
        drop(registry);
        let silent = Arc::new(RevokedCaller(watch::Sender::new(0)));
        let mut standing =
            SessionValidity::new(silent, &Registry::new(SnapshotBuilder::new().build(), EventDispatcher::default()));
        assert_eq!(standing.run_while_valid(std::future::pending::<()>()).await, Err(Revoked));
        assert_eq!(Instant::now(), begun + REVALIDATE_EVERY);
    }
}
