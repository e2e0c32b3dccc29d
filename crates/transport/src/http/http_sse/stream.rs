//! One event stream: what is said in its session, as events with numbers, and comments while it is quiet.
//!
//! It is a body, so it runs within the task of its connection; and as that is polled only while the client reads, a
//! client that does not read holds up its own calls alone. When it is dropped its session ends.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tidegate_core::TransportKind;
use tidegate_core::event::Event;
use tokio::time::{Instant, sleep_until};

use super::streams::StreamSession;
use crate::conversation::Conversation;
use crate::http::CONVERSATION;
use crate::http::identify::Known;
use crate::http::places::Place;
use crate::http::sse;
use crate::outbox::{Outbox, Outgoing};
use crate::standing::{ASK_EVERY, Changes};

const TRANSPORT: TransportKind = TransportKind::Sse;

/// The event stream of a session.
pub(super) struct EventStream {
    known: Known,
    id: String,
    session: Arc<StreamSession>,
    outbox: Outbox,
    changes: Changes,
    /// What is said before anything else.
    waiting: Option<Bytes>,
    /// The message whose event has begun and has not ended.
    open: Option<Outgoing>,
    events: u64,
    is_draining: bool,
    /// When it is asked again who listens; also while there is much to say.
    ask_at: Instant,
    _place: Place,
}

impl EventStream {
    /// A stream and its session, to which messages are posted below `mount`.
    pub(super) fn open(known: Known, mount: &str, place: Place) -> Self {
        let service = known.door.service.clone();
        let changes = Changes::of(&known, service.registry());
        service.registry().events().tell(Event::ConnectionOpened { transport: TRANSPORT });
        let (conversation, outbox) = Conversation::open(service, known.shown.origin, CONVERSATION);
        let session = StreamSession::new(conversation, known.owner.clone(), known.shown.toolset.clone());
        let id = known.door.streams.insert(session.clone());
        let endpoint = format!("event: endpoint\ndata: {mount}/mcp/messages/{id}\n\n");
        let waiting = Some(endpoint.into());
        let (open, events, is_draining) = (None, 0, false);
        let ask_at = Instant::now() + sse::KEEP_ALIVE_EVERY;
        Self { known, id, session, outbox, changes, waiting, open, events, is_draining, ask_at, _place: place }
    }

    /// The next bytes; `None` when the session has ended.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.waiting.take() {
            return Some(bytes);
        }
        // Also while a long message leaves.
        if self.open.is_some() && self.ask_at <= Instant::now() && !self.is_let_in().await {
            return None;
        }
        if let Some(message) = &mut self.open {
            // What a slow client reads is a use of its session.
            self.session.touch();
            // A disk that fails ends the stream, since the event cannot be whole.
            return match message.next().await.ok()? {
                Some(piece) => Some(piece),
                None => {
                    self.open = None;
                    Some(sse::END)
                }
            };
        }
        self.next_event().await
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        let quiet_until = Instant::now() + sse::KEEP_ALIVE_EVERY;
        let idle_max = self.known.door.options.session_idle_max;
        loop {
            let idle_at = self.session.last_used() + idle_max;
            tokio::select! {
                biased;
                () = sleep_until(self.ask_at) => {
                    if !self.is_let_in().await {
                        return None;
                    }
                }
                message = self.outbox.next() => {
                    return match message? {
                        Outgoing::Whole(message) => Some(self.event(&message)),
                        spooled @ Outgoing::Spooled(_) => {
                            self.open = Some(spooled);
                            self.ask_at = self.ask_at.min(Instant::now() + ASK_EVERY);
                            Some(self.opening(0).freeze())
                        }
                    };
                }
                () = self.known.door.draining.cancelled(), if !self.is_draining => {
                    self.is_draining = true;
                    self.session.conversation.finish();
                }
                () = self.changes.next() => {
                    if !self.is_let_in().await {
                        return None;
                    }
                }
                () = sleep_until(idle_at) => {
                    if self.session.conversation.is_idle() && self.session.last_used() + idle_max <= Instant::now() {
                        return None;
                    }
                    self.session.touch();
                }
                () = sleep_until(quiet_until) => return Some(sse::KEEP_ALIVE),
            }
        }
    }

    async fn is_let_in(&mut self) -> bool {
        let every = if self.open.is_some() { ASK_EVERY } else { sse::KEEP_ALIVE_EVERY };
        self.ask_at = Instant::now() + every;
        self.known.is_let_in().await
    }

    /// A whole event.
    fn event(&mut self, message: &[u8]) -> Bytes {
        let mut bytes = self.opening(message.len() + sse::END.len());
        bytes.put_slice(message);
        bytes.put_slice(&sse::END);
        bytes.freeze()
    }

    /// The head of an event that carries a message, with room for as many bytes more.
    fn opening(&mut self, more_bytes: usize) -> BytesMut {
        self.events += 1;
        let mut bytes = BytesMut::with_capacity(64 + more_bytes);
        bytes.put_slice(format!("event: message\nid: {}\n", self.events).as_bytes());
        bytes.put_slice(sse::DATA);
        bytes
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.known.door.streams.remove(&self.id);
        self.session.conversation.abandon();
        self.known.door.service.registry().events().tell(Event::ConnectionClosed { transport: TRANSPORT });
    }
}
