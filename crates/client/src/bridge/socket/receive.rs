//! Reads a connection: each message goes to the client, and completes the call that waits for it.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitStream, StreamExt};
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::tungstenite::Message;

use super::SocketLink;
use super::connection::{SocketConnection, SocketStream};
use crate::bridge::incoming::{MEMORY_BYTES_MAX, replace_line_breaks};
use crate::bridge::notice::BridgeNotice;
use crate::bridge::scanner::{MalformedMessage, MessageScanner, MessageShape};
use crate::outbox::OutgoingMessage;
use crate::spool::Spool;

/// Ping interval.
const PING_EVERY: Duration = Duration::from_secs(15);
const PING_WITHIN: Duration = Duration::from_secs(1);
/// A connection without received data for this long is lost.
const SILENT_MAX: Duration = Duration::from_secs(60);

impl SocketLink {
    /// Reads until the connection is lost, and returns the reason.
    pub(super) async fn receive_until_lost(
        &self,
        connection: &SocketConnection,
        mut stream: SplitStream<SocketStream>,
    ) -> String {
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
                    if let Err(reason) = self.forward_message(connection, text.into()).await {
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

    async fn forward_message(&self, connection: &SocketConnection, text: Bytes) -> Result<(), String> {
        let garbage = |error: MalformedMessage| format!("the server sent an invalid JSON-RPC message: {error}");
        let shape = scan_shape(&text).map_err(garbage)?;
        if shape.has_method {
            self.output.send(self.to_outgoing(&text).await?).await;
            return Ok(());
        }
        let ids = if shape.is_batch { ids_of_batch(&text) } else { shape.id.iter().cloned().collect() };
        if !shape.is_batch && !shape.is_answer() {
            return Err("the server sent an invalid JSON-RPC message: it has neither method nor result".to_owned());
        }
        // An error without an id concerns a message that the server could not process; it is forwarded to the client.
        let waiting: Vec<_> = match ids.as_slice() {
            [] => connection.take_batch_waiters(),
            ids => ids.iter().filter_map(|id| connection.take_waiter(id)).collect(),
        };
        if waiting.is_empty() && !ids.is_empty() {
            self.options.notify(&BridgeNotice::Ignored("an answer to no open request".to_owned()));
            return Ok(());
        }
        self.output.send(self.to_outgoing(&text).await?).await;
        for waiter in waiting {
            // A cancelled call does not wait any more.
            let _ = waiter.send(text.clone());
        }
        Ok(())
    }

    /// A large message waits on disk for its turn, like one that arrives over HTTP.
    async fn to_outgoing(&self, text: &Bytes) -> Result<OutgoingMessage, String> {
        let text = replace_line_breaks(text.clone());
        if text.len() <= MEMORY_BYTES_MAX {
            return Ok(OutgoingMessage::Whole(text));
        }
        let mut spool = Spool::new(text.len() as u64);
        spool.push(text).await.map_err(|error| format!("the bridge cannot store the answer on disk: {error}"))?;
        Ok(OutgoingMessage::Spooled(spool))
    }
}

fn scan_shape(text: &[u8]) -> Result<MessageShape, MalformedMessage> {
    let mut scanner = MessageScanner::new();
    scanner.push(text)?;
    scanner.finish()
}

fn ids_of_batch(text: &[u8]) -> Vec<String> {
    let messages: Vec<&RawValue> = serde_json::from_slice(text).unwrap_or_default();
    messages.iter().filter_map(|message| scan_shape(message.get().as_bytes()).ok()?.id).collect()
}
