//! WebSocket to the server: one connection for all messages, re-established when it is lost.

mod connection;
mod dial;
mod receive;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::connection::SocketConnection;
use self::dial::DialError;
use super::error::BridgeError;
use super::handshake::{Handshake, NegotiatedProtocol};
use super::link::ServerLink;
use super::output::Output;
use super::{BridgeOptions, DELAY_MAX, reconnection_backoff};
use crate::bridge::BridgeNotice;
use crate::bridge::call::{ClientCall, ModernMetadata};

/// Time limit for closing the connection.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// The connection to a server over WebSocket.
pub(super) struct SocketLink {
    options: Arc<BridgeOptions>,
    output: Output,
    connection_state: watch::Sender<ConnectionState>,
    /// The client's handshake, which is repeated on each new connection.
    handshake: Mutex<Option<Handshake>>,
    /// Fires when a call requests another attempt after a refusal.
    reconnect_requested: Notify,
}

/// The state of the connection.
#[derive(Clone)]
enum ConnectionState {
    Disconnected {
        reason: String,
    },
    Connected(Arc<SocketConnection>),
    /// The attempt with this number was refused.
    Refused {
        failure: BridgeError,
        attempt: u64,
    },
}

#[async_trait]
impl ServerLink for SocketLink {
    async fn run_background(&self) {
        let mut backoff = reconnection_backoff();
        let mut is_lost = false;
        for attempt in 1.. {
            match self.dial().await {
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
                Err(DialError::Unreachable(reason)) => {
                    if !std::mem::replace(&mut is_lost, true) {
                        self.options.notify(&BridgeNotice::Disconnected(reason.clone()));
                    }
                    self.connection_state.send_replace(ConnectionState::Disconnected { reason });
                }
                Err(DialError::Refused(failure)) => {
                    self.options.notify(&BridgeNotice::Refused(failure.to_string()));
                    self.connection_state.send_replace(ConnectionState::Refused { failure, attempt });
                    self.reconnect_requested.notified().await;
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn call(&self, call: &ClientCall) -> Result<(), BridgeError> {
        self.exchange(call).await.map(|_| ())
    }

    async fn initialize(&self, call: &ClientCall) -> Result<(), BridgeError> {
        *self.handshake.lock() = None;
        let answer = self.exchange(call).await?;
        if let (Ok(terms), [id]) = (NegotiatedProtocol::parse(&answer), call.ids.as_slice()) {
            let handshake =
                Handshake { initialize: call.line.clone(), id: id.clone(), initialized: None, negotiated: terms };
            *self.handshake.lock() = Some(handshake);
        }
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

impl SocketLink {
    pub(super) fn new(options: Arc<BridgeOptions>, output: Output) -> Self {
        let connection_state =
            watch::Sender::new(ConnectionState::Disconnected { reason: "it does not answer".to_owned() });
        Self { options, output, connection_state, handshake: Mutex::default(), reconnect_requested: Notify::new() }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.options.wait_within
    }

    /// Sends `call` once and waits for its answer, which is forwarded to the client as it arrives.
    async fn exchange(&self, call: &ClientCall) -> Result<Bytes, BridgeError> {
        let deadline = self.deadline();
        loop {
            let connection = self.connection(deadline).await?;
            let waiting = connection.wait_for(call);
            call.open.set_may_have_been_sent(true);
            match connection.send(&call.line).await {
                Ok(Ok(())) => return waiting.wait().await,
                Ok(Err(failure)) => return Err(failure),
                // Nothing was sent, so the next connection may be used.
                Err(_) => call.open.set_may_have_been_sent(false),
            }
        }
    }

    /// An established connection, once there is one.
    async fn connection(&self, deadline: Instant) -> Result<Arc<SocketConnection>, BridgeError> {
        let mut validity = self.connection_state.subscribe();
        let mut refused_before = None;
        loop {
            match validity.borrow_and_update().clone() {
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
            if tokio::time::timeout_at(deadline, validity.changed()).await.is_err() {
                return Err(match validity.borrow().clone() {
                    ConnectionState::Refused { failure, .. } => failure,
                    ConnectionState::Disconnected { reason } => {
                        BridgeError::Unreachable { waited: self.options.wait_within, reason }
                    }
                    ConnectionState::Connected(_) => {
                        let reason = "the connection was lost again".to_owned();
                        BridgeError::Unreachable { waited: self.options.wait_within, reason }
                    }
                });
            }
        }
    }
}
