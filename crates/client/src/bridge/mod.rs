//! A bridge: MCP over standard input and output on one side, a running server over HTTP or WebSocket on the other.
//!
//! The bridge forwards messages unchanged in both directions; it reads only ids, methods and versions. It reconnects
//! automatically and repeats the handshake of a legacy client. For each call whose delivery failed, it reports whether
//! the call may have run. Such a call is never sent again.

mod address;
mod error;
mod handshake;
mod http;
mod incoming;
mod options;
mod output;
mod request;
mod stdio_client;
mod web_socket;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::http::HttpTransport;
use self::output::{Output, write_lines};
use self::request::ServerTransport;
use self::stdio_client::StdioClient;
use self::web_socket::WebSocketTransport;

pub use self::address::ServerAddress;
pub use self::options::{BridgeNotice, BridgeNoticeListener, BridgeOptions};

const WRITE_WITHIN: Duration = Duration::from_secs(10);

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
    let transport: Arc<dyn ServerTransport> = match options.address.is_web_socket() {
        false => Arc::new(HttpTransport::new(options.clone(), output.clone())?),
        true => Arc::new(WebSocketTransport::new(options.clone(), output.clone())),
    };
    let mut writing = tokio::spawn(write_lines(lines, writer));
    let background = tokio::spawn({
        let transport = transport.clone();
        async move { transport.run_background().await }
    });
    let mut client = StdioClient::new(transport.clone(), output, options);
    let read = tokio::select! {
        biased;
        // Also if a client that does not read blocks the output.
        () = shutdown.cancelled() => Ok(()),
        read = client.read_until_end(reader) => read,
    };
    client.drain().await;
    background.abort();
    let _ = background.await;
    transport.end().await;
    drop(transport);
    // The output closes with its last sender. A client that no longer reads must not keep the process alive.
    let written = tokio::time::timeout(WRITE_WITHIN, &mut writing).await;
    writing.abort();
    read.and(written.map_or(Ok(()), |joined| joined.unwrap_or(Ok(()))))
}
