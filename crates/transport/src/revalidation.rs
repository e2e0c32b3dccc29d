//! Session revalidation: checks repeatedly whether the caller of a long answer is still admitted, while the answer is
//! produced and streamed. A revoked key thus ends its answers. The check runs at once when a configuration is applied
//! or keys are reloaded, and at intervals for credentials that expire by themselves, such as tokens.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{Stream, stream};
use serde_json::json;
use tidegate_core::{Caller, ErrorKind};
use tidegate_mcp::{DecodeError, IncomingMessage, ResponseFrame, ResponseStream, RpcError, RpcResponse};
use tidegate_runtime::Registry;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Interval between two checks. Shorter answers are not checked.
pub(crate) const REVALIDATE_EVERY: Duration = Duration::from_secs(5);

pub(crate) struct CallerRevalidator {
    resolver: Arc<dyn CallerResolver>,
    changes: RevalidationTriggers,
    next_check: Instant,
}

/// Fires when admission may have changed: a configuration was applied, or keys were reloaded.
pub(crate) struct RevalidationTriggers {
    versions: watch::Receiver<u64>,
    renewals: watch::Receiver<u64>,
}

impl RevalidationTriggers {
    pub(crate) fn subscribe(resolver: &dyn CallerResolver, registry: &Registry) -> Self {
        Self { versions: registry.versions(), renewals: resolver.credential_reloads() }
    }

    pub(crate) async fn triggered(&mut self) {
        tokio::select! {
            Ok(()) = self.versions.changed() => {}
            Ok(()) = self.renewals.changed() => {}
            else => std::future::pending().await,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revoked;

impl CallerRevalidator {
    pub(crate) fn new(resolver: Arc<dyn CallerResolver>, registry: &Registry) -> Self {
        let changes = RevalidationTriggers::subscribe(&*resolver, registry);
        Self { resolver, changes, next_check: Instant::now() + REVALIDATE_EVERY }
    }

    /// The output of `work`. Drops `work` when its caller is no longer admitted. A large future is pinned by the caller,
    /// because the argument of an async function is stored twice.
    pub(crate) async fn run_while_valid<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Revoked> {
        self.check_if_due().await?;
        tokio::select! {
            biased;
            done = work => Ok(done),
            revoked = self.revoked() => Err(revoked),
        }
    }

    /// Resolves when the caller is no longer admitted.
    pub(crate) async fn revoked(&mut self) -> Revoked {
        loop {
            if let Err(revoked) = self.check_if_due().await {
                return revoked;
            }
            tokio::select! {
                () = sleep_until(self.next_check) => {}
                () = self.changes.triggered() => self.next_check = Instant::now(),
            }
        }
    }

    pub(crate) async fn next_frame(&mut self, stream: &mut ResponseStream) -> Result<Option<ResponseFrame>, Revoked> {
        self.run_while_valid(std::pin::pin!(stream.next())).await
    }

    pub(crate) fn next_check_at(&self) -> Instant {
        self.next_check
    }

    pub(crate) async fn check_if_due(&mut self) -> Result<(), Revoked> {
        if Instant::now() < self.next_check {
            return Ok(());
        }
        let is_admitted = self.resolver.is_admitted().await;
        self.next_check = Instant::now() + REVALIDATE_EVERY;
        if is_admitted { Ok(()) } else { Err(Revoked) }
    }
}

/// Resolves the caller at the other end anew on each use: a key may be revoked, and a role may lose permissions.
#[async_trait]
pub(crate) trait CallerResolver: Send + Sync + 'static {
    /// The caller according to the current authenticator and registry, which belong to the same configuration.
    async fn resolve_caller(&self) -> Result<Caller, RpcError>;

    /// Whether the caller is still admitted. True also while a new configuration is being applied.
    async fn is_admitted(&self) -> bool;

    /// Changes when credentials were reloaded and [`Self::is_admitted`] has to be evaluated again.
    fn credential_reloads(&self) -> watch::Receiver<u64>;
}

/// The error while a new configuration is being applied, which takes a moment.
pub(crate) fn configuration_changing_error() -> RpcError {
    let message = "the configuration of the server is changing; try again";
    let data = Some(json!({"kind": ErrorKind::Unavailable.name()}));
    RpcError { data, ..RpcError::new(RpcError::REFUSED, message) }
}

pub(crate) type DecodedMessage = Result<IncomingMessage, DecodeError>;

/// Pairs each message with its caller; if that is no longer admitted, the message becomes a rejection for `sender`.
pub(crate) fn with_callers(
    messages: Vec<DecodedMessage>,
    resolver: Arc<dyn CallerResolver>,
    sender: Caller,
) -> impl Stream<Item = (DecodedMessage, Caller)> + Send {
    let waiting = (messages.into_iter(), resolver, sender);
    stream::unfold(waiting, |(mut messages, resolver, sender)| async move {
        let message = messages.next()?;
        let called = match resolver.resolve_caller().await {
            Ok(caller) => (message, caller),
            Err(error) => (reject_message(message, error), sender.clone()),
        };
        Some((called, (messages, resolver, sender)))
    })
}

fn reject_message(message: DecodedMessage, error: RpcError) -> DecodedMessage {
    match message {
        Ok(IncomingMessage::Request(request)) => Err(DecodeError { id: Some(request.id), error: Box::new(error) }),
        // Notifications and responses get no answer.
        Ok(_) => Ok(IncomingMessage::Response(RpcResponse::default())),
        Err(rejection) => Err(rejection),
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tidegate_core::Caller;
    use tidegate_mcp::RpcError;
    use tidegate_runtime::SnapshotBuilder;
    use tidegate_runtime::event::EventDispatcher;

    use super::*;

    /// A caller whose key was revoked without a registry change.
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
        let resolver = Arc::new(RevokedCaller(watch::Sender::new(0)));
        let mut revalidator = CallerRevalidator::new(resolver.clone(), &registry);
        let begun = Instant::now();
        let work = async {
            resolver.0.send_replace(1);
            std::future::pending::<()>().await;
        };
        assert_eq!(revalidator.run_while_valid(work).await, Err(Revoked));
        // The paused clock advances only when a task waits.
        assert_eq!(Instant::now(), begun);
        // Without a change notification, the interval applies.
        drop(registry);
        let silent = Arc::new(RevokedCaller(watch::Sender::new(0)));
        let mut interval_revalidator =
            CallerRevalidator::new(silent, &Registry::new(SnapshotBuilder::new().build(), EventDispatcher::default()));
        assert_eq!(interval_revalidator.run_while_valid(std::future::pending::<()>()).await, Err(Revoked));
        assert_eq!(Instant::now(), begun + REVALIDATE_EVERY);
    }
}
