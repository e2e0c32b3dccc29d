//! The connection to the server, over either transport.

use std::sync::Arc;

use bytes::Bytes;

use super::BridgeOptions;
use super::address::BridgeTransport;
use super::error::BridgeError;
use super::http::HttpLink;
use super::output::Output;
use super::request::{ClientCall, ModernMetadata};
use super::socket::SocketLink;

/// The connection to the server.
pub(super) enum ServerLink {
    Http(Box<HttpLink>),
    Socket(SocketLink),
}

impl ServerLink {
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn new(options: Arc<BridgeOptions>, output: Output) -> std::io::Result<Self> {
        Ok(match options.address.transport() {
            BridgeTransport::Http => Self::Http(Box::new(HttpLink::new(options, output)?)),
            BridgeTransport::WebSocket => Self::Socket(SocketLink::new(options, output)),
        })
    }

    /// Runs the background work, such as listening, until it is dropped.
    pub(super) async fn run_background(&self) {
        match self {
            Self::Http(link) => link.listen().await,
            Self::Socket(link) => link.keep_connected().await,
        }
    }

    /// Sends `call` once, and forwards its answer to the client.
    pub(super) async fn call(&self, call: &ClientCall) -> Result<(), BridgeError> {
        match self {
            Self::Http(link) => link.call(call).await,
            Self::Socket(link) => link.call(call).await,
        }
    }

    /// Sends the client's handshake, which is stored so that it can be repeated.
    pub(super) async fn initialize(&self, call: &ClientCall) -> Result<(), BridgeError> {
        match self {
            Self::Http(link) => link.initialize(call).await,
            Self::Socket(link) => link.initialize(call).await,
        }
    }

    /// Forwards the notification that completes the client's handshake.
    pub(super) async fn initialized(&self, line: Bytes) {
        match self {
            Self::Http(link) => link.initialized(line).await,
            Self::Socket(link) => link.initialized(line).await,
        }
    }

    /// Forwards a message that has no answer.
    pub(super) async fn notify(&self, line: &Bytes, modern: Option<&ModernMetadata>) {
        match self {
            Self::Http(link) => link.notify(line, modern).await,
            Self::Socket(link) => link.notify(line).await,
        }
    }

    /// Whether dropping a call also cancels it at the server.
    pub(super) fn cancels_by_dropping(&self, is_modern: bool) -> bool {
        matches!(self, Self::Http(_)) && is_modern
    }

    /// Ends the session or the connection.
    pub(super) async fn end(&self) {
        match self {
            Self::Http(link) => link.end().await,
            Self::Socket(link) => link.end().await,
        }
    }
}
