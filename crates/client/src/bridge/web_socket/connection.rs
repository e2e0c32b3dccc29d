//! One WebSocket connection: its sink, and the calls that wait for answers.

use std::collections::HashMap;

use bytes::Bytes;
use futures::SinkExt;
use futures::stream::SplitSink;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use tokio_util::sync::CancellationToken;

use crate::bridge::error::BridgeError;
use crate::bridge::request::{ClientRequest, is_same_id};

pub(super) type WebSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(super) struct WebSocketConnection {
    sink: tokio::sync::Mutex<SplitSink<WebSocket, Message>>,
    waiting: Mutex<HashMap<String, PendingAnswer>>,
    pub(super) lost: CancellationToken,
    reason: Mutex<String>,
}

struct PendingAnswer {
    answer: oneshot::Sender<Bytes>,
    is_of_batch: bool,
}

/// The message was not sent, not even partly: the connection was lost before.
pub(super) struct NotSent;

/// Waits for the answers to one call. Dropping it unregisters them.
pub(super) struct AnswerWaiter<'a> {
    connection: &'a WebSocketConnection,
    ids: Vec<String>,
    answers: Vec<oneshot::Receiver<Bytes>>,
}

impl WebSocketConnection {
    pub(super) fn new(sink: SplitSink<WebSocket, Message>) -> Self {
        Self {
            sink: tokio::sync::Mutex::new(sink),
            waiting: Mutex::default(),
            lost: CancellationToken::new(),
            reason: Mutex::default(),
        }
    }

    /// Sends a line of the client. After the inner error, the line may have been sent partly.
    pub(super) async fn send(&self, line: &Bytes) -> Result<Result<(), BridgeError>, NotSent> {
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
    pub(super) async fn ping(&self) {
        if let Ok(mut sink) = self.sink.try_lock() {
            // The reading side detects failures.
            let _ = sink.send(Message::Ping(Bytes::new())).await;
        }
    }

    pub(super) async fn close(&self) {
        let _ = self.sink.lock().await.send(Message::Close(None)).await;
    }

    pub(super) fn wait_for(&self, request: &ClientRequest) -> AnswerWaiter<'_> {
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

    pub(super) fn take_waiter(&self, id: &str) -> Option<oneshot::Sender<Bytes>> {
        let mut waiting = self.waiting.lock();
        let waiter = waiting.remove(id).or_else(|| {
            let requested = waiting.keys().find(|requested| is_same_id(requested, id)).cloned()?;
            waiting.remove(&requested)
        });
        waiter.map(|waiter| waiter.answer)
    }

    /// Removes all waiters for answers of batches: a batch that is rejected as a whole is rejected without an id.
    pub(super) fn take_batch_waiters(&self) -> Vec<oneshot::Sender<Bytes>> {
        let mut waiting = self.waiting.lock();
        waiting.extract_if(|_, waiter| waiter.is_of_batch).map(|(_, waiter)| waiter.answer).collect()
    }

    pub(super) fn mark_lost(&self, reason: String) {
        *self.reason.lock() = reason;
        self.lost.cancel();
    }

    fn lost_error(&self) -> BridgeError {
        BridgeError::ConnectionLost { reason: self.reason.lock().clone() }
    }
}

impl AnswerWaiter<'_> {
    /// The answer; for a batch one of its answers, once all have arrived.
    pub(super) async fn wait(mut self) -> Result<Bytes, BridgeError> {
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
