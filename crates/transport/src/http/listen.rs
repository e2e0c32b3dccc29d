//! Listening over Streamable HTTP: the answer to a modern `subscriptions/listen` is an event stream that ends with the
//! server, and what legacy listeners share with it.
//!
//! Such a stream takes a place among the sessions, and it is asked who listens at each change and each sign of life.
//! Events are made when the connection takes them. A client that takes none within the bound on writing loses its
//! connection; it listens anew, and reads what it had subscribed to.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use tidegate_core::Caller;
use tidegate_mcp::{Feed, ListenStream, RequestId, RpcError};
use tokio::time::{Instant, sleep_until};

use super::Door;
use super::identify::{Known, Shown};
use super::places::Place;
use super::response::{event_stream, refusal, too_many_sessions};
use super::sse;

/// What came next for a listener.
pub(super) enum Told {
    /// A notification.
    Notification(Bytes),
    /// It is still let in, and there is nothing to say.
    Nothing,
}

/// Who listens, and when that is asked again.
pub(super) struct Asking {
    known: Known,
    at: Instant,
}

impl Asking {
    pub(super) fn new(known: Known) -> Self {
        Self { known, at: next_time() }
    }

    pub(super) fn door(&self) -> &Arc<Door> {
        &self.known.door
    }

    /// What `feed` has to tell next, or a sign of life; `None` for who is let in no longer.
    pub(super) async fn next(&mut self, feed: &mut Feed) -> Option<Told> {
        loop {
            // Also while there is much to say.
            if self.at <= Instant::now() {
                self.renew(feed).await?;
                return Some(feed.next_message().map_or(Told::Nothing, Told::Notification));
            }
            if let Some(notification) = feed.next_message() {
                return Some(Told::Notification(notification));
            }
            tokio::select! {
                () = sleep_until(self.at) => {}
                () = feed.changed() => self.renew(feed).await?,
            }
        }
    }

    async fn renew(&mut self, feed: &mut Feed) -> Option<()> {
        match self.known.caller().await {
            Ok(caller) => feed.renew(&caller).await,
            Err(refused) if refused.is_final() => return None,
            // A new configuration is being entered; it was waited for.
            Err(_) => {}
        }
        self.at = next_time();
        Some(())
    }
}

fn next_time() -> Instant {
    Instant::now() + sse::KEEP_ALIVE_EVERY
}

/// Opens the event stream of `stream`, if its client accepts one and there is a place for it.
pub(super) fn open(
    door: &Arc<Door>,
    caller: &Caller,
    shown: &Shown,
    id: &RequestId,
    accepts_events: bool,
    stream: ListenStream,
) -> Response {
    if !accepts_events {
        let message = "subscriptions/listen opens an event stream: Accept must name text/event-stream";
        return refusal(StatusCode::NOT_ACCEPTABLE, Some(id), &RpcError::invalid_request(message));
    }
    let place = match door.place(caller) {
        Ok(place) => place,
        Err(level) => return too_many_sessions(Some(id), level),
    };
    let known = Known { door: door.clone(), shown: shown.clone(), owner: caller.principal.clone() };
    let listening = Listening { stream: Some(stream), asking: Asking::new(known), has_begun: false, _place: place };
    event_stream(Body::from_stream(stream::unfold(listening, |mut listening| async move {
        let bytes = listening.next().await?;
        Some((Ok::<_, Infallible>(bytes), listening))
    })))
}

/// One open stream. Closing its connection drops it.
struct Listening {
    /// None once its result was said.
    stream: Option<ListenStream>,
    asking: Asking,
    has_begun: bool,
    _place: Place,
}

impl Listening {
    async fn next(&mut self) -> Option<Bytes> {
        let feed = self.stream.as_mut()?.feed();
        if !std::mem::replace(&mut self.has_begun, true) {
            return feed.next_message().map(|acknowledgement| sse::event(&acknowledgement, None));
        }
        let draining = self.asking.door().draining.clone();
        tokio::select! {
            biased;
            () = draining.cancelled() => {
                let result = self.stream.take()?.end();
                Some(sse::event(&result.bytes, None))
            }
            told = self.asking.next(feed) => Some(match told? {
                Told::Notification(notification) => sse::event(&notification, None),
                Told::Nothing => sse::KEEP_ALIVE,
            }),
        }
    }
}
