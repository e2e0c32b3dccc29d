//! A bridge: MCP over the standard streams on one side, a running server over HTTP or WebSocket on the other.
//!
//! It passes messages on as they came, in both directions, and looks at ids, methods and versions only.
//! What it adds is patience: it connects again, makes a legacy client's handshake again, and says of each
//! call that failed on its way whether it may have run. A call that may have run is never sent again.

mod address;
mod backoff;
mod bearer;
mod calls;
mod error;
mod handshake;
mod http;
mod incoming;
mod link;
mod notice;
mod number;
mod output;
mod request;
mod scanner;
mod socket;
mod stdio_client;
mod utf8;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub use address::{ServerAddress, ServerAddressError};
pub use bearer::{BearerToken, BearerTokenError};
pub use notice::{BridgeNotice, BridgeNoticeListener};

use self::link::ServerLink;
use self::output::{Output, write_lines};
use self::stdio_client::StdioClient;

/// How long an output that still has something to write may take after the client hung up or the drain ran out.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// Where the server is, who calls, and the bounds.
#[derive(Clone)]
pub struct BridgeOptions {
    /// Where the server is.
    pub address: ServerAddress,
    /// Proves who calls.
    pub bearer: Option<BearerToken>,
    /// Longer messages of the client are refused, in bytes.
    pub message_bytes_max: usize,
    /// Longer answers over HTTP are refused, in bytes; they wait on disk until they are complete.
    pub answer_bytes_max: u64,
    /// Longer messages over WebSocket end the connection, in bytes; one is held in memory while it comes.
    pub socket_message_bytes_max: usize,
    /// How long a call may wait for a connection.
    pub wait_within: Duration,
    /// How long a server that began anew may take to answer the client's handshake.
    pub handshake_within: Duration,
    /// How long open calls may take to end after the client closed its side.
    pub drain_within: Duration,
    /// Hears what whoever runs the bridge may want to know.
    pub notice_listener: BridgeNoticeListener,
}

impl BridgeOptions {
    /// A bridge to `address` with the usual bounds, for nobody in particular.
    pub fn new(address: ServerAddress) -> Self {
        Self {
            address,
            bearer: None,
            message_bytes_max: 4 * 1024 * 1024,
            answer_bytes_max: 16 * 1024 * 1024 * 1024,
            socket_message_bytes_max: 64 * 1024 * 1024,
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

/// Bridges one client to the server until the client closes its side or `shutdown` fires, then lets open calls end
/// within the bound.
///
/// # Errors
/// When a stream of the client breaks, or TLS cannot be set up. A client that hangs up is no error, and neither is a
/// server that is away: calls say so.
pub async fn serve(
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    options: BridgeOptions,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let options = Arc::new(options);
    let (output, lines) = Output::new();
    let link = Arc::new(ServerLink::new(options.clone(), output.clone())?);
    let mut writing = tokio::spawn(write_lines(lines, writer));
    let join_handle = tokio::spawn({
        let link = link.clone();
        async move { link.run_background().await }
    });
    let mut conversation = StdioClient::new(link.clone(), output, options);
    let read = tokio::select! {
        biased;
        // Also while a client that does not read holds up what it is told.
        () = shutdown.cancelled() => Ok(()),
        read = conversation.read_until_end(reader) => read,
    };
    conversation.drain().await;
    join_handle.abort();
    let _ = join_handle.await;
    link.end().await;
    drop(link);
    // The output closes with the last that could write to it. A client that no longer reads must not keep the process.
    let written = match tokio::time::timeout(WRITE_WITHIN, &mut writing).await {
        Ok(joined) => joined.unwrap_or(Ok(())),
        Err(_) => {
            writing.abort();
            Ok(())
        }
    };
    read.and(written)
}
