//! Resolves the caller of each message of a batch when its turn comes, since a batch may take minutes.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{Stream, stream};
use serde_json::json;
use tidegate_core::{Caller, ErrorKind};
use tidegate_mcp::{DecodeError, IncomingMessage, RpcError, RpcResponse};
use tokio::sync::watch;

/// Resolves the caller at the other end anew on each use: a key may be revoked, and a role may lose permissions.
#[async_trait]
pub(crate) trait CallerResolver: Send + Sync + 'static {
    /// The caller according to the current authenticator and registry, which belong to the same configuration.
    ///
    /// # Errors
    /// The response for a caller whose credentials are no longer valid.
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

/// A message of a batch after decoding.
pub(crate) type DecodedMessage = Result<IncomingMessage, DecodeError>;

/// Pairs each message with its caller. If the caller is no longer admitted, the message becomes a rejection for
/// `sender`.
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
        // Notifications and responses get no answer.
        Ok(_) => Ok(IncomingMessage::Response(RpcResponse::default())),
        Err(rejection) => Err(rejection),
    }
}
