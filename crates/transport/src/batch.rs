//! Who sends each message of a batch: asked when its turn comes, for a batch may take minutes.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{Stream, stream};
use serde_json::json;
use tidegate_core::{Caller, ErrorKind};
use tidegate_mcp::{DecodeError, IncomingMessage, RpcError, RpcResponse};
use tokio::sync::watch;

/// Finds out who is at the other end, each time it is asked: a key may be revoked, and a role may lose what it had.
#[async_trait]
pub(crate) trait CallerResolver: Send + Sync + 'static {
    /// The caller by the gate and the registry of this moment, which belong together.
    ///
    /// # Errors
    /// What a caller is told who is let in no longer.
    async fn resolve_caller(&self) -> Result<Caller, RpcError>;

    /// Whether it would still be let in; also while a new configuration is being entered.
    async fn is_admitted(&self) -> bool;

    /// Tells when that is to be asked again.
    fn credential_reloads(&self) -> watch::Receiver<u64>;
}

/// What a caller is told while a new configuration is being entered, which takes a moment.
pub(crate) fn configuration_changing_error() -> RpcError {
    let message = "the configuration of the server is changing; try again";
    let data = Some(json!({"kind": ErrorKind::Unavailable.name()}));
    RpcError { data, ..RpcError::new(RpcError::REFUSED, message) }
}

/// A message of a batch, as it was read.
pub(crate) type DecodedMessage = Result<IncomingMessage, DecodeError>;

/// The messages with who sends them; those whose sender is let in no longer become refusals in the name of `sender`.
pub(crate) fn with_callers(
    messages: Vec<DecodedMessage>,
    identity: Arc<dyn CallerResolver>,
    sender: Caller,
) -> impl Stream<Item = (DecodedMessage, Caller)> + Send {
    let waiting = (messages.into_iter(), identity, sender);
    stream::unfold(waiting, |(mut messages, identity, sender)| async move {
        let message = messages.next()?;
        let called = match identity.resolve_caller().await {
            Ok(caller) => (message, caller),
            Err(error) => (reject_message(message, error), sender.clone()),
        };
        Some((called, (messages, identity, sender)))
    })
}

fn reject_message(message: DecodedMessage, error: RpcError) -> DecodedMessage {
    match message {
        Ok(IncomingMessage::Request(request)) => Err(DecodeError { id: Some(request.id), error: Box::new(error) }),
        // Nothing is said to what is not answered.
        Ok(_) => Ok(IncomingMessage::Response(RpcResponse::default())),
        Err(rejection) => Err(rejection),
    }
}
