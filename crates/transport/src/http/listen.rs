//! Listening over Streamable HTTP: the answer to a modern `subscriptions/listen` is an event stream that ends when the
//! server shuts down. Legacy listeners share parts of it.
//!
//! Such a stream counts as a session. Its caller is resolved again at each change and at each keep-alive. Events are
//! created when the connection can take them. A client that takes none within the write timeout loses its connection;
//! it then listens again and reads the resources that it had subscribed to.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use tidegate_core::Caller;
use tidegate_mcp::{ListenStream, NotificationFeed, RequestId, RpcError};
use tokio::time::{Instant, sleep_until};

use super::caller::{HttpCallerResolver, RequestCredentials};
use super::response::{Refusal, event_stream, refusal};
use super::session::SessionPermit;
use super::sse;
use super::state::HttpState;

pub(super) enum ListenEvent {
    Notification(Bytes),
    /// The caller is still admitted, and there is no notification.
    KeepAlive,
}

pub(super) struct ListenerRevalidator {
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
) -> Result<Response, Refusal> {
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
