//! Telling on a connection that requests share: notifications go out between other messages, through the same queue.
//!
//! What has changed becomes a message only when the queue has room, so a client that reads slowly hears of each change
//! once. One that does not read at all is dropped by its transport: HTTP breaks connections that take nothing within
//! the bound on writing, and over the standard streams nothing is lost but its own output.

use std::sync::Arc;
use std::time::Duration;

use tidegate_mcp::{ListenStream, NotificationFeed};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::batch::CallerResolver;
use crate::outbox::OutgoingMessage;

/// Streams of notifications that one connection may have open; they have places of their own beside its requests.
pub(crate) const STREAMS_MAX: usize = 16;
/// A listener who cannot be identified now is asked for again after that time. Whether it is to be let go is its
/// connection's to find out.
const RESOLVE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Tells what `stream` has to tell, until its client cancels it, or `input_closed` fires: then comes its result.
pub(crate) async fn forward_subscription(
    mut stream: ListenStream,
    identity: &Arc<dyn CallerResolver>,
    outgoing: &mpsc::Sender<OutgoingMessage>,
    ending: &CancellationToken,
) {
    let cancelled = stream.cancellation();
    let telling = async {
        // Before the end as well, the acknowledgement comes first.
        forward_pending(stream.feed(), outgoing).await;
        tokio::select! {
            biased;
            () = ending.cancelled() => {}
            () = forward_feed(stream.feed(), identity, outgoing) => {}
        }
        let _ = outgoing.send(OutgoingMessage::Whole(stream.end().bytes)).await;
    };
    tokio::select! {
        biased;
        () = cancelled.cancelled() => {}
        () = telling => {}
    }
}

/// Tells what `feed` has to tell for as long as somebody takes it.
pub(crate) async fn forward_feed(
    feed: &mut NotificationFeed,
    identity: &Arc<dyn CallerResolver>,
    outgoing: &mpsc::Sender<OutgoingMessage>,
) {
    loop {
        forward_pending(feed, outgoing).await;
        tokio::select! {
            () = outgoing.closed() => return,
            () = feed.changed() => {}
        }
        match identity.resolve_caller().await {
            Ok(caller) => feed.update_caller(&caller).await,
            Err(_) => tokio::time::sleep(RESOLVE_AGAIN_AFTER).await,
        }
    }
}

async fn forward_pending(feed: &mut NotificationFeed, outgoing: &mpsc::Sender<OutgoingMessage>) {
    // Room first: what changes while a message waits for room is told by that message.
    while let Ok(room) = outgoing.reserve().await
        && let Some(message) = feed.next_message()
    {
        room.send(OutgoingMessage::Whole(message));
    }
}
