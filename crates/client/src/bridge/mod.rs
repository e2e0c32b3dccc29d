//! A bridge: MCP over standard input and output on one side, a running server over HTTP or WebSocket on the other.
//!
//! The bridge forwards messages unchanged in both directions, each line of the client in a task of its own; it reads only
//! ids, methods and versions. It reconnects automatically and repeats the handshake of a legacy client. For each call whose
//! delivery failed, it reports whether the call may have run. Such a call is never sent again.

mod http;
mod request;
mod server_message;
mod web_socket;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_core::Backoff;
use tidegate_mcp::{IncomingMessage, ReadLine, RpcError, RpcNotification, RpcRequest, decode, read_line};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::http::HttpTransport;
use self::request::{ClientRequest, ModernMetadata, PendingRequestGuard, PendingRequests, ServerTransport};
use self::server_message::{Output, write_lines};
use self::web_socket::WebSocketTransport;
use crate::server::{self, AddressError, BearerToken, TrustedAuthorities};

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

/// A call that waits 5 s for a server must notice within that time that it is reachable again.
const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(2);

/// The server, the credentials and the limits of a bridge.
#[derive(Clone)]
pub struct BridgeOptions {
    /// The URL of the server.
    pub address: ServerAddress,
    /// The token that authenticates the caller.
    pub bearer: Option<BearerToken>,
    /// The authorities that may sign the certificate of the server; `None` for those of the system.
    pub authorities: Option<TrustedAuthorities>,
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
            authorities: None,
            message_bytes_max: 4 * 1024 * 1024,
            server_message_bytes_max: 64 * 1024 * 1024,
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

/// The URL of a running MCP server. It is displayed without its query, which may contain a key.
#[derive(Clone)]
pub struct ServerAddress {
    url: Url,
}

impl ServerAddress {
    /// Parses a URL with the scheme http, https, ws or wss.
    ///
    /// # Errors
    /// When it is not such a URL, or contains credentials.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let url = server::parse_url(text, &["http", "https", "ws", "wss"], "http://127.0.0.1:7070/mcp")?;
        Ok(Self { url })
    }

    /// Whether messages leave this machine unencrypted.
    pub fn is_sent_unencrypted(&self) -> bool {
        server::is_sent_unencrypted(&self.url)
    }

    fn host(&self) -> &str {
        server::host(&self.url)
    }

    fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    fn url(&self) -> &Url {
        &self.url
    }

    fn is_web_socket(&self) -> bool {
        self.url.scheme().starts_with("ws")
    }

    fn default_path(&self) -> &'static str {
        if self.is_web_socket() { "/mcp/ws" } else { "/mcp" }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        f.write_str(url.as_str())
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Maximum number of concurrent messages; reading stops while they are open.
const MESSAGES_MAX: usize = 512;
const END_WITHIN: Duration = Duration::from_secs(1);

struct StdioClient {
    transport: Arc<dyn ServerTransport>,
    output: Output,
    options: Arc<BridgeOptions>,
    requests: Arc<PendingRequests>,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Fires when the latest step of the handshake is complete. Later messages wait for it.
    handshake_done: CancellationToken,
    ended: CancellationToken,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Box<RawValue>,
}

impl StdioClient {
    fn new(transport: Arc<dyn ServerTransport>, output: Output, options: Arc<BridgeOptions>) -> Self {
        let handshake_done = CancellationToken::new();
        handshake_done.cancel();
        Self {
            transport,
            output,
            options,
            requests: Arc::default(),
            permits: Arc::new(Semaphore::new(MESSAGES_MAX)),
            tasks: TaskTracker::new(),
            handshake_done,
            ended: CancellationToken::new(),
        }
    }

    async fn read_until_end(&mut self, reader: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let mut reader = BufReader::new(reader);
        let output = self.output.clone();
        let mut line = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = output.closed() => {
                    self.ended.cancel();
                    return Ok(());
                }
                read = read_line(&mut reader, &mut line, self.options.message_bytes_max) => {
                    match read? {
                        ReadLine::End => return Ok(()),
                        ReadLine::TooLong => self.refuse_long_line().await,
                        ReadLine::Whole => self.receive_line(Bytes::from(std::mem::take(&mut line))).await,
                    }
                    line.clear();
                }
            }
        }
    }

    /// Waits up to `drain_within` for open calls, then drops them. Notification streams end immediately.
    async fn drain(self) {
        self.tasks.close();
        self.requests.end_streams();
        let drained = async {
            tokio::select! {
                () = self.tasks.wait() => {}
                () = self.ended.cancelled() => {}
                // The client has disconnected.
                () = self.output.closed() => {}
            }
        };
        let _ = tokio::time::timeout(self.options.drain_within, drained).await;
        self.ended.cancel();
        // A task may still wait for an output that is not read.
        let _ = tokio::time::timeout(END_WITHIN, self.tasks.wait()).await;
    }

    async fn receive_line(&mut self, line: Bytes) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match decode(&line) {
            Ok(IncomingMessage::Request(request)) if is_initialize(&request) => {
                let step = self.begin_handshake_step();
                self.spawn_request(ClientRequest::new(line, &request), Some(step)).await;
            }
            Ok(IncomingMessage::Request(request)) => self.spawn_request(ClientRequest::new(line, &request), None).await,
            Ok(IncomingMessage::Notification(notification)) => self.receive_notification(line, &notification).await,
            Ok(IncomingMessage::Response(_)) => self.spawn_notification(line, None).await,
            Ok(IncomingMessage::RpcBatch(messages)) => {
                let request = ClientRequest::from_batch(line, &messages);
                if request.ids.is_empty() {
                    self.spawn_notification(request.line, None).await;
                } else {
                    self.spawn_request(request, None).await;
                }
            }
            Err(rejection) => self.output.refuse(rejection.id.as_ref(), &rejection.error).await,
        }
    }

    async fn receive_notification(&mut self, line: Bytes, notification: &RpcNotification) {
        match notification.method.as_str() {
            "notifications/cancelled" => self.cancel_request(line, notification).await,
            "notifications/initialized" => {
                let (previous, step) = self.begin_handshake_step();
                let transport = self.transport.clone();
                self.spawn(async move {
                    previous.cancelled().await;
                    transport.initialized(line).await;
                    drop(step);
                })
                .await;
            }
            _ => self.spawn_notification(line, ModernMetadata::from_notification(notification)).await,
        }
    }

    /// Begins a step of the handshake: the previous step to wait for, and a guard that delays all later messages.
    fn begin_handshake_step(&mut self) -> (CancellationToken, DropGuard) {
        let mine = CancellationToken::new();
        let before = std::mem::replace(&mut self.handshake_done, mine.clone());
        (before, mine.drop_guard())
    }

    async fn cancel_request(&self, line: Bytes, notification: &RpcNotification) {
        let Ok(params) = notification.params::<CancelledParams>() else { return };
        let Some((state, is_modern)) = self.requests.cancel(params.request_id.get()) else { return };
        if !state.may_have_been_sent() || self.transport.cancels_by_dropping(is_modern) {
            return state.ended.cancel();
        }
        let transport = self.transport.clone();
        self.spawn(async move {
            transport.notify(&line, None).await;
            state.ended.cancel();
        })
        .await;
    }

    /// Forwards a request; with `step` it is the client's handshake.
    async fn spawn_request(&self, request: ClientRequest, step: Option<(CancellationToken, DropGuard)>) {
        let pending = match self.requests.add(&request) {
            Ok(pending) => pending,
            Err(error) => return self.output.refuse(request.ids.first(), &error).await,
        };
        let (transport, output, options) = (self.transport.clone(), self.output.clone(), self.options.clone());
        let task = RequestTask { transport, output, options, _pending: pending };
        let settled = self.handshake_done.clone();
        self.spawn(async move {
            match step {
                Some((previous, _step)) => task.run(&request, previous, true).await,
                None => task.run(&request, settled, false).await,
            }
        })
        .await;
    }

    async fn spawn_notification(&self, line: Bytes, modern: Option<ModernMetadata>) {
        let (transport, settled) = (self.transport.clone(), self.handshake_done.clone());
        self.spawn(async move {
            settled.cancelled().await;
            transport.notify(&line, modern.as_ref()).await;
        })
        .await;
    }

    /// Runs `work` in a task once a permit is available, until it ends or waiting ends.
    async fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        // The semaphore is never closed.
        let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
        let ended = self.ended.clone();
        self.tasks.spawn(async move {
            let _permit: OwnedSemaphorePermit = permit;
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = work => {}
            }
        });
    }

    async fn refuse_long_line(&self) {
        let message = format!("Invalid request: the message is longer than {} bytes", self.options.message_bytes_max);
        self.output.refuse(None, &RpcError::invalid_request(message)).await;
    }
}

fn is_initialize(request: &RpcRequest) -> bool {
    request.method == "initialize" && request.meta.protocol_version.is_none()
}

struct RequestTask {
    transport: Arc<dyn ServerTransport>,
    output: Output,
    options: Arc<BridgeOptions>,
    _pending: PendingRequestGuard,
}

impl RequestTask {
    /// Sends the request once `settled` fires, and reports a failure to the client unless it cancelled the request.
    async fn run(self, request: &ClientRequest, settled: CancellationToken, is_handshake: bool) {
        let exchange = async {
            // Modern requests have no handshake.
            if request.modern.is_none() {
                settled.cancelled().await;
            }
            if is_handshake { self.transport.initialize(request).await } else { self.transport.send(request).await }
        };
        let result = tokio::select! {
            biased;
            () = request.state.ended.cancelled() => return,
            result = exchange => result,
        };
        if let Err(failure) = result
            && !request.state.is_cancelled()
        {
            let error = failure.to_rpc_error(&self.options.address);
            for id in &request.ids {
                self.output.refuse(Some(id), &error).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_redacts_secrets() {
        let address = ServerAddress::parse("https://data.example.com/mcp?key=secret#secret").unwrap();
        assert_eq!(address.to_string(), "https://data.example.com/mcp");
        assert_eq!(format!("{address:?}"), "https://data.example.com/mcp");
    }
}
