//! MCP over HTTP+SSE, the first network transport: one event stream for all messages of the server, and a POST for each
//! message of the client.
//!
//! The stream is a body, so it runs within the task of its connection. It is polled only while the client reads, so a
//! client that does not read delays only its own calls. Dropping the stream ends its session, unless a client may resume
//! it (`sse_resume_within`): then it waits for that time. It has comments while it is quiet.
//!
//! [MCP 2024-11-05, HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse)

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use tidegate_core::TransportKind;
use tidegate_mcp::{IncomingMessage, RpcError};
use tidegate_runtime::event::Event;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::caller::{AuthenticatedRequest, HttpCallerResolver};
use super::kept_events::KeptEvents;
use super::listen::require_event_stream;
use super::post::read_message;
use super::response::{RefusalResponse, accepted, event_stream, refusal, require_mcp};
use super::session::{SessionPermit, SseSession};
use super::state::{HttpState, TRACE};
use super::{body, sse};
use crate::mcp_connection::{ConnectionLimits, McpConnection};
use crate::outbox::{Outbox, OutgoingMessage};
use crate::revalidation::{CallerResolver, REVALIDATE_EVERY, RevalidationTriggers};

/// GET: opens an event stream, whose first event contains the URL for messages. The session ends with the stream.
pub(super) async fn open(
    State(http_state): State<Arc<HttpState>>,
    original: OriginalUri,
    AuthenticatedRequest { caller, credentials, request }: AuthenticatedRequest,
) -> Result<Response, RefusalResponse> {
    require_mcp(&http_state, None)?;
    require_event_stream(request.headers())?;
    // The path prefix under which a host application mounted the router.
    let mount = original.path().strip_suffix(request.uri().path()).unwrap_or_default();
    let resolver = HttpCallerResolver::new(&http_state, credentials, &caller);
    let last_event = request.headers().get("last-event-id").and_then(|id| id.to_str().ok());
    let resumed = match last_event {
        Some(id) => detached_stream(&http_state, id, &resolver).await,
        None => None,
    };
    let stream = match resumed {
        Some((stream, missed)) => stream.attach(resolver, mount, missed),
        None => {
            let permit = http_state.acquire_session_permit(&caller, None)?;
            EventStream::open(resolver, mount, permit)
        }
    };
    let attached = AttachedStream(Some(stream));
    Ok(event_stream(Body::from_stream(futures::stream::unfold(attached, |mut attached| async move {
        let bytes = attached.next().await?;
        Some((Ok::<_, Infallible>(bytes), attached))
    }))))
}

/// The stream of the session in `id`, and what its client missed after that event; `None` if it cannot be resumed.
async fn detached_stream(
    http_state: &HttpState,
    id: &str,
    resolver: &HttpCallerResolver,
) -> Option<(EventStream, VecDeque<Bytes>)> {
    http_state.reloadable_options().sse_resume_within?;
    let (session_id, number) = id.rsplit_once('-')?;
    let number = number.parse().ok()?;
    // A session of another principal does not exist, and one of another toolset has other entries.
    let session = http_state.streams.get(session_id, &resolver.owner)?;
    if session.toolset != resolver.credentials.toolset {
        return None;
    }
    // The server may not have noticed that the connection is lost.
    session.replace_connection();
    let detached = timeout(DETACH_WITHIN, http_state.detached_streams.take(session_id)).await.ok()?;
    let missed = detached.kept.after(number)?;
    Some((detached, missed))
}

/// How long a client waits until the stream of its earlier connection is free.
const DETACH_WITHIN: Duration = Duration::from_secs(5);

/// A stream with a connection. Without one, it waits for its client, if it may be resumed.
struct AttachedStream(Option<EventStream>);

impl AttachedStream {
    async fn next(&mut self) -> Option<Bytes> {
        let stream = self.0.as_mut()?;
        let bytes = stream.next().await;
        if bytes.is_none() && !stream.replaced.is_cancelled() {
            self.0 = None;
        }
        bytes
    }
}

impl Drop for AttachedStream {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            stream.detach();
        }
    }
}

/// Receives a message for session `id`. The status is 202, whatever the answer will be.
pub(super) async fn post(
    State(http_state): State<Arc<HttpState>>,
    Path(id): Path<String>,
    AuthenticatedRequest { caller, mut credentials, request }: AuthenticatedRequest,
) -> Result<Response, RefusalResponse> {
    let origin = credentials.origin;
    let Some(session) = http_state.streams.get(&id, &caller.principal) else {
        http_state.report_rejection(origin, NO_SUCH_SESSION);
        body::discard(request.into_body(), http_state.options.read_within).await;
        return Err(no_such_session().into());
    };
    let (parts, body) = request.into_parts();
    let message = read_message(&parts.headers, body, &http_state, origin).await;
    // Reading the body may have taken long, so the permissions of the caller are resolved now.
    credentials.toolset = session.toolset.clone();
    let resolver = Arc::new(HttpCallerResolver::new(&http_state, credentials, &caller));
    let caller = resolver.resolve_caller().await.map_err(|refused| refused.to_response(&http_state, origin))?;
    let mut incoming = match message? {
        Ok(incoming) => incoming,
        Err(rejection) => {
            if let Some(id) = &rejection.id {
                // The client expects the response with this id on the stream.
                session.connection.refuse(Some(id), &rejection.error).await;
            } else {
                http_state.report_rejection(origin, &rejection.error.message);
            }
            return Err(refusal(StatusCode::BAD_REQUEST, rejection.id.as_ref(), &rejection.error).into());
        }
    };
    match &incoming {
        IncomingMessage::Request(request) => require_mcp(&http_state, Some(&request.id))?,
        IncomingMessage::RpcBatch(_) => require_mcp(&http_state, None)?,
        IncomingMessage::Notification(_) | IncomingMessage::Response(_) => {}
    }
    session.touch();
    if let IncomingMessage::Request(request) = &mut incoming {
        request.meta.trace |= parts.headers.get(TRACE).is_some_and(|value| value == "1");
    }
    let resolver: Arc<dyn CallerResolver> = resolver;
    session.connection.receive(incoming, caller, &resolver).await;
    if session.connection.is_output_closed() { Err(no_such_session().into()) } else { Ok(accepted()) }
}

const NO_SUCH_SESSION: &str = "the session does not exist or has ended; open a new one with GET /mcp/sse";

/// 404, which makes a client open a new stream.
fn no_such_session() -> Response {
    refusal(StatusCode::NOT_FOUND, None, &RpcError::invalid_request(NO_SUCH_SESSION))
}

const TRANSPORT: TransportKind = TransportKind::Sse;

pub(super) struct EventStream {
    resolver: HttpCallerResolver,
    id: String,
    session: Arc<SseSession>,
    outbox: Outbox,
    changes: RevalidationTriggers,
    endpoint_event: Option<Bytes>,
    /// What a client missed that resumes the stream.
    missed: VecDeque<Bytes>,
    /// The last events, where clients may resume the stream.
    kept: KeptEvents,
    is_resumable: bool,
    /// Another connection of the client takes over.
    replaced: CancellationToken,
    runtime: Handle,
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
    fn open(resolver: HttpCallerResolver, mount: &str, permit: SessionPermit) -> Self {
        let service = resolver.http_state.service.clone();
        let changes = RevalidationTriggers::subscribe(&resolver, service.registry());
        service.registry().events().emit(Event::ConnectionOpened { transport: TRANSPORT });
        let limits = ConnectionLimits { streams_lone_answers: true, ..resolver.http_state.connection_limits() };
        let (connection, outbox) = McpConnection::open(service, resolver.credentials.origin, limits);
        let session = SseSession::new(connection, resolver.owner.clone(), resolver.credentials.toolset.clone());
        let (id, replaced) = (resolver.http_state.streams.insert(session.clone()), session.begin_connection());
        let endpoint_event = Some(endpoint_event(mount, &id));
        let (open_message, events, is_draining) = (None, 0, false);
        let is_resumable = resolver.http_state.reloadable_options().sse_resume_within.is_some();
        let revalidate_at = Instant::now() + sse::KEEP_ALIVE_EVERY;
        Self {
            resolver,
            id,
            session,
            outbox,
            changes,
            endpoint_event,
            missed: VecDeque::new(),
            kept: KeptEvents::default(),
            is_resumable,
            replaced,
            runtime: Handle::current(),
            open_message,
            events,
            is_draining,
            revalidate_at,
            _permit: permit,
        }
    }

    /// Continues on another connection, which receives what was missed.
    fn attach(mut self, resolver: HttpCallerResolver, mount: &str, missed: VecDeque<Bytes>) -> Self {
        self.changes = RevalidationTriggers::subscribe(&resolver, resolver.http_state.service.registry());
        self.endpoint_event = Some(endpoint_event(mount, &self.id));
        self.revalidate_at = Instant::now() + sse::KEEP_ALIVE_EVERY;
        self.session.touch();
        self.replaced = self.session.begin_connection();
        (self.resolver, self.missed) = (resolver, missed);
        self
    }

    /// Waits for the client to resume the stream, if it may; otherwise the session ends.
    fn detach(self) {
        let http_state = self.resolver.http_state.clone();
        let within = http_state.reloadable_options().sse_resume_within;
        // A client names its last event. It can continue after an event that is not kept, but not within it.
        let can_continue = self.events > 0 && (self.open_message.is_none() || self.kept.has_last());
        let Some(within) = within.filter(|_| self.is_resumable && can_continue && !self.is_draining) else {
            return;
        };
        let (id, runtime) = (self.id.clone(), self.runtime.clone());
        let number = http_state.detached_streams.insert(id.clone(), self);
        let detachment = Detachment { http_state: http_state.clone(), id, number };
        let wait = async move {
            // A server that shuts down does not wait for clients that left.
            let _ = timeout(within, detachment.http_state.draining.cancelled()).await;
            drop(detachment);
        };
        http_state.tasks.spawn_on(wait, &runtime);
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.replaced.is_cancelled() {
            return None;
        }
        if let Some(bytes) = self.endpoint_event.take().or_else(|| self.missed.pop_front()) {
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
        let bytes = match piece.ok()? {
            Some(piece) => piece,
            None => {
                self.open_message = None;
                sse::EVENT_END
            }
        };
        if self.is_resumable {
            self.kept.push(bytes.clone());
        }
        Some(bytes)
    }

    /// Waits for the next piece of a message that is still being produced. No comment can interrupt its event.
    async fn next_live_piece(&mut self) -> Option<Bytes> {
        loop {
            let Some(message) = &mut self.open_message else { return None };
            tokio::select! {
                biased;
                piece = message.next() => return self.continue_event(piece),
                () = self.replaced.cancelled() => return None,
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
                        OutgoingMessage::Whole(message) => Some(self.begin_event(&[&message[..], &sse::EVENT_END[..]])),
                        long @ (OutgoingMessage::Spooled(_) | OutgoingMessage::Live(_)) => {
                            self.open_message = Some(long);
                            self.revalidate_at = self.revalidate_at.min(Instant::now() + REVALIDATE_EVERY);
                            Some(self.begin_event(&[]))
                        }
                    };
                }
                () = self.replaced.cancelled() => return None,
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

    /// The beginning of the next event, up to `data`. Its id names the session where the stream can be resumed.
    fn begin_event(&mut self, data: &[&[u8]]) -> Bytes {
        self.events += 1;
        let mut event = match self.is_resumable {
            true => format!("event: message\nid: {}-{}\ndata: ", self.id, self.events),
            false => format!("event: message\nid: {}\ndata: ", self.events),
        }
        .into_bytes();
        data.iter().for_each(|piece| event.extend_from_slice(piece));
        let bytes = Bytes::from(event);
        if self.is_resumable {
            self.kept.begin(self.events, bytes.clone());
        }
        bytes
    }
}

/// Ends the stream of session `id` when dropped, unless its client has come back. Also when the runtime ends, since a
/// stream and the state that keeps it refer to each other.
struct Detachment {
    http_state: Arc<HttpState>,
    id: String,
    number: u64,
}

impl Drop for Detachment {
    fn drop(&mut self) {
        drop(self.http_state.detached_streams.remove(&self.id, self.number));
    }
}

/// The event with the URL for messages.
fn endpoint_event(mount: &str, session: &str) -> Bytes {
    format!("event: endpoint\ndata: {mount}/mcp/messages/{session}\n\n").into()
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.resolver.http_state.streams.remove(&self.id);
        self.session.connection.abandon();
        self.resolver.http_state.service.registry().events().emit(Event::ConnectionClosed { transport: TRANSPORT });
    }
}
