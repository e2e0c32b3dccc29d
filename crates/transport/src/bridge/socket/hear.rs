//! Reading a connection: each message goes to the client, and to whoever waits for it.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitStream, StreamExt};
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::tungstenite::Message;

use super::SocketLink;
use super::connection::{Connection, Stream};
use crate::bridge::arriving::{MEMORY_BYTES_MAX, on_one_line};
use crate::bridge::notice::Notice;
use crate::bridge::scanner::{Malformed, Scanner, Shape};
use crate::outbox::Outgoing;
use crate::spool::Spool;

/// A silent connection is asked for a sign of life this often.
const PING_EVERY: Duration = Duration::from_secs(15);
const PING_WITHIN: Duration = Duration::from_secs(1);
/// A connection that gives none for this long is lost.
const SILENT_MAX: Duration = Duration::from_secs(60);

impl SocketLink {
    /// Reads until the connection is lost, and says why it was.
    pub(super) async fn hear(&self, connection: &Connection, mut stream: SplitStream<Stream>) -> String {
        let mut pings = tokio::time::interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        // A client that was slow to read is no reason to ask twice.
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            let message = tokio::select! {
                message = stream.next() => message,
                _ = pings.tick() => {
                    if heard.elapsed() > SILENT_MAX {
                        return format!("the server was silent for {SILENT_MAX:?}");
                    }
                    // A server that reads nothing holds up what is sent; its silence is noticed all the same.
                    let _ = tokio::time::timeout(PING_WITHIN, connection.ping()).await;
                    continue;
                }
            };
            match message {
                Some(Ok(Message::Text(text))) => {
                    if let Err(reason) = self.pass_on(connection, text.into()).await {
                        return reason;
                    }
                }
                Some(Ok(Message::Binary(_))) => return "the server sent bytes where MCP has text".to_owned(),
                Some(Ok(Message::Close(Some(frame)))) if !frame.reason.is_empty() => {
                    return format!("the server closed it: {}", frame.reason);
                }
                Some(Ok(Message::Close(_))) | None => return "the server closed it".to_owned(),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(error)) => return error.to_string(),
            }
            // The client may have taken its time to read.
            heard = Instant::now();
        }
    }

    async fn pass_on(&self, connection: &Connection, text: Bytes) -> Result<(), String> {
        let garbage = |error: Malformed| format!("the server sent what is no message of JSON-RPC: {error}");
        let shape = shape_of(&text).map_err(garbage)?;
        if shape.has_method {
            self.output.send(self.line(&text).await?).await;
            return Ok(());
        }
        let ids = if shape.is_batch { ids_of_batch(&text) } else { shape.id.iter().cloned().collect() };
        if !shape.is_batch && !shape.is_answer() {
            return Err("the server sent what is no message of JSON-RPC: it has neither method nor result".to_owned());
        }
        // An error without an id is about a message that the server could not take; it is for the client to see.
        let waiting: Vec<_> = match ids.as_slice() {
            [] => connection.waiting_for_batches(),
            ids => ids.iter().filter_map(|id| connection.waiting_for(id)).collect(),
        };
        if waiting.is_empty() && !ids.is_empty() {
            self.options.tell(&Notice::Ignored("an answer that nobody waits for".to_owned()));
            return Ok(());
        }
        self.output.send(self.line(&text).await?).await;
        for waiter in waiting {
            // A call that was taken back waits no more.
            let _ = waiter.send(text.clone());
        }
        Ok(())
    }

    /// A large message waits on disk for its turn, as one that comes over HTTP does.
    async fn line(&self, text: &Bytes) -> Result<Outgoing, String> {
        let text = on_one_line(text.clone());
        if text.len() <= MEMORY_BYTES_MAX {
            return Ok(Outgoing::Whole(text));
        }
        let mut spool = Spool::new(text.len() as u64);
        spool.push(text).await.map_err(|error| format!("the bridge cannot keep the answer: {error}"))?;
        Ok(Outgoing::Spooled(spool))
    }
}

fn shape_of(text: &[u8]) -> Result<Shape, Malformed> {
    let mut scanner = Scanner::new();
    scanner.push(text)?;
    scanner.finish()
}

fn ids_of_batch(text: &[u8]) -> Vec<String> {
    let messages: Vec<&RawValue> = serde_json::from_slice(text).unwrap_or_default();
    messages.iter().filter_map(|message| shape_of(message.get().as_bytes()).ok()?.id).collect()
}
