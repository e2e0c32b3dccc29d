//! MCP over WebSocket: each message is a text message, and the subprotocol is `mcp`.
//!
//! Reading and writing run concurrently, so that neither waits for the other. Long messages are written in fragments with
//! pings and pongs between them. Messages that do not end in time are detected by counting bytes below the frames: an
//! unfinished message holds memory, and its fragments are not visible above this layer. Closing waits until the client has
//! received the code and the reason.
//!
//! [RFC 6455](https://www.rfc-editor.org/rfc/rfc6455), [4.2](https://www.rfc-editor.org/rfc/rfc6455#section-4.2) for the handshake
//! and [7.4](https://www.rfc-editor.org/rfc/rfc6455#section-7.4) for the end. MCP leaves further transports to implementations:
//! [MCP 2026-07-28, Custom Transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-transports)

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{Sink, SinkExt, Stream, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tidegate_core::TransportKind;
use tidegate_mcp::{IncomingMessage, RpcError, decode};
use tidegate_runtime::TransportGroup;
use tidegate_runtime::event::Event;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::io::InspectReader;

use super::caller::{AuthenticatedRequest, CallerError, HttpCallerResolver};
use super::response::{RefusalResponse, refusal, require_mcp};
use super::state::{HttpConnectionPermit, HttpState};
use crate::mcp_connection::McpConnection;
use crate::outbox::{Outbox, OutgoingMessage};
use crate::revalidation::{CallerResolver, REVALIDATE_EVERY, RevalidationTriggers};

/// GET: upgrades the connection to a WebSocket, or answers with an error.
pub(super) async fn open(
    State(http_state): State<Arc<HttpState>>,
    AuthenticatedRequest { caller, credentials, mut request }: AuthenticatedRequest,
) -> Result<Response, RefusalResponse> {
    require_mcp(&http_state, None)?;
    let switching = accept_upgrade(request.headers()).map_err(|refused| {
        http_state.report_rejection(credentials.origin, &refused.message);
        refused.into_response()
    })?;
    let permit = http_state.acquire_session_permit(&caller, None)?;
    let http_connection_permit = request.extensions_mut().remove::<HttpConnectionPermit>();
    let upgrade = hyper::upgrade::on(&mut request);
    let resolver = Arc::new(HttpCallerResolver::new(&http_state, credentials, &caller));
    let connection = WebSocketConnection::new(http_state.clone(), resolver);
    http_state.tasks.spawn(async move {
        // An error means that the client disconnected before it received the response.
        if let Ok(upgraded) = upgrade.await {
            connection.serve(upgraded).await;
        }
        drop((permit, http_connection_permit));
    });
    Ok(switching)
}

const SUBPROTOCOL: &str = "mcp";
const VERSION: &str = "13";
const KEY_BYTES: usize = 16;

const UPGRADE: HeaderValue = HeaderValue::from_static("upgrade");
const WEB_SOCKET: HeaderValue = HeaderValue::from_static("websocket");

#[derive(Debug)]
struct HandshakeError {
    status: StatusCode,
    message: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl HandshakeError {
    fn new(status: StatusCode, problem: &str, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { status, message: format!("Invalid request: {problem}"), headers }
    }

    fn into_response(self) -> Response {
        let mut response = refusal(self.status, None, &RpcError::invalid_request(self.message));
        response.headers_mut().extend(self.headers);
        response
    }
}

/// The response that turns the connection into a WebSocket.
fn accept_upgrade(headers: &HeaderMap) -> Result<Response, HandshakeError> {
    let is_upgrade =
        has_token(headers, header::CONNECTION, "upgrade") && has_token(headers, header::UPGRADE, "websocket");
    if !is_upgrade {
        let problem = "this path accepts only WebSocket upgrades; use /mcp for plain HTTP";
        let headers = vec![(header::UPGRADE, WEB_SOCKET), (header::CONNECTION, UPGRADE)];
        return Err(HandshakeError::new(StatusCode::UPGRADE_REQUIRED, problem, headers));
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != VERSION) {
        let problem = format!("Sec-WebSocket-Version must be {VERSION}");
        let headers = vec![(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION))];
        return Err(HandshakeError::new(StatusCode::UPGRADE_REQUIRED, &problem, headers));
    }
    let bad_request = |problem: String| HandshakeError::new(StatusCode::BAD_REQUEST, &problem, Vec::new());
    let invalid_key = || bad_request(format!("Sec-WebSocket-Key must be {KEY_BYTES} bytes as Base64"));
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    if STANDARD.decode(key).map_or(0, |nonce| nonce.len()) != KEY_BYTES {
        return Err(invalid_key());
    }
    if !has_token(headers, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        let problem = format!("the client must offer the subprotocol: Sec-WebSocket-Protocol: {SUBPROTOCOL}");
        return Err(bad_request(problem));
    }
    // The derived key is Base64.
    let accept = HeaderValue::from_str(&derive_accept_key(key)).map_err(|_| invalid_key())?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let all = response.headers_mut();
    all.insert(header::CONNECTION, UPGRADE);
    all.insert(header::UPGRADE, WEB_SOCKET);
    all.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    all.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    Ok(response)
}

/// Whether one of the comma-separated values of the header is `token`, ignoring case.
fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
}

const WRITE_BYTES: usize = 16 * 1024;

const TRANSPORT: TransportKind = TransportKind::WebSocket;

struct WebSocketConnection {
    http_state: Arc<HttpState>,
    resolver: Arc<HttpCallerResolver>,
    liveness: Liveness,
    received_bytes: Arc<AtomicU64>,
    /// Fixed at the handshake.
    message_bytes_max: usize,
}

impl WebSocketConnection {
    fn new(http_state: Arc<HttpState>, resolver: Arc<HttpCallerResolver>) -> Self {
        let message_bytes_max = http_state.reloadable_options().body_bytes_max;
        Self { http_state, resolver, liveness: Liveness::new(), received_bytes: Arc::default(), message_bytes_max }
    }

    /// Serves the client until it disconnects, has to be closed, or the server shuts down.
    async fn serve(self, upgraded: Upgraded) {
        let events = self.http_state.service.registry().events();
        events.emit(Event::ConnectionOpened { transport: TRANSPORT });
        let message_bytes_max = self.message_bytes_max;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(WRITE_BYTES)
            .max_write_buffer_size(WRITE_BYTES + 2 * FRAGMENT_BYTES_MAX)
            .max_frame_size(Some(message_bytes_max))
            .max_message_size(Some(message_bytes_max));
        let received_bytes = self.received_bytes.clone();
        let count = move |bytes: &[u8]| {
            received_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        };
        let stream = InspectReader::new(TokioIo::new(upgraded), count);
        self.run_mcp(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await).await;
        events.emit(Event::ConnectionClosed { transport: TRANSPORT });
    }

    async fn run_mcp(&self, socket: WebSocketStream<impl AsyncRead + AsyncWrite + Unpin>) {
        let (service, origin) = (self.http_state.service.clone(), self.resolver.credentials.origin);
        let (connection, outbox) = McpConnection::open(service, origin, self.http_state.connection_limits());
        let (mut sink, mut stream) = socket.split();
        let (pings, to_ping) = mpsc::channel(1);
        let end = {
            let mut writing = std::pin::pin!(write_messages(outbox, to_ping, &mut sink, &self.liveness));
            let end = tokio::select! {
                biased;
                // Also if a client that does not read blocks further reading.
                () = self.http_state.draining.cancelled() => CloseReason::Shutdown,
                _ = &mut writing => CloseReason::Gone,
                end = self.read_until_end(&connection, &mut stream, pings) => end,
            };
            if end == CloseReason::Shutdown {
                connection.finish();
                let _ = tokio::time::timeout(self.http_state.options.drain_within, writing).await;
            }
            end
        };
        connection.abandon();
        let frame = end.to_close_frame();
        if let (CloseReason::ClientError(..), Some(frame)) = (&end, &frame) {
            connection.report_rejection(&frame.reason);
        }
        if let (Some(frame), Ok(socket)) = (frame, stream.reunite(sink)) {
            let within = if end == CloseReason::Shutdown { self.http_state.options.drain_within } else { CLOSE_WITHIN };
            close(socket, frame, within.min(CLOSE_WITHIN)).await;
        }
    }

    async fn read_until_end(
        &self,
        connection: &Arc<McpConnection>,
        stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
        pings: mpsc::Sender<()>,
    ) -> CloseReason {
        let idle_max = self.http_state.options.session_idle_max;
        let mut changes = RevalidationTriggers::subscribe(&*self.resolver, self.http_state.service.registry());
        let mut ping_interval = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        ping_interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut answer_interval = interval_at(Instant::now() + REVALIDATE_EVERY, REVALIDATE_EVERY);
        answer_interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle_at = Instant::now() + idle_max;
        let mut message_timeout = MessageTimeout::default();
        loop {
            tokio::select! {
                biased;
                () = changes.triggered() => {
                    if let Err(end) = self.revalidate().await {
                        return end;
                    }
                }
                // Before the timers: received data counts as a sign of life.
                message = stream.next() => {
                    self.liveness.record_activity();
                    match &message {
                        Some(Ok(Message::Text(_))) => message_timeout.message_ended(self.received_bytes.load(Ordering::Relaxed)),
                        Some(Ok(Message::Ping(bytes) | Message::Pong(bytes))) => message_timeout.control_frame_received(bytes.len()),
                        _ => {}
                    }
                    if let Err(end) = self.receive(connection, message).await {
                        return end;
                    }
                }
                () = sleep_until(idle_at) => {
                    let quiet_since = self.liveness.idle_since();
                    if !connection.is_idle() {
                        idle_at = Instant::now() + idle_max;
                    } else if quiet_since.elapsed() >= idle_max {
                        return CloseReason::IDLE;
                    } else {
                        idle_at = quiet_since + idle_max;
                    }
                }
                // Revalidation is more frequent while answers are produced or sent.
                _ = answer_interval.tick() => {
                    let is_answering = !connection.is_idle() || self.liveness.is_writing();
                    if is_answering && let Err(end) = self.revalidate().await {
                        return end;
                    }
                }
                _ = ping_interval.tick() => {
                    if let Err(end) = self.revalidate().await {
                        return end;
                    }
                    if !self.liveness.take_activity() {
                        return CloseReason::PING_TIMEOUT;
                    }
                    if !message_timeout.is_within_limit(self.received_bytes.load(Ordering::Relaxed)) {
                        return CloseReason::too_slow();
                    }
                    // Full if the last ping has not been sent yet.
                    let _ = pings.try_send(());
                }
            }
        }
    }

    async fn receive(
        &self,
        connection: &Arc<McpConnection>,
        message: Option<Result<Message, Error>>,
    ) -> Result<(), CloseReason> {
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Binary(_))) => return Err(CloseReason::binary()),
            // The WebSocket library handles control frames.
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => return Err(CloseReason::from_error(&error, self.message_bytes_max)),
            None => return Err(CloseReason::Gone),
        };
        self.liveness.touch();
        let caller = match self.resolver.resolve_caller().await {
            Err(refused) if refused.is_final() => return Err(CloseReason::not_admitted(&refused)),
            caller => caller.map_err(|refused| refused.to_rpc_error()),
        };
        // While an operator has stopped MCP, requests are refused; running calls continue.
        let running = self.http_state.service.registry().transport_switches().require_running(TransportGroup::Mcp);
        let message = decode(text.as_bytes());
        let is_request = matches!(message, Ok(IncomingMessage::Request(_) | IncomingMessage::RpcBatch(_)));
        let caller = match running {
            Err(error) if is_request => Err(RpcError::new(RpcError::INTERNAL_ERROR, error.to_string())),
            _ => caller,
        };
        let resolver: Arc<dyn CallerResolver> = self.resolver.clone();
        connection.receive_decoded(message, caller, &resolver).await;
        Ok(())
    }

    async fn revalidate(&self) -> Result<(), CloseReason> {
        match self.resolver.resolve_caller().await {
            Err(refused) if refused.is_final() => Err(CloseReason::not_admitted(&refused)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Read buffer size. A smaller amount of received data does not count as an unfinished message.
const READ_BYTES: usize = 16 * 1024;

/// A control frame has a header of two bytes and a mask of four before its payload.
const CONTROL_HEAD_BYTES: usize = 6;

/// A message times out if it was unfinished at two consecutive checks and did not end between them.
#[derive(Default)]
struct MessageTimeout {
    bytes_at_message_end: u64,
    was_under_way: bool,
}

impl MessageTimeout {
    fn message_ended(&mut self, arrived: u64) {
        *self = Self { bytes_at_message_end: arrived, was_under_way: false };
    }

    /// Records a ping or pong, which is not part of a message.
    fn control_frame_received(&mut self, payload_bytes: usize) {
        self.bytes_at_message_end += (CONTROL_HEAD_BYTES + payload_bytes) as u64;
    }

    fn is_within_limit(&mut self, arrived: u64) -> bool {
        let is_under_way = arrived.saturating_sub(self.bytes_at_message_end) > READ_BYTES as u64;
        let was_under_way = std::mem::replace(&mut self.was_under_way, is_under_way);
        !(is_under_way && was_under_way)
    }
}

/// Ping interval. A client without a sign of life between two pings counts as disconnected.
const PING_EVERY: Duration = Duration::from_secs(30);

struct Liveness {
    had_activity: AtomicBool,
    /// Whether a message is being sent. Then the write timeout of the connection detects a client that does not read.
    is_writing: AtomicBool,
    /// The time of the last message in either direction. Pings and pongs are not messages.
    last_used: Mutex<Instant>,
}

impl Liveness {
    fn new() -> Self {
        let last_used = Mutex::new(Instant::now());
        Self { had_activity: AtomicBool::new(true), is_writing: AtomicBool::new(false), last_used }
    }

    /// Records received data, including a pong.
    fn record_activity(&self) {
        self.had_activity.store(true, Ordering::Relaxed);
    }

    fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    fn set_writing(&self, is_writing: bool) {
        self.is_writing.store(is_writing, Ordering::Relaxed);
        self.touch();
    }

    fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }

    /// Whether there was a sign of life since the last call, or none is required.
    fn take_activity(&self) -> bool {
        self.had_activity.swap(false, Ordering::Relaxed) || self.is_writing.load(Ordering::Relaxed)
    }

    fn idle_since(&self) -> Instant {
        if self.is_writing.load(Ordering::Relaxed) { Instant::now() } else { *self.last_used.lock() }
    }
}

/// Maximum size of a fragment in bytes; longer messages are split.
const FRAGMENT_BYTES_MAX: usize = 64 * 1024;

/// Writes the messages of `outbox`, and a ping for each item of `pings`, until the connection ends.
async fn write_messages(
    mut outbox: Outbox,
    mut pings: mpsc::Receiver<()>,
    mut sink: impl Sink<Message, Error = Error> + Unpin,
    liveness: &Liveness,
) -> Result<(), Error> {
    loop {
        tokio::select! {
            biased;
            Some(()) = pings.recv() => sink.send(Message::Ping(Bytes::new())).await?,
            message = outbox.next() => {
                let Some(message) = message else { return Ok(()) };
                liveness.set_writing(true);
                write_message(&mut sink, message, &mut pings).await?;
                if outbox.is_empty() {
                    sink.flush().await?;
                }
                liveness.set_writing(false);
            }
        }
    }
}

async fn write_message(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    mut message: OutgoingMessage,
    pings: &mut mpsc::Receiver<()>,
) -> Result<(), Error> {
    let mut opcode = Data::Text;
    // The last fragment is marked as the last, so each fragment waits until the next one exists.
    let mut waiting: Option<Bytes> = None;
    while let Some(mut piece) = message.next().await? {
        while !piece.is_empty() {
            let fragment = piece.split_to(piece.len().min(FRAGMENT_BYTES_MAX));
            if let Some(fragment) = waiting.replace(fragment) {
                sink.feed(fragment_frame(fragment, opcode, false)).await?;
                opcode = Data::Continue;
            }
            if pings.try_recv().is_ok() {
                sink.send(Message::Ping(Bytes::new())).await?;
            }
        }
    }
    sink.feed(fragment_frame(waiting.unwrap_or_default(), opcode, true)).await
}

fn fragment_frame(bytes: Bytes, opcode: Data, is_last: bool) -> Message {
    Message::Frame(Frame::message(bytes, OpCode::Data(opcode), is_last))
}

const CLOSE_WITHIN: Duration = Duration::from_secs(5);
const REASON_BYTES_MAX: usize = 123;
const DISCARDED_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
enum CloseReason {
    /// The client closed it or disconnected; nothing more can be sent.
    Gone,
    Shutdown,
    /// No message, or no answer to a ping, for too long.
    Quiet(CloseCode, &'static str),
    /// The client caused it, which is reported as a rejected message.
    ClientError(CloseCode, String),
}

impl CloseReason {
    const IDLE: Self = Self::Quiet(CloseCode::Normal, "idle for too long");
    const PING_TIMEOUT: Self = Self::Quiet(CloseCode::Away, "no answer to a ping");

    fn too_slow() -> Self {
        Self::ClientError(CloseCode::Policy, "the message arrived too slowly".to_owned())
    }

    fn binary() -> Self {
        Self::ClientError(CloseCode::Unsupported, "binary messages are not supported; send text".to_owned())
    }

    fn not_admitted(refused: &CallerError) -> Self {
        Self::ClientError(CloseCode::Policy, refused.to_rpc_error().message)
    }

    fn from_error(error: &Error, message_bytes_max: usize) -> Self {
        use tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
        let (code, reason) = match error {
            Error::Capacity(_) => (CloseCode::Size, format!("the message is longer than {message_bytes_max} bytes")),
            Error::Utf8(_) => (CloseCode::Invalid, "the message is not UTF-8".to_owned()),
            Error::Protocol(ResetWithoutClosingHandshake) => return Self::Gone,
            Error::Protocol(error) => (CloseCode::Protocol, error.to_string()),
            _ => return Self::Gone,
        };
        Self::ClientError(code, reason)
    }

    /// The close frame for the client; `None` if it is disconnected.
    fn to_close_frame(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::Shutdown => (CloseCode::Away, "the server is shutting down"),
            Self::Quiet(code, reason) => (*code, *reason),
            Self::ClientError(code, reason) => (*code, reason.as_str()),
        };
        let end = reason.floor_char_boundary(REASON_BYTES_MAX);
        Some(CloseFrame { code, reason: reason[..end].into() })
    }
}

/// Sends `frame` and waits up to `within` until the client has received it.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>, frame: CloseFrame, within: Duration) {
    let closing = async {
        socket.close(Some(frame)).await?;
        // The client's own close frame ends this; messages before it are ignored.
        while let Some(Ok(_)) = socket.next().await {}
        // After a protocol error, frames are not read any more. If the connection were dropped with unread bytes, the
        // operating system would reset it, and the client might not receive the reason.
        let stream = socket.get_mut();
        stream.shutdown().await?;
        let mut discarded = vec![0; DISCARDED_BYTES];
        while stream.read(&mut discarded).await? > 0 {}
        Ok::<_, Error>(())
    };
    // The connection is dropped now in any case.
    let _ = tokio::time::timeout(within, closing).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_frames_never_time_out() {
        let mut message_timeout = MessageTimeout::default();
        for look in 1..100 {
            message_timeout.control_frame_received(100_000 - CONTROL_HEAD_BYTES);
            assert!(message_timeout.is_within_limit(look * 100_000 + READ_BYTES as u64), "{look}");
        }
    }

    #[test]
    fn only_an_unfinished_message_times_out() {
        let mut message_timeout = MessageTimeout::default();
        for look in 1..10 {
            assert!(message_timeout.is_within_limit(look * 100_000), "{look}");
            message_timeout.message_ended(look * 100_000);
        }
        assert!(message_timeout.is_within_limit(1_000_000));
        assert!(!message_timeout.is_within_limit(1_000_001));
    }
}
