//! The event stream of a session: its messages as numbered events, and comments while it is quiet.
//!
//! The stream is a body, so it runs within the task of its connection. It is polled only while the client reads, so a
//! client that does not read delays only its own calls. Dropping the stream ends its session.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::TransportKind;
use tidegate_runtime::event::Event;
use tokio::time::{Instant, sleep_until};

use crate::http::caller::HttpCallerResolver;
use crate::http::session::{SessionPermit, SseSession};
use crate::http::sse;
use crate::http::state::CONNECTION_LIMITS;
use crate::mcp_connection::{ConnectionLimits, McpConnection};
use crate::outbox::{Outbox, OutgoingMessage};
use crate::revalidation::{REVALIDATE_EVERY, RevalidationTriggers};

const TRANSPORT: TransportKind = TransportKind::Sse;
const LIMITS: ConnectionLimits = ConnectionLimits { streams_lone_answers: true, ..CONNECTION_LIMITS };

pub(super) struct EventStream {
    resolver: HttpCallerResolver,
    id: String,
    session: Arc<SseSession>,
    outbox: Outbox,
    changes: RevalidationTriggers,
    endpoint_event: Option<Bytes>,
    /// The message whose event has begun and not ended.
    open_message: Option<OutgoingMessage>,
    events: u64,
    is_draining: bool,
    /// The time of the next revalidation, which also takes place while many messages are sent.
    revalidate_at: Instant,
    _permit: SessionPermit,
}

impl EventStream {
    /// Opens a stream and its session. Messages are posted to a URL below `mount`.
    pub(super) fn open(resolver: HttpCallerResolver, mount: &str, permit: SessionPermit) -> Self {
        let service = resolver.http_state.service.clone();
        let changes = RevalidationTriggers::subscribe(&resolver, service.registry());
        service.registry().events().emit(Event::ConnectionOpened { transport: TRANSPORT });
        let (connection, outbox) = McpConnection::open(service, resolver.credentials.origin, LIMITS);
        let session = SseSession::new(connection, resolver.owner.clone(), resolver.credentials.toolset.clone());
        let id = resolver.http_state.streams.insert(session.clone());
        let endpoint = format!("event: endpoint\ndata: {mount}/mcp/messages/{id}\n\n");
        let endpoint_event = Some(endpoint.into());
        let (open_message, events, is_draining) = (None, 0, false);
        let revalidate_at = Instant::now() + sse::KEEP_ALIVE_EVERY;
        Self {
            resolver,
            id,
            session,
            outbox,
            changes,
            endpoint_event,
            open_message,
            events,
            is_draining,
            revalidate_at,
            _permit: permit,
        }
    }

    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.endpoint_event.take() {
            return Some(bytes);
        }
        // Revalidation also takes place while a long message is sent.
        if self.open_message.is_some() && self.revalidate_at <= Instant::now() && !self.revalidate().await {
            return None;
        }
        match &mut self.open_message {
            None => self.next_event().await,
            Some(OutgoingMessage::Live(_)) => self.next_live_piece().await,
            Some(message) => {
                let piece = message.next().await;
                self.continue_event(piece)
            }
        }
    }

    /// The next bytes of the open event, of which `piece` is the next piece or the end.
    fn continue_event(&mut self, piece: std::io::Result<Option<Bytes>>) -> Option<Bytes> {
        // A slow client that still reads keeps its session in use.
        self.session.touch();
        // A failure ends the stream, since the event cannot be completed.
        match piece.ok()? {
            Some(piece) => Some(piece),
            None => {
                self.open_message = None;
                Some(sse::EVENT_END)
            }
        }
    }

    /// Waits for the next piece of a message that is still being produced. No comment can interrupt its event.
    async fn next_live_piece(&mut self) -> Option<Bytes> {
        loop {
            let Some(message) = &mut self.open_message else { return None };
            tokio::select! {
                biased;
                piece = message.next() => return self.continue_event(piece),
                () = sleep_until(self.revalidate_at) => {
                    if !self.revalidate().await {
                        return None;
                    }
                }
                () = self.changes.triggered() => {
                    if !self.revalidate().await {
                        return None;
                    }
                }
                () = self.resolver.http_state.draining.cancelled(), if !self.is_draining => {
                    self.is_draining = true;
                    self.session.connection.finish();
                }
            }
        }
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        let quiet_until = Instant::now() + sse::KEEP_ALIVE_EVERY;
        let idle_max = self.resolver.http_state.options.session_idle_max;
        loop {
            let idle_at = self.session.last_used() + idle_max;
            tokio::select! {
                biased;
                () = sleep_until(self.revalidate_at) => {
                    if !self.revalidate().await {
                        return None;
                    }
                }
                message = self.outbox.next() => {
                    return match message? {
                        OutgoingMessage::Whole(message) => {
                            Some([&self.begin_event()[..], &message, &sse::EVENT_END].concat().into())
                        }
                        long @ (OutgoingMessage::Spooled(_) | OutgoingMessage::Live(_)) => {
                            self.open_message = Some(long);
                            self.revalidate_at = self.revalidate_at.min(Instant::now() + REVALIDATE_EVERY);
                            Some(self.begin_event())
                        }
                    };
                }
                () = self.resolver.http_state.draining.cancelled(), if !self.is_draining => {
                    self.is_draining = true;
                    self.session.connection.finish();
                }
                () = self.changes.triggered() => {
                    if !self.revalidate().await {
                        return None;
                    }
                }
                () = sleep_until(idle_at) => {
                    if self.session.connection.is_idle() && self.session.last_used() + idle_max <= Instant::now() {
                        return None;
                    }
                    self.session.touch();
                }
                () = sleep_until(quiet_until) => return Some(sse::KEEP_ALIVE),
            }
        }
    }

    async fn revalidate(&mut self) -> bool {
        let every = if self.open_message.is_some() { REVALIDATE_EVERY } else { sse::KEEP_ALIVE_EVERY };
        self.revalidate_at = Instant::now() + every;
        self.resolver.is_admitted().await
    }

    fn begin_event(&mut self) -> Bytes {
        self.events += 1;
        format!("event: message\nid: {}\ndata: ", self.events).into()
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.resolver.http_state.streams.remove(&self.id);
        self.session.connection.abandon();
        self.resolver.http_state.service.registry().events().emit(Event::ConnectionClosed { transport: TRANSPORT });
    }
}
