//! WebSocket to the server: one connection for all messages, re-established when it is lost.
//!
//! A new connection begins with the WebSocket handshake, and repeats that of a legacy client. Each message that is read
//! goes to the client, and completes the call that waits for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::SinkExt;
use futures::stream::{SplitSink, SplitStream, StreamExt};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};
use tokio_util::sync::CancellationToken;

use super::request::{
    BridgeError, ClientRequest, Handshake, ModernMetadata, NegotiatedProtocol, ServerTransport, is_same_id,
};
use super::server_message::{MessageMeter, MessageShape, Output, replace_line_breaks};
use super::{BridgeNotice, BridgeOptions, DELAY_MAX, reconnection_backoff};
use crate::server::{BearerToken, ServerMessage, ServerRefusal, missing_tls_error, permanent_tls_error};

const CLOSE_WITHIN: Duration = Duration::from_secs(1);

pub(super) struct WebSocketTransport {
    options: Arc<BridgeOptions>,
    output: Output,
    connection_state: watch::Sender<ConnectionState>,
    /// The client's handshake, which is repeated on each new connection.
    handshake: Mutex<Option<Handshake>>,
    reconnect_requested: Notify,
}

#[derive(Clone)]
enum ConnectionState {
    Disconnected {
        reason: String,
    },
    Connected(Arc<WebSocketConnection>),
    /// The attempt with this number was refused.
    Refused {
        failure: BridgeError,
        attempt: u64,
    },
}

#[async_trait]
impl ServerTransport for WebSocketTransport {
    async fn run_background(&self) {
        let mut backoff = reconnection_backoff();
        let mut is_lost = false;
        for attempt in 1.. {
            match self.connect().await {
                Ok((connection, stream)) => {
                    let since = Instant::now();
                    if std::mem::take(&mut is_lost) {
                        self.options.notify(&BridgeNotice::Reconnected);
                    }
                    let connection = Arc::new(connection);
                    self.connection_state.send_replace(ConnectionState::Connected(connection.clone()));
                    let reason = self.receive_until_lost(&connection, stream).await;
                    self.connection_state.send_replace(ConnectionState::Disconnected { reason: reason.clone() });
                    connection.mark_lost(reason.clone());
                    is_lost = true;
                    self.options.notify(&BridgeNotice::Disconnected(reason));
                    // A server that disconnects immediately is not contacted more often.
                    if since.elapsed() > DELAY_MAX {
                        backoff.reset();
                    }
                }
                Err(ConnectError::Unreachable(reason)) => {
                    if !std::mem::replace(&mut is_lost, true) {
                        self.options.notify(&BridgeNotice::Disconnected(reason.clone()));
                    }
                    self.connection_state.send_replace(ConnectionState::Disconnected { reason });
                }
                Err(ConnectError::Refused(failure)) => {
                    self.options.notify(&BridgeNotice::Refused(failure.to_string()));
                    self.connection_state.send_replace(ConnectionState::Refused { failure, attempt });
                    self.reconnect_requested.notified().await;
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn send(&self, request: &ClientRequest) -> Result<(), BridgeError> {
        self.exchange(request).await.map(drop)
    }

    async fn initialize(&self, request: &ClientRequest) -> Result<(), BridgeError> {
        *self.handshake.lock() = None;
        let answer = self.exchange(request).await?;
        // An answer without them is an error for the client.
        let negotiated = NegotiatedProtocol::parse(&answer).ok();
        *self.handshake.lock() = negotiated.and_then(|negotiated| Handshake::new(request, negotiated));
        Ok(())
    }

    async fn initialized(&self, line: Bytes) {
        if let Some(handshake) = &mut *self.handshake.lock() {
            handshake.initialized = Some(line.clone());
        }
        self.notify(&line, None).await;
    }

    async fn notify(&self, line: &Bytes, _modern: Option<&ModernMetadata>) {
        let deadline = self.deadline();
        let failure = loop {
            match self.connection(deadline).await {
                Ok(connection) => match connection.send(line).await {
                    Ok(Ok(())) => return,
                    Ok(Err(failure)) => break failure,
                    Err(_) => {}
                },
                Err(failure) => break failure,
            }
        };
        self.options.notify(&BridgeNotice::Ignored(format!("a notification was not delivered: {failure}")));
    }

    async fn end(&self) {
        let ConnectionState::Connected(connection) = self.connection_state.borrow().clone() else { return };
        let _ = tokio::time::timeout(CLOSE_WITHIN, connection.close()).await;
    }
}

impl WebSocketTransport {
    pub(super) fn new(options: Arc<BridgeOptions>, output: Output) -> Self {
        let connection_state =
            watch::Sender::new(ConnectionState::Disconnected { reason: "it does not answer".to_owned() });
        Self { options, output, connection_state, handshake: Mutex::default(), reconnect_requested: Notify::new() }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.options.wait_within
    }

    /// Sends `request` once and waits for its answer, which is forwarded to the client as it arrives.
    async fn exchange(&self, request: &ClientRequest) -> Result<Bytes, BridgeError> {
        let deadline = self.deadline();
        loop {
            let connection = self.connection(deadline).await?;
            let waiter = connection.wait_for(request);
            request.state.set_may_have_been_sent(true);
            match connection.send(&request.line).await {
                Ok(Ok(())) => return waiter.wait().await,
                Ok(Err(failure)) => return Err(failure),
                // Nothing was sent, so the next connection may be used.
                Err(_) => request.state.set_may_have_been_sent(false),
            }
        }
    }

    /// An established connection, once there is one.
    async fn connection(&self, deadline: Instant) -> Result<Arc<WebSocketConnection>, BridgeError> {
        let mut states = self.connection_state.subscribe();
        let mut refused_before = None;
        loop {
            match states.borrow_and_update().clone() {
                ConnectionState::Connected(connection) if !connection.lost.is_cancelled() => return Ok(connection),
                ConnectionState::Refused { failure, attempt } => {
                    // The refusal may be outdated; the bridge tries once more for this call.
                    if *refused_before.get_or_insert(attempt) != attempt {
                        return Err(failure);
                    }
                    self.reconnect_requested.notify_one();
                }
                ConnectionState::Connected(_) | ConnectionState::Disconnected { .. } => {
                    refused_before.get_or_insert(0);
                }
            }
            if tokio::time::timeout_at(deadline, states.changed()).await.is_err() {
                let reason = match states.borrow().clone() {
                    ConnectionState::Refused { failure, .. } => return Err(failure),
                    ConnectionState::Disconnected { reason } => reason,
                    ConnectionState::Connected(_) => "the connection was lost again".to_owned(),
                };
                return Err(BridgeError::Unreachable { waited: self.options.wait_within, reason });
            }
        }
    }
}

const MCP: HeaderValue = HeaderValue::from_static("mcp");

enum ConnectError {
    /// Another attempt may succeed.
    Unreachable(String),
    /// Retrying does not help without a change at the server or the configuration.
    Refused(BridgeError),
}

impl WebSocketTransport {
    async fn connect(&self) -> Result<(WebSocketConnection, SplitStream<WebSocket>), ConnectError> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(self.options.server_message_bytes_max))
            .max_frame_size(Some(self.options.server_message_bytes_max));
        let connector = self.options.authorities.as_ref().map(|trusted| Connector::Rustls(trusted.config()));
        let connecting = connect_async_tls_with_config(self.request()?, Some(config), true, connector);
        let connected = match tokio::time::timeout(self.options.wait_within, connecting).await {
            Ok(connected) => connected,
            Err(_) => return Err(ConnectError::Unreachable("it does not answer".to_owned())),
        };
        let (stream, _) = connected.map_err(|error| self.to_connect_error(error))?;
        let (sink, mut stream) = stream.split();
        let connection = WebSocketConnection::new(sink);
        let handshake = self.handshake.lock().clone();
        if let Some(handshake) = handshake {
            let repeating = self.repeat_handshake(&connection, &mut stream, &handshake);
            let late = || ConnectError::Unreachable("it does not answer the client's handshake".to_owned());
            tokio::time::timeout(self.options.handshake_within, repeating).await.map_err(|_| late())??;
        }
        Ok((connection, stream))
    }

    fn request(&self) -> Result<Request, ConnectError> {
        let url = self.options.address.url().as_str();
        let mut request = url.into_client_request().map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, MCP);
        if let Some(bearer) = &self.options.bearer {
            request.headers_mut().insert(AUTHORIZATION, bearer.header().clone());
        }
        Ok(request)
    }

    fn to_connect_error(&self, error: tungstenite::Error) -> ConnectError {
        let tungstenite::Error::Http(response) = error else {
            return match permanent_tls_error(&error).or_else(|| missing_tls_error(&error)) {
                Some(reason) => ConnectError::Refused(BridgeError::Tls { reason }),
                None => ConnectError::Unreachable(error.to_string()),
            };
        };
        let secret = self.options.bearer.as_ref().map(BearerToken::token);
        let message = ServerMessage::from_body(response.body().as_deref().unwrap_or_default(), secret);
        let status = response.status().as_u16();
        let message = match ServerRefusal::from_status(status, secret.is_some(), message) {
            Ok(refusal) => return ConnectError::Refused(refusal.into()),
            Err(message) => message,
        };
        ConnectError::Refused(match status {
            status @ (408 | 429 | 500..) => return ConnectError::Unreachable(format!("it answers {status}{message}")),
            status => BridgeError::NoEndpoint { status, usual_path: self.options.address.default_path(), message },
        })
    }

    /// Repeats the client's handshake. The answer is not forwarded, since the client has already received one.
    async fn repeat_handshake(
        &self,
        connection: &WebSocketConnection,
        stream: &mut SplitStream<WebSocket>,
        handshake: &Handshake,
    ) -> Result<(), ConnectError> {
        let lost = || ConnectError::Unreachable("the connection broke during the client's handshake".to_owned());
        let sent = connection.send(&handshake.initialize).await;
        sent.map_err(|_| lost())?.map_err(|_| lost())?;
        let negotiated = loop {
            let message = stream.next().await.and_then(Result::ok).ok_or_else(lost)?;
            let Message::Text(text) = message else { continue };
            let shape = MessageShape::parse(&text).map_err(|_| lost())?;
            if shape.has_method {
                self.output.send_line(replace_line_breaks(text.into())).await;
            } else if shape.id().is_some_and(|id| is_same_id(handshake.id.as_json(), id)) {
                break NegotiatedProtocol::parse(text.as_bytes()).map_err(|message| {
                    ConnectError::Refused(BridgeError::HandshakeRefused { reason: message.text().to_owned() })
                })?;
            }
        };
        negotiated.check_compatible(&handshake.negotiated).map_err(ConnectError::Refused)?;
        if let Some(initialized) = &handshake.initialized {
            let sent = connection.send(initialized).await;
            sent.map_err(|_| lost())?.map_err(|_| lost())?;
            for notification in negotiated.list_changed_notifications() {
                self.output.send_line(notification).await;
            }
        }
        self.options.notify(&BridgeNotice::HandshakeRenewed);
        Ok(())
    }
}

type WebSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct WebSocketConnection {
    sink: tokio::sync::Mutex<SplitSink<WebSocket, Message>>,
    waiting: Mutex<HashMap<String, PendingAnswer>>,
    lost: CancellationToken,
    reason: Mutex<String>,
}

struct PendingAnswer {
    answer: oneshot::Sender<Bytes>,
    is_of_batch: bool,
}

/// The message was not sent, not even partly: the connection was lost before.
struct NotSent;

/// Waits for the answers to one call. Dropping it unregisters them.
struct AnswerWaiter<'a> {
    connection: &'a WebSocketConnection,
    ids: Vec<String>,
    answers: Vec<oneshot::Receiver<Bytes>>,
}

impl WebSocketConnection {
    fn new(sink: SplitSink<WebSocket, Message>) -> Self {
        Self {
            sink: tokio::sync::Mutex::new(sink),
            waiting: Mutex::default(),
            lost: CancellationToken::new(),
            reason: Mutex::default(),
        }
    }

    /// Sends a line of the client. After the inner error, the line may have been sent partly.
    async fn send(&self, line: &Bytes) -> Result<Result<(), BridgeError>, NotSent> {
        let mut sink = tokio::select! {
            biased;
            () = self.lost.cancelled() => return Err(NotSent),
            sink = self.sink.lock() => sink,
        };
        // A line that is not UTF-8 was rejected earlier.
        let Ok(text) = Utf8Bytes::try_from(line.clone()) else { return Err(NotSent) };
        let sent = tokio::select! {
            biased;
            () = self.lost.cancelled() => return Ok(Err(self.lost_error())),
            sent = sink.send(Message::Text(text)) => sent,
        };
        Ok(sent.map_err(|error| BridgeError::ConnectionLost { reason: error.to_string() }))
    }

    /// Sends a ping, unless another message is being sent, which serves the same purpose.
    async fn ping(&self) {
        if let Ok(mut sink) = self.sink.try_lock() {
            // The reading side detects failures.
            let _ = sink.send(Message::Ping(Bytes::new())).await;
        }
    }

    async fn close(&self) {
        let _ = self.sink.lock().await.send(Message::Close(None)).await;
    }

    fn wait_for(&self, request: &ClientRequest) -> AnswerWaiter<'_> {
        let ids: Vec<String> = request.ids.iter().map(|id| id.as_json().to_owned()).collect();
        let mut waiting = self.waiting.lock();
        let mut answers = Vec::new();
        for id in &ids {
            let (answer, receiver) = oneshot::channel();
            waiting.insert(id.clone(), PendingAnswer { answer, is_of_batch: request.is_batch });
            answers.push(receiver);
        }
        drop(waiting);
        AnswerWaiter { connection: self, ids, answers }
    }

    fn take_waiter(&self, id: &str) -> Option<oneshot::Sender<Bytes>> {
        let mut waiting = self.waiting.lock();
        let waiter = waiting.remove(id).or_else(|| {
            let requested = waiting.keys().find(|requested| is_same_id(requested, id)).cloned()?;
            waiting.remove(&requested)
        });
        waiter.map(|waiter| waiter.answer)
    }

    /// Removes all waiters for answers of batches: a batch that is rejected as a whole is rejected without an id.
    fn take_batch_waiters(&self) -> Vec<oneshot::Sender<Bytes>> {
        let mut waiting = self.waiting.lock();
        waiting.extract_if(|_, waiter| waiter.is_of_batch).map(|(_, waiter)| waiter.answer).collect()
    }

    fn mark_lost(&self, reason: String) {
        *self.reason.lock() = reason;
        self.lost.cancel();
    }

    fn lost_error(&self) -> BridgeError {
        BridgeError::ConnectionLost { reason: self.reason.lock().clone() }
    }
}

impl AnswerWaiter<'_> {
    /// The answer; for a batch one of its answers, once all have arrived.
    async fn wait(mut self) -> Result<Bytes, BridgeError> {
        let answers = futures::future::try_join_all(std::mem::take(&mut self.answers));
        tokio::select! {
            biased;
            // A sender is dropped only after the connection is lost or this waiter is dropped.
            Ok(mut answers) = answers => Ok(answers.pop().unwrap_or_default()),
            () = self.connection.lost.cancelled() => Err(self.connection.lost_error()),
        }
    }
}

impl Drop for AnswerWaiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.connection.waiting.lock();
        for id in &self.ids {
            waiting.remove(id);
        }
    }
}

const PING_EVERY: Duration = Duration::from_secs(15);
const PING_WITHIN: Duration = Duration::from_secs(1);
const SILENT_MAX: Duration = Duration::from_secs(60);

impl WebSocketTransport {
    async fn receive_until_lost(&self, connection: &WebSocketConnection, mut stream: SplitStream<WebSocket>) -> String {
        let mut pings = tokio::time::interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        // If the client read slowly, missed ticks need no extra pings.
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut received = Instant::now();
        loop {
            let message = tokio::select! {
                message = stream.next() => message,
                _ = pings.tick() => {
                    if received.elapsed() > SILENT_MAX {
                        return format!("the server was silent for {SILENT_MAX:?}");
                    }
                    // A server that does not read blocks the ping; the silence is detected nevertheless.
                    let _ = tokio::time::timeout(PING_WITHIN, connection.ping()).await;
                    continue;
                }
            };
            match message {
                Some(Ok(Message::Text(text))) => {
                    if let Err(reason) = self.forward_message(connection, text).await {
                        return reason;
                    }
                }
                Some(Ok(Message::Binary(_))) => {
                    return "the server sent a binary message, but MCP messages are text".to_owned();
                }
                Some(Ok(Message::Close(Some(frame)))) if !frame.reason.is_empty() => {
                    return format!("the server closed the connection: {}", frame.reason);
                }
                Some(Ok(Message::Close(_))) | None => return "the server closed the connection".to_owned(),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(error)) => return error.to_string(),
            }
            // Forwarding may have waited for the client.
            received = Instant::now();
        }
    }

    async fn forward_message(&self, connection: &WebSocketConnection, text: Utf8Bytes) -> Result<(), String> {
        let invalid = |reason: String| format!("the server sent an invalid message: {reason}");
        let meter = MessageMeter::new(&self.output, self.options.server_message_bytes_max);
        meter.add(text.len()).await.map_err(|error| invalid(error.to_string()))?;
        let message = meter.finish(text).map_err(|error| invalid(error.to_string()))?;
        let shape = &message.shape;
        if shape.has_method {
            self.output.send(message.line).await;
            return Ok(());
        }
        if !shape.is_batch && !shape.is_answer() {
            return Err(invalid("it has neither method nor result".to_owned()));
        }
        // An error without an id concerns a message that the server could not process; it is forwarded to the client.
        let waiters: Vec<_> = match shape.ids.as_slice() {
            [] => connection.take_batch_waiters(),
            ids => ids.iter().filter_map(|id| connection.take_waiter(id)).collect(),
        };
        if waiters.is_empty() && !shape.ids.is_empty() {
            self.options.notify(&BridgeNotice::Ignored("an answer to no open request".to_owned()));
            return Ok(());
        }
        let text = message.bytes().clone();
        self.output.send(message.line).await;
        for waiter in waiters {
            // A cancelled call does not wait any more.
            let _ = waiter.send(text.clone());
        }
        Ok(())
    }
}
