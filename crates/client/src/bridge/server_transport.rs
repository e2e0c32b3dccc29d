//! The connection to the server, over either transport.

use async_trait::async_trait;
use bytes::Bytes;

use super::error::BridgeError;
use super::request::{ClientRequest, ModernMetadata};

#[async_trait]
pub(super) trait ServerTransport: Send + Sync {
    /// Runs the background work, such as listening, until it is dropped.
    async fn run_background(&self);

    /// Sends `request` once, and forwards its answer to the client.
    async fn send(&self, request: &ClientRequest) -> Result<(), BridgeError>;

    /// Sends the client's handshake, and stores it with the negotiated parameters, so that it can be repeated.
    async fn initialize(&self, request: &ClientRequest) -> Result<(), BridgeError>;

    /// Forwards the notification that completes the client's handshake.
    async fn initialized(&self, line: Bytes);

    /// Forwards a message that has no answer. A modern notification has metadata.
    async fn notify(&self, line: &Bytes, modern: Option<&ModernMetadata>);

    /// Whether dropping a request also cancels it at the server.
    fn cancels_by_dropping(&self, _is_modern: bool) -> bool {
        false
    }

    /// Ends the session or the connection.
    async fn end(&self);
}
