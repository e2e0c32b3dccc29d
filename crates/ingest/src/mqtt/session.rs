//! What happens on a connection: messages are collected, stored, and then acknowledged.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::mqtt::connection::{CONNECT_MAX, Connection, ConnectionError, KEEP_ALIVE, check_subscribed};
use crate::mqtt::packet::{self, Message, Packet, ReadError};
use crate::mqtt::store::Store;

/// Messages that are not stored yet, at most.
pub const HELD_MESSAGES_MAX: usize = 10_000;
/// Bytes of messages that are not stored yet. The last message may exceed it.
pub const HELD_BYTES_MAX: usize = 16 << 20;
/// Messages of one write, at most.
const WRITE_MESSAGES_MAX: usize = 1_000;
/// Bytes of the messages of one write; a single message may have more.
const WRITE_BYTES_MAX: usize = 1 << 20;
/// How long a message waits for others, at most.
const COLLECT_MAX: Duration = Duration::from_millis(50);
/// A write begins earlier when no message arrived for this time: the broker may wait for acknowledgements.
const QUIET: Duration = Duration::from_millis(5);
/// A connection without any packet for this time is lost.
const SILENCE_MAX: Duration = Duration::from_secs(75);
/// The bytes that a message without content counts for.
const MESSAGE_OVERHEAD_BYTES: usize = 64;

/// How serving a connection ended.
#[derive(Debug)]
pub(crate) enum End {
    Stopped,
    Lost(ConnectionError),
}

/// Messages that are not stored yet.
#[derive(Debug)]
pub(crate) struct HeldMessages {
    store: Arc<Store>,
    waiting: Vec<Message>,
    waiting_bytes: usize,
    /// When the first and the last of the waiting messages arrived.
    first: Instant,
    last: Instant,
    storing: Option<Storing>,
}

struct Storing {
    stored: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// What is acknowledged then, in the order of arrival.
    packet_ids: Vec<u16>,
    messages: usize,
    bytes: usize,
}

tidegate_core::impl_debug!(Storing { messages });

fn size(message: &Message) -> usize {
    message.payload.len() + message.topic.len() + MESSAGE_OVERHEAD_BYTES
}

impl HeldMessages {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let now = Instant::now();
        Self { store, waiting: Vec::new(), waiting_bytes: 0, first: now, last: now, storing: None }
    }

    fn add(&mut self, message: Message) {
        self.last = Instant::now();
        if self.waiting.is_empty() {
            self.first = self.last;
        }
        self.waiting_bytes += size(&message);
        self.waiting.push(message);
    }

    fn has_room(&self) -> bool {
        let (messages, bytes) = self.storing.as_ref().map_or((0, 0), |storing| (storing.messages, storing.bytes));
        self.waiting.len() + messages < HELD_MESSAGES_MAX && self.waiting_bytes + bytes < HELD_BYTES_MAX
    }

    /// When the next write begins, if none is running.
    fn due(&self) -> Option<Instant> {
        if self.waiting.is_empty() || self.storing.is_some() {
            return None;
        }
        let is_full = self.waiting.len() >= WRITE_MESSAGES_MAX || self.waiting_bytes >= WRITE_BYTES_MAX;
        Some(if is_full { self.first } else { (self.first + COLLECT_MAX).min(self.last + QUIET) })
    }

    /// Begins a write with the first messages.
    fn begin(&mut self) {
        let (mut count, mut bytes) = (0, 0);
        for message in self.waiting.iter().take(WRITE_MESSAGES_MAX) {
            if count > 0 && bytes + size(message) > WRITE_BYTES_MAX {
                break;
            }
            count += 1;
            bytes += size(message);
        }
        let messages: Vec<Message> = self.waiting.drain(..count).collect();
        self.waiting_bytes -= bytes;
        let packet_ids = messages.iter().filter_map(|message| message.packet_id).collect();
        let stored = Box::pin(self.store.clone().store(Arc::new(messages)));
        self.storing = Some(Storing { stored, packet_ids, messages: count, bytes });
    }

    /// Waits for the running write. Returns what is acknowledged now. Dropping it does not end the write.
    async fn stored(&mut self) -> Vec<u16> {
        if let Some(storing) = &mut self.storing {
            storing.stored.as_mut().await;
        }
        self.storing.take().map(|storing| storing.packet_ids).unwrap_or_default()
    }

    /// Forgets messages that the broker sends again.
    pub(crate) fn forget(&mut self) {
        self.storing = None;
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    /// Stores messages that the broker does not send again.
    pub(crate) async fn store_all(&mut self) {
        loop {
            self.stored().await;
            if self.waiting.is_empty() {
                return;
            }
            self.begin();
        }
    }

    /// Serves the connection until it is lost or `stop` is cancelled. `subscribed` is called when the broker confirms the
    /// subscriptions.
    pub(crate) async fn serve(
        &mut self,
        connection: &mut Connection,
        stop: &CancellationToken,
        mut subscribed: impl FnMut(),
    ) -> End {
        let began = Instant::now();
        let mut is_subscribed = false;
        let mut last_packet = began;
        let mut ping = interval_at(began + KEEP_ALIVE / 2, KEEP_ALIVE / 2);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.due();
            let outcome = tokio::select! {
                biased;
                // Before the stop, so that what is on disk is acknowledged.
                packet_ids = self.stored(), if self.storing.is_some() => {
                    send(connection, stop, &acknowledgements(&packet_ids)).await
                }
                () = stop.cancelled() => return End::Stopped,
                _ = ping.tick() => {
                    if !self.has_room() {
                        // Nothing is read, so that silence means nothing.
                        last_packet = Instant::now();
                    } else if last_packet.elapsed() > SILENCE_MAX {
                        return End::Lost(ConnectionError::TimedOut(SILENCE_MAX));
                    } else if !is_subscribed && began.elapsed() > CONNECT_MAX {
                        return End::Lost(ConnectionError::TimedOut(CONNECT_MAX));
                    }
                    send(connection, stop, &packet::ping()).await
                }
                () = sleep_until(due.unwrap_or(began)), if due.is_some() => {
                    self.begin();
                    Ok(())
                }
                packet = connection.reader.next(), if self.has_room() => {
                    last_packet = Instant::now();
                    let confirmed = self.handle(packet);
                    if matches!(confirmed, Ok(true)) {
                        is_subscribed = true;
                        subscribed();
                    }
                    confirmed.map(drop)
                }
            };
            if let Err(error) = outcome {
                return End::Lost(error);
            }
        }
    }

    /// Handles a packet. Returns whether it confirms the subscriptions.
    fn handle(&mut self, packet: Result<Packet, ReadError>) -> Result<bool, ConnectionError> {
        match packet? {
            Packet::Message(message) => {
                self.store.counters.received.fetch_add(1, Ordering::Relaxed);
                self.add(message);
                Ok(false)
            }
            Packet::Subscribed { packet_id, codes } => {
                check_subscribed(&self.store.options, packet_id, &codes).map(|()| true)
            }
            Packet::Pong => Ok(false),
            Packet::Connected { .. } => Err(ConnectionError::Unexpected),
        }
    }
}

fn acknowledgements(packet_ids: &[u16]) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(packet_ids.len() * 4);
    for packet_id in packet_ids {
        packet::put_acknowledgement(&mut bytes, *packet_id);
    }
    bytes
}

/// Sends, unless `stop` is cancelled first, which the caller notices next.
async fn send(connection: &mut Connection, stop: &CancellationToken, bytes: &[u8]) -> Result<(), ConnectionError> {
    tokio::select! {
        biased;
        sent = connection.send(bytes) => sent,
        () = stop.cancelled() => Ok(()),
    }
}
