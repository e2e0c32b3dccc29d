//! The one task that asks for stamps, as long as somebody listens.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::Shared;
use super::table::{EntryId, Next, Question};
use super::turns::CONCURRENT_MAX;
use crate::caller::Caller;
use crate::error::{Error, ErrorKind};
use crate::registry::{fault_of, tell_of_fault};

/// Each stamp is asked for again after that time.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long a stamp may take; then it counts as unchanged.
const STAMP_WITHIN: Duration = Duration::from_secs(5);

/// Asks until nobody listens any more, or the registry is drained.
pub(super) async fn poll(shared: Arc<Shared>) {
    let mut asked = FuturesUnordered::new();
    loop {
        let mut next_at = None;
        while asked.len() < CONCURRENT_MAX {
            let version = *shared.versions.borrow();
            match shared.table.lock().next(Instant::now(), version) {
                Next::Ask(question) => asked.push(ask(question)),
                Next::At(due) => {
                    next_at = Some(due);
                    break;
                }
                Next::Nothing => break,
            }
        }
        if asked.is_empty() && next_at.is_none() && shared.table.lock().end_polling() {
            return;
        }
        tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            Some((id, caller, stamp)) = asked.next() => {
                let again_at = Instant::now() + AGAIN_AFTER;
                let has_failed_now = shared.table.lock().answered(id, &caller, stamp.as_ref().ok(), again_at);
                if let Err(error) = stamp && has_failed_now {
                    tell_of_fault(&shared.events, &error, Uuid::new_v4());
                }
            }
            () = shared.sooner.notified() => {}
            () = sleep_until(next_at.unwrap_or_else(Instant::now)), if next_at.is_some() => {}
        }
    }
}

/// What the watcher says.
async fn ask(question: Question) -> (EntryId, Arc<Caller>, Result<Option<String>, Error>) {
    let Question { id, caller, found } = question;
    let stamp = AssertUnwindSafe(found.watcher.stamp(&found.variables, &caller)).catch_unwind();
    let stamp = match tokio::time::timeout(STAMP_WITHIN, stamp).await {
        Ok(stamp) => stamp.unwrap_or_else(|panic| Err(fault_of(&*panic))),
        Err(_) => Err(Error::new(ErrorKind::TimedOut, "it took too long to tell whether a resource has changed")),
    };
    (id, caller, stamp)
}
