//! Who sends each message of a batch: asked when its turn comes, for a batch may take minutes.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{Stream, stream};
use serde_json::json;
use tidegate_core::{Caller, ErrorKind};
use tidegate_mcp::{Incoming, Rejection, Response, RpcError};
use tokio::sync::watch;

/// Finds out who is at the other end, each time it is asked: a key may be revoked, and a role may lose what it had.
#[async_trait]
pub(crate) trait Identity: Send + Sync + 'static {
    /// The caller by the gate and the registry of this moment, which belong together.
    ///
    /// # Errors
    /// What a caller is told who is let in no longer.
    async fn caller(&self) -> Result<Caller, RpcError>;

    /// Whether it would still be let in; also while a new configuration is being entered.
    async fn is_let_in(&self) -> bool;

    /// Tells when that is to be asked again.
    fn renewals(&self) -> watch::Receiver<u64>;
}

/// What a caller is told while a new configuration is being entered, which takes a moment.
pub(crate) fn changing() -> RpcError {
    let message = "the configuration of the server is changing; try again";
    let data = Some(json!({"kind": ErrorKind::Unavailable.name()}));
    RpcError { data, ..RpcError::new(RpcError::REFUSED, message) }
}

/// A message of a batch, as it was read.
pub(crate) type Read = Result<Incoming, Rejection>;

/// The messages with who sends them; those whose sender is let in no longer become refusals in the name of `sender`.
pub(crate) fn with_callers(
    messages: Vec<Read>,
    identity: Arc<dyn Identity>,
    sender: Caller,
) -> impl Stream<Item = (Read, Caller)> + Send {
    let waiting = (messages.into_iter(), identity, sender);
    stream::unfold(waiting, |(mut messages, identity, sender)| async move {
        let message = messages.next()?;
        let called = match identity.caller().await {
            Ok(caller) => (message, caller),
            Err(error) => (refused(message, error), sender.clone()),
        };
        Some((called, (messages, identity, sender)))
    })
}

fn refused(message: Read, error: RpcError) -> Read {
    match message {
        Ok(Incoming::Request(request)) => Err(Rejection { id: Some(request.id), error: Box::new(error) }),
        // Nothing is said to what is not answered.
        Ok(_) => Ok(Incoming::Response(Response::default())),
        Err(rejection) => Err(rejection),
    }
}
