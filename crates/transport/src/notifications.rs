//! Notifications on a shared connection: they are sent between other messages, through the same queue.
//!
//! A change becomes a message only when the queue has room. A client that reads slowly therefore receives one
//! notification for several changes. A client that does not read at all is dropped by its transport: HTTP breaks
//! connections at the write timeout, and over standard output the client blocks only itself.

use std::sync::Arc;
use std::time::Duration;

use tidegate_mcp::{ListenStream, NotificationFeed};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::outbox::OutgoingMessage;
use crate::revalidation::CallerResolver;

/// Maximum number of notification streams of one connection. They do not count as requests.
pub(crate) const STREAMS_MAX: usize = 16;
/// Delay before a caller that cannot be resolved now is resolved again. The connection itself decides whether to end.
const RESOLVE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Forwards the notifications of `stream` until its client cancels it or `input_closed` fires. Then sends its result.
pub(crate) async fn forward_subscription(
    mut stream: ListenStream,
    resolver: &Arc<dyn CallerResolver>,
    outgoing: &mpsc::Sender<OutgoingMessage>,
    input_closed: &CancellationToken,
) {
    let cancelled = stream.cancellation();
    let forwarding = async {
        // The acknowledgement comes first, even if the stream ends immediately.
        forward_pending(stream.feed(), outgoing).await;
        input_closed.run_until_cancelled(forward_feed(stream.feed(), resolver, outgoing)).await;
        let _ = outgoing.send(OutgoingMessage::Whole(stream.end().bytes)).await;
    };
    cancelled.run_until_cancelled(forwarding).await;
}

pub(crate) async fn forward_feed(
    feed: &mut NotificationFeed,
    resolver: &Arc<dyn CallerResolver>,
    outgoing: &mpsc::Sender<OutgoingMessage>,
) {
    loop {
        forward_pending(feed, outgoing).await;
        tokio::select! {
            () = outgoing.closed() => return,
            () = feed.changed() => {}
        }
        match resolver.resolve_caller().await {
            Ok(caller) => feed.update_caller(&caller).await,
            Err(_) => tokio::time::sleep(RESOLVE_AGAIN_AFTER).await,
        }
    }
}

async fn forward_pending(feed: &mut NotificationFeed, outgoing: &mpsc::Sender<OutgoingMessage>) {
    // Reserves room first: a change that occurs while this waits is part of the same message.
    while let Ok(room) = outgoing.reserve().await
        && let Some(message) = feed.next_message()
    {
        room.send(OutgoingMessage::Whole(message));
    }
}
