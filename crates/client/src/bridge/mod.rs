//! A bridge: MCP over standard input and output on one side, a running server over HTTP or WebSocket on the other.
//!
//! The bridge forwards messages unchanged in both directions; it reads only ids, methods and versions. It reconnects
//! automatically and repeats the handshake of a legacy client. For each call whose delivery failed, it reports whether
//! the call may have run. Such a call is never sent again.

mod address;
mod call;
mod error;
mod handshake;
mod http;
mod incoming;
mod link;
mod output;
mod socket;
mod stdio_client;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Backoff;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::bearer_token::BearerToken;
use crate::bridge::address::BridgeTransport;
use crate::bridge::http::HttpLink;
use crate::bridge::incoming::SERVER_MESSAGE_BYTES_MAX;
use crate::bridge::link::ServerLink;
use crate::bridge::output::{Output, write_lines};
use crate::bridge::socket::SocketLink;
use crate::bridge::stdio_client::StdioClient;

pub use address::ServerAddress;

/// Time limit for pending output after the client disconnected or draining ended.
const WRITE_WITHIN: Duration = Duration::from_secs(10);
/// The shortest and the longest delay between attempts to reach the server again. A call that waits 5 s for a server
/// must notice that it is reachable again.
const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(2);

/// The server, the credentials and the limits of a bridge.
#[derive(Clone)]
pub struct BridgeOptions {
    /// The URL of the server.
    pub address: ServerAddress,
    /// The token that authenticates the caller.
    pub bearer: Option<BearerToken>,
    /// Maximum size of a message of the client in bytes; longer ones are refused.
    pub message_bytes_max: usize,
    /// Maximum size of a message of the server in bytes. A longer one fails its call, and ends a WebSocket connection.
    /// A message is held in memory until the client has received it.
    pub server_message_bytes_max: usize,
    /// How long a call may wait for a connection.
    pub wait_within: Duration,
    /// How long a restarted server may take to answer the repeated handshake.
    pub handshake_within: Duration,
    /// How long open calls may take to end after the client closed its side.
    pub drain_within: Duration,
    /// Receives notices for the operator of the bridge.
    pub notice_listener: BridgeNoticeListener,
}

impl BridgeOptions {
    /// A bridge to `address` with the default limits, without a token.
    pub fn new(address: ServerAddress) -> Self {
        Self {
            address,
            bearer: None,
            message_bytes_max: 4 * 1024 * 1024,
            server_message_bytes_max: SERVER_MESSAGE_BYTES_MAX,
            wait_within: Duration::from_secs(5),
            handshake_within: Duration::from_secs(30),
            drain_within: Duration::from_secs(10),
            notice_listener: Arc::new(|_| {}),
        }
    }

    fn notify(&self, notice: &BridgeNotice) {
        (self.notice_listener)(notice);
    }
}

/// Bridges one client to the server until the client closes its side or `shutdown` fires. Then waits up to
/// `drain_within` for open calls.
///
/// # Errors
/// When a stream of the client breaks, or TLS cannot be set up. A client that disconnects is not an error. If the
/// server is unreachable, the calls fail.
pub async fn serve(
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    options: BridgeOptions,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let options = Arc::new(options);
    let (output, lines) = Output::new();
    let link: Arc<dyn ServerLink> = match options.address.transport() {
        BridgeTransport::Http => Arc::new(HttpLink::new(options.clone(), output.clone())?),
        BridgeTransport::WebSocket => Arc::new(SocketLink::new(options.clone(), output.clone())),
    };
    let mut writing = tokio::spawn(write_lines(lines, writer));
    let join_handle = tokio::spawn({
        let link = link.clone();
        async move { link.run_background().await }
    });
    let mut conversation = StdioClient::new(link.clone(), output, options);
    let read = tokio::select! {
        biased;
        // Also if a client that does not read blocks the output.
        () = shutdown.cancelled() => Ok(()),
        read = conversation.read_until_end(reader) => read,
    };
    conversation.drain().await;
    join_handle.abort();
    let _ = join_handle.await;
    link.end().await;
    drop(link);
    // The output closes with its last sender. A client that no longer reads must not keep the process alive.
    let written = match tokio::time::timeout(WRITE_WITHIN, &mut writing).await {
        Ok(joined) => joined.unwrap_or(Ok(())),
        Err(_) => {
            writing.abort();
            Ok(())
        }
    };
    read.and(written)
}

fn reconnection_backoff() -> Backoff {
    Backoff::new(DELAY_MIN, DELAY_MAX)
}

/// An event in the connection to the server. It contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BridgeNotice {
    /// The server is unreachable, for this reason; the bridge retries.
    Disconnected(String),
    /// The server is reachable again.
    Reconnected,
    /// The server restarted, and the client's handshake was repeated.
    HandshakeRenewed,
    /// The server rejects the bridge, which retries only at the next call.
    Refused(String),
    /// A message was dropped, because it was not delivered or the client could not use it.
    Ignored(String),
}

impl fmt::Display for BridgeNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected(reason) => write!(f, "the server cannot be reached: {reason}"),
            Self::Reconnected => f.write_str("reconnected to the server"),
            Self::HandshakeRenewed => f.write_str("the server restarted; the client's handshake was repeated"),
            Self::Refused(reason) => f.write_str(reason),
            Self::Ignored(subject) => write!(f, "message dropped: {subject}"),
        }
    }
}

/// Receives notices. It must not block.
pub type BridgeNoticeListener = Arc<dyn Fn(&BridgeNotice) + Send + Sync>;
