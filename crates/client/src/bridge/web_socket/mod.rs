//! WebSocket to the server: one connection for all messages, re-established when it is lost.

mod connect;
mod connection;
mod receive;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::connect::ConnectError;
use self::connection::WebSocketConnection;
use super::error::BridgeError;
use super::handshake::{Handshake, NegotiatedProtocol};
use super::options::{BridgeNotice, BridgeOptions, DELAY_MAX, reconnection_backoff};
use super::output::Output;
use super::request::{ClientRequest, ModernMetadata, ServerTransport};

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
