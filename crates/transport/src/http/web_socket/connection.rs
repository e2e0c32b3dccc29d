//! One WebSocket from opening to end: reading and writing run concurrently, so that neither waits for the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tidegate_core::TransportKind;
use tidegate_mcp::{IncomingMessage, RpcError, decode};
use tidegate_runtime::TransportGroup;
use tidegate_runtime::event::Event;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::io::InspectReader;

use super::activity::{Liveness, MessageTimeout, PING_EVERY, READ_BYTES};
use super::close::{CLOSE_WITHIN, CloseReason, close};
use super::write::{FRAGMENT_BYTES_MAX, write_messages};
use crate::http::caller::HttpCallerResolver;
use crate::http::state::{CONNECTION_LIMITS, HttpState};
use crate::mcp_connection::McpConnection;
use crate::revalidation::{CallerResolver, REVALIDATE_EVERY, RevalidationTriggers};

const WRITE_BYTES: usize = 16 * 1024;

const TRANSPORT: TransportKind = TransportKind::WebSocket;

pub(super) struct WebSocketConnection {
    http_state: Arc<HttpState>,
    resolver: Arc<HttpCallerResolver>,
    liveness: Liveness,
    received_bytes: Arc<AtomicU64>,
    /// Fixed at the handshake.
    message_bytes_max: usize,
}

impl WebSocketConnection {
    pub(super) fn new(http_state: Arc<HttpState>, resolver: Arc<HttpCallerResolver>) -> Self {
        let message_bytes_max = http_state.reloadable_options().body_bytes_max;
        Self { http_state, resolver, liveness: Liveness::new(), received_bytes: Arc::default(), message_bytes_max }
    }

    /// Serves the client until it disconnects, has to be closed, or the server shuts down.
    pub(super) async fn serve(self, upgraded: Upgraded) {
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
        let (connection, outbox) =
            McpConnection::open(self.http_state.service.clone(), self.resolver.credentials.origin, CONNECTION_LIMITS);
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
        let is_request = matches!(message, Ok(IncomingMessage::Request(_) | IncomingMessage::Batch(_)));
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
