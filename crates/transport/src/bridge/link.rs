//! The way to the server, whatever carries it.

use std::sync::Arc;

use bytes::Bytes;

use super::BridgeOptions;
use super::address::BridgeTransport;
use super::error::BridgeError;
use super::http::HttpLink;
use super::output::Output;
use super::request::{ClientCall, ModernMetadata};
use super::socket::SocketLink;

/// The way to the server.
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

    /// Keeps up what stands beside the calls, until it is dropped.
    pub(super) async fn run_background(&self) {
        match self {
            Self::Http(link) => link.listen().await,
            Self::Socket(link) => link.keep_connected().await,
        }
    }

    /// Sends `call` once, and gives its answer to the client.
    pub(super) async fn call(&self, call: &ClientCall) -> Result<(), BridgeError> {
        match self {
            Self::Http(link) => link.call(call).await,
            Self::Socket(link) => link.call(call).await,
        }
    }

    /// The same for the client's handshake, which is kept to be made again.
    pub(super) async fn initialize(&self, call: &ClientCall) -> Result<(), BridgeError> {
        match self {
            Self::Http(link) => link.initialize(call).await,
            Self::Socket(link) => link.initialize(call).await,
        }
    }

    /// Passes on the notification that ends the client's handshake.
    pub(super) async fn initialized(&self, line: Bytes) {
        match self {
            Self::Http(link) => link.initialized(line).await,
            Self::Socket(link) => link.initialized(line).await,
        }
    }

    /// Passes on what wants no answer.
    pub(super) async fn notify(&self, line: &Bytes, modern: Option<&ModernMetadata>) {
        match self {
            Self::Http(link) => link.notify(line, modern).await,
            Self::Socket(link) => link.notify(line).await,
        }
    }

    /// Whether a call that is dropped is cancelled by that alone.
    pub(super) fn cancels_by_dropping(&self, is_modern: bool) -> bool {
        matches!(self, Self::Http(_)) && is_modern
    }

    /// Takes leave of the server.
    pub(super) async fn end(&self) {
        match self {
            Self::Http(link) => link.end().await,
            Self::Socket(link) => link.end().await,
        }
    }
}
