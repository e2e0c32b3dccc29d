//! Listening over Streamable HTTP. A legacy client listens for notifications by GET, or resumes a stream whose connection
//! broke; DELETE ends its session. The answer to a modern `subscriptions/listen` is an event stream that ends when the server
//! shuts down.
//!
//! Such a stream counts as a session. Its caller is resolved again at each change and at each keep-alive. Events are
//! created when the connection can take them. A client that takes none within the write timeout loses its connection;
//! it then listens again and reads the resources that it had subscribed to.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use tidegate_core::Caller;
use tidegate_mcp::{FeedPosition, ListenStream, NotificationFeed, RequestId, RpcError};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::browser;
use super::caller::{AuthenticatedRequest, HttpCallerResolver, RequestCredentials};
use super::response::{RefusalResponse, event_stream, no_such_session, refusal, require_mcp, session_id};
use super::session::{HttpSession, SessionPermit};
use super::sse::{self, parse_event_id, replay_body};
use super::state::HttpState;

/// Prefix of the event ids in the notification stream of a session. Streams of calls are numbered from 1.
const LISTENER_ID_PREFIX: &str = "0-";

/// Answers a browser with a page, before the caller is known: a person has no credentials there.
pub(super) async fn get(
    State(http_state): State<Arc<HttpState>>,
    request: Request,
) -> Result<Response, RefusalResponse> {
    if browser::is_page_requested(request.headers()) {
        return Ok(browser::endpoint_page(&http_state.reloadable_options()));
    }
    let AuthenticatedRequest { caller, credentials, request } =
        AuthenticatedRequest::from_request(request, &http_state).await?;
    require_mcp(&http_state, None)?;
    let headers = request.headers();
    require_event_stream(headers)?;
    let session = http_state.sessions.get(session_id(headers, None)?, &caller.principal);
    let session = session.ok_or_else(|| no_such_session(None))?;
    match headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default()) {
        Some(id) if !id.starts_with(LISTENER_ID_PREFIX) => resume(session, id),
        last => {
            let resolver = HttpCallerResolver::new(&http_state, credentials, &caller);
            Ok(listen(&session, resolver, &caller, last.and_then(parse_listener_event_id)).await)
        }
    }
}

/// Ends the session.
pub(super) async fn delete(
    State(http_state): State<Arc<HttpState>>,
    AuthenticatedRequest { caller, request, .. }: AuthenticatedRequest,
) -> Result<StatusCode, RefusalResponse> {
    match http_state.sessions.end(session_id(request.headers(), None)?, &caller.principal) {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_such_session(None).into()),
    }
}

/// 406 for clients that do not accept the event stream that GET opens.
pub(super) fn require_event_stream(headers: &HeaderMap) -> Result<(), RefusalResponse> {
    let accepted = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accepted.is_some_and(|accept| accept.contains("text/event-stream") || accept.contains("*/*")) {
        return Ok(());
    }
    let error = RpcError::invalid_request("GET opens an event stream: Accept must include text/event-stream");
    Err(refusal(StatusCode::NOT_ACCEPTABLE, None, &error).into())
}

fn resume(session: Arc<HttpSession>, id: &str) -> Result<Response, RefusalResponse> {
    let reader = parse_event_id(id).and_then(|(stream, event)| session.stream(stream)?.read_after(Some(event)).ok());
    let reader = reader.ok_or_else(|| {
        let error = RpcError::invalid_request(format!("event {id:?} is no longer stored; send the request again"));
        refusal(StatusCode::BAD_REQUEST, None, &error)
    })?;
    Ok(event_stream(replay_body(reader, session)))
}

/// `0-version.resources`: the position in the feed of the client that received that event.
fn listener_event_id(feed_position: FeedPosition) -> String {
    format!("{LISTENER_ID_PREFIX}{}.{}", feed_position.registry_version, feed_position.resource_changes)
}

fn parse_listener_event_id(id: &str) -> Option<FeedPosition> {
    let (version, resources) = id.strip_prefix(LISTENER_ID_PREFIX)?.split_once('.')?;
    Some(FeedPosition { registry_version: version.parse().ok()?, resource_changes: resources.parse().ok()? })
}

/// The ids of the events contain the position in the feed, so that a client that reconnects receives what it missed.
async fn listen(
    session: &Arc<HttpSession>,
    resolver: HttpCallerResolver,
    caller: &Caller,
    last: Option<FeedPosition>,
) -> Response {
    let replaced = CancellationToken::new();
    std::mem::replace(&mut *session.listener.lock(), replaced.clone()).cancel();
    let mut feed = NotificationFeed::for_session(&session.session);
    feed.resume(caller, last).await;
    let listener = NotificationBody {
        session: session.clone(),
        listener: ListenerRevalidator::new(resolver),
        replaced,
        feed,
        begun: false,
    };
    event_stream(Body::from_stream(stream::unfold(listener, |mut listener| async move {
        let bytes = listener.next().await?;
        Some((Ok::<_, Infallible>(bytes), listener))
    })))
}

struct NotificationBody {
    session: Arc<HttpSession>,
    listener: ListenerRevalidator,
    replaced: CancellationToken,
    feed: NotificationFeed,
    begun: bool,
}

impl NotificationBody {
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.begun, true) {
            // Some proxies do not forward headers without a body; a comment makes them do so.
            return Some(sse::KEEP_ALIVE);
        }
        let draining = self.listener.http_state().draining.clone();
        let listen_event = tokio::select! {
            biased;
            () = self.session.ended.cancelled() => return None,
            () = self.replaced.cancelled() => return None,
            () = draining.cancelled() => return None,
            event = self.listener.next(&mut self.feed) => event?,
        };
        // An open listener counts as use of the session.
        self.session.touch();
        Some(match listen_event {
            ListenEvent::Notification(message) => {
                sse::encode_event(&message, Some(&listener_event_id(self.feed.position())))
            }
            ListenEvent::KeepAlive => sse::KEEP_ALIVE,
        })
    }
}

enum ListenEvent {
    Notification(Bytes),
    /// The caller is still admitted, and there is no notification.
    KeepAlive,
}

struct ListenerRevalidator {
    resolver: HttpCallerResolver,
    next_check: Instant,
}

impl ListenerRevalidator {
    pub(super) fn new(resolver: HttpCallerResolver) -> Self {
        Self { resolver, next_check: next_check_time() }
    }

    pub(super) fn http_state(&self) -> &Arc<HttpState> {
        &self.resolver.http_state
    }

    /// The next notification of `feed`, or a keep-alive; `None` if the caller is no longer admitted.
    pub(super) async fn next(&mut self, feed: &mut NotificationFeed) -> Option<ListenEvent> {
        loop {
            // Revalidation also takes place while there are many notifications.
            if self.next_check <= Instant::now() {
                self.revalidate(feed).await?;
                return Some(feed.next_message().map_or(ListenEvent::KeepAlive, ListenEvent::Notification));
            }
            if let Some(notification) = feed.next_message() {
                return Some(ListenEvent::Notification(notification));
            }
            tokio::select! {
                () = sleep_until(self.next_check) => {}
                () = feed.changed() => self.revalidate(feed).await?,
            }
        }
    }

    async fn revalidate(&mut self, feed: &mut NotificationFeed) -> Option<()> {
        match self.resolver.resolve_caller().await {
            Ok(caller) => feed.update_caller(&caller).await,
            Err(refused) if refused.is_final() => return None,
            // A new configuration is still being applied, although the resolver waited for it.
            Err(_) => {}
        }
        self.next_check = next_check_time();
        Some(())
    }
}

fn next_check_time() -> Instant {
    Instant::now() + sse::KEEP_ALIVE_EVERY
}

pub(super) fn open_stream(
    http_state: &Arc<HttpState>,
    caller: &Caller,
    credentials: &RequestCredentials,
    id: &RequestId,
    accepts_events: bool,
    stream: ListenStream,
) -> Result<Response, RefusalResponse> {
    if !accepts_events {
        let message = "subscriptions/listen opens an event stream: Accept must include text/event-stream";
        return Err(refusal(StatusCode::NOT_ACCEPTABLE, Some(id), &RpcError::invalid_request(message)).into());
    }
    let permit = http_state.acquire_session_permit(caller, Some(id))?;
    let resolver = HttpCallerResolver::new(http_state, credentials.clone(), caller);
    let listening = SubscriptionBody {
        stream: Some(stream),
        listener: ListenerRevalidator::new(resolver),
        has_begun: false,
        _permit: permit,
    };
    Ok(event_stream(Body::from_stream(stream::unfold(listening, |mut listening| async move {
        let bytes = listening.next().await?;
        Some((Ok::<_, Infallible>(bytes), listening))
    }))))
}

/// One open stream. Closing its connection drops it.
struct SubscriptionBody {
    /// `None` after the result was sent.
    stream: Option<ListenStream>,
    listener: ListenerRevalidator,
    has_begun: bool,
    _permit: SessionPermit,
}

impl SubscriptionBody {
    async fn next(&mut self) -> Option<Bytes> {
        let feed = self.stream.as_mut()?.feed();
        if !std::mem::replace(&mut self.has_begun, true) {
            return feed.next_message().map(|acknowledgement| sse::encode_event(&acknowledgement, None));
        }
        let draining = self.listener.http_state().draining.clone();
        tokio::select! {
            biased;
            () = draining.cancelled() => {
                let result = self.stream.take()?.end();
                Some(sse::encode_event(&result.bytes, None))
            }
            message = self.listener.next(feed) => Some(match message? {
                ListenEvent::Notification(notification) => sse::encode_event(&notification, None),
                ListenEvent::KeepAlive => sse::KEEP_ALIVE,
            }),
        }
    }
}
