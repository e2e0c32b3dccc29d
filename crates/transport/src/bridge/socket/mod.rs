//! WebSocket to the server: one connection for all messages, which is made again when it is lost.

mod connection;
mod dial;
mod hear;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::connection::Connection;
use self::dial::NotConnected;
use super::BridgeOptions;
use super::backoff::{Backoff, LONGEST};
use super::failure::Failure;
use super::handshake::{Handshake, Terms};
use super::notice::Notice;
use super::output::Output;
use super::request::Call;

/// How long taking leave may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// The way to a server over WebSocket.
pub(super) struct SocketLink {
    options: Arc<BridgeOptions>,
    output: Output,
    standing: watch::Sender<Standing>,
    /// What the client's handshake settled, to be made again on each new connection.
    handshake: Mutex<Option<Handshake>>,
    /// A call wants another attempt at a server that refused.
    wanted: Notify,
}

/// Whether a connection stands.
#[derive(Clone)]
enum Standing {
    Away {
        reason: String,
    },
    Connected(Arc<Connection>),
    /// At that attempt.
    Refused {
        failure: Failure,
        attempt: u64,
    },
}

impl SocketLink {
    pub(super) fn new(options: Arc<BridgeOptions>, output: Output) -> Self {
        let standing = watch::Sender::new(Standing::Away { reason: "it does not answer".to_owned() });
        Self { options, output, standing, handshake: Mutex::default(), wanted: Notify::new() }
    }

    /// Keeps a connection up until it is dropped.
    pub(super) async fn stand(&self) {
        let mut backoff = Backoff::default();
        let mut is_lost = false;
        for attempt in 1.. {
            match self.dial().await {
                Ok((connection, stream)) => {
                    let since = Instant::now();
                    if std::mem::take(&mut is_lost) {
                        self.options.tell(&Notice::Back);
                    }
                    let connection = Arc::new(connection);
                    self.standing.send_replace(Standing::Connected(connection.clone()));
                    let reason = self.hear(&connection, stream).await;
                    self.standing.send_replace(Standing::Away { reason: reason.clone() });
                    connection.lose(reason.clone());
                    is_lost = true;
                    self.options.tell(&Notice::Lost(reason));
                    // A server that hangs up at once is not asked more and more often.
                    if since.elapsed() > LONGEST {
                        backoff.reset();
                    }
                }
                Err(NotConnected::Away(reason)) => {
                    if !std::mem::replace(&mut is_lost, true) {
                        self.options.tell(&Notice::Lost(reason.clone()));
                    }
                    self.standing.send_replace(Standing::Away { reason });
                }
                Err(NotConnected::Refused(failure)) => {
                    self.options.tell(&Notice::Refused(failure.to_string()));
                    self.standing.send_replace(Standing::Refused { failure, attempt });
                    self.wanted.notified().await;
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Sends `call` once, and gives its answer to the client.
    pub(super) async fn call(&self, call: &Call) -> Result<(), Failure> {
        self.exchange(call).await.map(|_| ())
    }

    /// Sends the client's handshake, and keeps what it settles.
    pub(super) async fn shake_hands(&self, call: &Call) -> Result<(), Failure> {
        *self.handshake.lock() = None;
        let answer = self.exchange(call).await?;
        if let (Ok(terms), [id]) = (Terms::read(&answer), call.ids.as_slice()) {
            let handshake = Handshake { initialize: call.line.clone(), id: id.clone(), initialized: None, terms };
            *self.handshake.lock() = Some(handshake);
        }
        Ok(())
    }

    /// Passes on the notification that ends the client's handshake.
    pub(super) async fn initialized(&self, line: Bytes) {
        if let Some(handshake) = &mut *self.handshake.lock() {
            handshake.initialized = Some(line.clone());
        }
        self.notify(&line).await;
    }

    /// Passes on what wants no answer.
    pub(super) async fn notify(&self, line: &Bytes) {
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
        self.options.tell(&Notice::Ignored(format!("a notification did not arrive: {failure}")));
    }

    /// Takes leave of the server.
    pub(super) async fn end(&self) {
        let Standing::Connected(connection) = self.standing.borrow().clone() else { return };
        let _ = tokio::time::timeout(CLOSE_WITHIN, connection.close()).await;
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.options.wait_within
    }

    /// Sends `call` once and waits for its answer, which the client hears as it comes.
    async fn exchange(&self, call: &Call) -> Result<Bytes, Failure> {
        let deadline = self.deadline();
        loop {
            let connection = self.connection(deadline).await?;
            let waiting = connection.wait_for(call);
            call.open.set_under_way(true);
            match connection.send(&call.line).await {
                Ok(Ok(())) => return waiting.answered().await,
                Ok(Err(failure)) => return Err(failure),
                // Nothing of it was sent: the next connection may have it.
                Err(_) => call.open.set_under_way(false),
            }
        }
    }

    /// A connection that stands, as soon as one does.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Failure> {
        let mut standing = self.standing.subscribe();
        let mut refused_before = None;
        loop {
            match standing.borrow_and_update().clone() {
                Standing::Connected(connection) if !connection.lost.is_cancelled() => return Ok(connection),
                Standing::Refused { failure, attempt } => {
                    // What was refused before this call may be let in now; it is tried once more.
                    if *refused_before.get_or_insert(attempt) != attempt {
                        return Err(failure);
                    }
                    self.wanted.notify_one();
                }
                Standing::Connected(_) | Standing::Away { .. } => {
                    refused_before.get_or_insert(0);
                }
            }
            if tokio::time::timeout_at(deadline, standing.changed()).await.is_err() {
                return Err(match standing.borrow().clone() {
                    Standing::Refused { failure, .. } => failure,
                    Standing::Away { reason } => Failure::Unreachable { waited: self.options.wait_within, reason },
                    Standing::Connected(_) => {
                        let reason = "the connection was lost again".to_owned();
                        Failure::Unreachable { waited: self.options.wait_within, reason }
                    }
                });
            }
        }
    }
}
