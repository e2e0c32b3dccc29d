//! Reads a connection: each message goes to the client, and completes the call that waits for it.

use std::time::Duration;

use futures::stream::{SplitStream, StreamExt};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::WebSocketTransport;
use super::connection::{WebSocket, WebSocketConnection};
use crate::bridge::incoming::MessageMeter;
use crate::bridge::options::BridgeNotice;

const PING_EVERY: Duration = Duration::from_secs(15);
const PING_WITHIN: Duration = Duration::from_secs(1);
const SILENT_MAX: Duration = Duration::from_secs(60);

impl WebSocketTransport {
    pub(super) async fn receive_until_lost(
        &self,
        connection: &WebSocketConnection,
        mut stream: SplitStream<WebSocket>,
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
