//! Telling on a connection that requests share: notifications go out between other messages, through the same queue.
//!
//! What has changed becomes a message only when the queue has room, so a client that reads slowly hears of each change
//! once. One that does not read at all is dropped by its transport: HTTP breaks connections that take nothing within
//! the bound on writing, and over the standard streams nothing is lost but its own output.

use std::sync::Arc;
use std::time::Duration;

use tidegate_mcp::{Feed, ListenStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::batch::Identity;
use crate::outbox::Outgoing;

/// Streams of notifications that one connection may have open; they have places of their own beside its requests.
pub(crate) const STREAMS_MAX: usize = 16;
/// A listener who cannot be identified now is asked for again after that time. Whether it is to be let go is its
/// connection's to find out.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Tells what `stream` has to tell, until its client cancels it, or `ending` fires: then comes its result.
pub(crate) async fn tell_stream(
    mut stream: ListenStream,
    identity: &Arc<dyn Identity>,
    outgoing: &mpsc::Sender<Outgoing>,
    ending: &CancellationToken,
) {
    let cancelled = stream.cancellation();
    let telling = async {
        // Before the end as well, the acknowledgement comes first.
        tell_waiting(stream.feed(), outgoing).await;
        tokio::select! {
            biased;
            () = ending.cancelled() => {}
            () = tell(stream.feed(), identity, outgoing) => {}
        }
        let _ = outgoing.send(Outgoing::Whole(stream.end().bytes)).await;
    };
    tokio::select! {
        biased;
        () = cancelled.cancelled() => {}
        () = telling => {}
    }
}

/// Tells what `feed` has to tell for as long as somebody takes it.
pub(crate) async fn tell(feed: &mut Feed, identity: &Arc<dyn Identity>, outgoing: &mpsc::Sender<Outgoing>) {
    loop {
        tell_waiting(feed, outgoing).await;
        tokio::select! {
            () = outgoing.closed() => return,
            () = feed.changed() => {}
        }
        match identity.caller().await {
            Ok(caller) => feed.renew(&caller).await,
            Err(_) => tokio::time::sleep(ASK_AGAIN_AFTER).await,
        }
    }
}

async fn tell_waiting(feed: &mut Feed, outgoing: &mpsc::Sender<Outgoing>) {
    // Room first: what changes while a message waits for room is told by that message.
    while let Ok(room) = outgoing.reserve().await
        && let Some(message) = feed.next_message()
    {
        room.send(Outgoing::Whole(message));
    }
}
