//! One WebSocket from its opening to its end: reading and writing go on side by side, so that neither waits for the
//! other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tidegate_core::TransportKind;
use tidegate_core::event::Event;
use tidegate_mcp::decode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::arrival::{Counted, Patience, READ_BYTES};
use super::close::{CLOSE_WITHIN, End, close};
use super::liveness::{Liveness, PING_EVERY};
use super::write::{FRAGMENT_BYTES_MAX, write};
use crate::batch::Identity;
use crate::conversation::Conversation;
use crate::http::identify::Known;
use crate::http::{CONVERSATION, Door};
use crate::standing::{ASK_EVERY, Changes};

/// Short messages are written together up to that size.
const WRITE_BYTES: usize = 16 * 1024;

const TRANSPORT: TransportKind = TransportKind::WebSocket;

/// A WebSocket and who is at its other end.
pub(super) struct Connection {
    door: Arc<Door>,
    known: Arc<Known>,
    liveness: Liveness,
    arrived: Arc<AtomicU64>,
}

impl Connection {
    pub(super) fn new(door: Arc<Door>, known: Arc<Known>) -> Self {
        Self { door, known, liveness: Liveness::new(), arrived: Arc::default() }
    }

    /// Serves the client until it goes, gives cause to be closed, or the server shuts down.
    pub(super) async fn serve(self, upgraded: Upgraded) {
        let events = self.door.service.registry().events();
        events.tell(Event::ConnectionOpened { transport: TRANSPORT });
        let message_bytes_max = self.door.options.body_bytes_max;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(WRITE_BYTES)
            .max_write_buffer_size(WRITE_BYTES + 2 * FRAGMENT_BYTES_MAX)
            .max_frame_size(Some(message_bytes_max))
            .max_message_size(Some(message_bytes_max));
        let stream = Counted::new(TokioIo::new(upgraded), self.arrived.clone());
        self.converse(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await).await;
        events.tell(Event::ConnectionClosed { transport: TRANSPORT });
    }

    async fn converse(&self, socket: WebSocketStream<impl AsyncRead + AsyncWrite + Unpin>) {
        let (conversation, outbox) =
            Conversation::open(self.door.service.clone(), self.known.shown.origin, CONVERSATION);
        let (mut sink, mut stream) = socket.split();
        let (pings, to_ping) = mpsc::channel(1);
        let end = {
            let mut writing = std::pin::pin!(write(outbox, to_ping, &mut sink, &self.liveness));
            let end = tokio::select! {
                biased;
                // Also while a client that does not read holds up what is to be heard next.
                () = self.door.draining.cancelled() => End::Shutdown,
                _ = &mut writing => End::Gone,
                end = self.read_until_end(&conversation, &mut stream, pings) => end,
            };
            if end == End::Shutdown {
                conversation.finish();
                let _ = tokio::time::timeout(self.door.options.drain_within, writing).await;
            }
            end
        };
        conversation.abandon();
        if end.is_refusal()
            && let Some(frame) = end.frame()
        {
            conversation.tell_of_refusal(&frame.reason);
        }
        if let (Some(frame), Ok(socket)) = (end.frame(), stream.reunite(sink)) {
            let within = if end == End::Shutdown { self.door.options.drain_within } else { CLOSE_WITHIN };
            close(socket, frame, within.min(CLOSE_WITHIN)).await;
        }
    }

    async fn read_until_end(
        &self,
        conversation: &Conversation,
        stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
        pings: mpsc::Sender<()>,
    ) -> End {
        let idle_max = self.door.options.session_idle_max;
        let mut changes = Changes::of(&*self.known, self.door.service.registry());
        let mut asking = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        asking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asking_of_answers = interval_at(Instant::now() + ASK_EVERY, ASK_EVERY);
        asking_of_answers.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle_at = Instant::now() + idle_max;
        let mut patience = Patience::default();
        loop {
            tokio::select! {
                biased;
                () = changes.next() => {
                    if let Err(end) = self.must_be_let_in().await {
                        return end;
                    }
                }
                // Before it is looked at the clock: what has arrived is a sign of life.
                message = stream.next() => {
                    self.liveness.give_sign();
                    match &message {
                        Some(Ok(Message::Text(_))) => patience.message_ended(self.arrived.load(Ordering::Relaxed)),
                        Some(Ok(Message::Ping(bytes) | Message::Pong(bytes))) => patience.control_came(bytes.len()),
                        _ => {}
                    }
                    if let Err(end) = self.hear(conversation, message).await {
                        return end;
                    }
                }
                () = sleep_until(idle_at) => {
                    let quiet_since = self.liveness.quiet_since();
                    if !conversation.is_idle() {
                        idle_at = Instant::now() + idle_max;
                    } else if quiet_since.elapsed() >= idle_max {
                        return End::Idle;
                    } else {
                        idle_at = quiet_since + idle_max;
                    }
                }
                // While answers are made or leave, it is asked more often.
                _ = asking_of_answers.tick() => {
                    let is_answering = !conversation.is_idle() || self.liveness.is_writing();
                    if is_answering && let Err(end) = self.must_be_let_in().await {
                        return end;
                    }
                }
                _ = asking.tick() => {
                    if let Err(end) = self.must_be_let_in().await {
                        return end;
                    }
                    if !self.liveness.take_sign() {
                        return End::Silent;
                    }
                    if !patience.lasts(self.arrived.load(Ordering::Relaxed)) {
                        return End::TooSlow;
                    }
                    // Full when the last ping has not left yet.
                    let _ = pings.try_send(());
                }
            }
        }
    }

    async fn hear(&self, conversation: &Conversation, message: Option<Result<Message, Error>>) -> Result<(), End> {
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Binary(_))) => return Err(End::Binary),
            // What frames of control ask for is done where frames are read.
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => return Err(End::of_error(&error, self.door.options.body_bytes_max)),
            None => return Err(End::Gone),
        };
        self.liveness.touch();
        let caller = match self.known.caller().await {
            Err(refused) if refused.is_final() => return Err(End::NotLetIn(refused.error().message)),
            caller => caller.map_err(|refused| refused.error()),
        };
        let identity: Arc<dyn Identity> = self.known.clone();
        conversation.hear_read(decode(text.as_bytes()), caller, &identity).await;
        Ok(())
    }

    async fn must_be_let_in(&self) -> Result<(), End> {
        match self.known.caller().await {
            Err(refused) if refused.is_final() => Err(End::NotLetIn(refused.error().message)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
