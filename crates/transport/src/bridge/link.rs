//! The way to the server, whatever carries it.

use std::sync::Arc;

use bytes::Bytes;

use super::BridgeOptions;
use super::address::Carrier;
use super::failure::Failure;
use super::http::HttpLink;
use super::output::Output;
use super::request::{Call, Modern};
use super::socket::SocketLink;

/// The way to the server.
pub(super) enum Link {
    Http(Box<HttpLink>),
    Socket(SocketLink),
}

impl Link {
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn new(options: Arc<BridgeOptions>, output: Output) -> std::io::Result<Self> {
        Ok(match options.address.carrier() {
            Carrier::Http => Self::Http(Box::new(HttpLink::new(options, output)?)),
            Carrier::WebSocket => Self::Socket(SocketLink::new(options, output)),
        })
    }

    /// Keeps up what stands beside the calls, until it is dropped.
    pub(super) async fn stand(&self) {
        match self {
            Self::Http(link) => link.listen().await,
            Self::Socket(link) => link.stand().await,
        }
    }

    /// Sends `call` once, and gives its answer to the client.
    pub(super) async fn call(&self, call: &Call) -> Result<(), Failure> {
        match self {
            Self::Http(link) => link.call(call).await,
            Self::Socket(link) => link.call(call).await,
        }
    }

    /// The same for the client's handshake, which is kept to be made again.
    pub(super) async fn shake_hands(&self, call: &Call) -> Result<(), Failure> {
        match self {
            Self::Http(link) => link.shake_hands(call).await,
            Self::Socket(link) => link.shake_hands(call).await,
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
    pub(super) async fn notify(&self, line: &Bytes, modern: Option<&Modern>) {
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
