//! The connection to the server, over either transport.

use async_trait::async_trait;
use bytes::Bytes;

use super::call::{ClientCall, ModernMetadata};
use super::error::BridgeError;

/// The connection to the server.
#[async_trait]
pub(super) trait ServerLink: Send + Sync {
    /// Runs the background work, such as listening, until it is dropped.
    async fn run_background(&self);

    /// Sends `call` once, and forwards its answer to the client.
    async fn call(&self, call: &ClientCall) -> Result<(), BridgeError>;

    /// Sends the client's handshake, and stores it with the negotiated parameters, so that it can be repeated.
    async fn initialize(&self, call: &ClientCall) -> Result<(), BridgeError>;

    /// Forwards the notification that completes the client's handshake.
    async fn initialized(&self, line: Bytes);

    /// Forwards a message that has no answer. A modern notification has metadata.
    async fn notify(&self, line: &Bytes, modern: Option<&ModernMetadata>);

    /// Whether dropping a call also cancels it at the server.
    fn cancels_by_dropping(&self, _is_modern: bool) -> bool {
        false
    }

    /// Ends the session or the connection.
    async fn end(&self);
}
