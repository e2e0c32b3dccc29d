//! The end of all calls at shutdown: what runs may end, what runs too long is cancelled, what ignores that is left.

use std::time::Duration;

use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};
use tokio::time::Instant;

use crate::host::{Host, pass_time, reply_text, tool_call, until_cancelled};

const WITHIN: Duration = Duration::from_secs(10);

fn host() -> Host {
    let brief = handler_fn(|_| async {
        pass_time(Duration::from_secs(3)).await;
        Ok(Answer::text("in time"))
    });
    let stubborn = handler_fn(|_| std::future::pending());
    Host::new(
        SnapshotBuilder::new()
            .tool(Tool::new("brief", "", brief))
            .tool(Tool::new("long", "", until_cancelled()))
            .tool(Tool::new("stubborn", "", stubborn)),
    )
}

/// Drains while `name` runs: the answer, and how many seconds the draining took.
async fn check(name: &str) -> (String, u64) {
    let host = host();
    let reply = host.begin(tool_call(name));
    let began = Instant::now();
    let (answer, ()) = tokio::join!(reply_text(reply), host.registry.drain(WITHIN));
    assert_eq!(host.registry.jobs().open_count(), 0);
    (answer, began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_running_calls() {
    assert_eq!(check("brief").await, ("block in time\ndone {}".to_owned(), 3));
}

#[tokio::test(start_paused = true)]
async fn drain_cancels_calls_after_timeout() {
    assert_eq!(check("long").await, ("done {}".to_owned(), 10));
    assert_eq!(check("stubborn").await, ("failed cancelled: the call was cancelled".to_owned(), 12));
}

#[tokio::test(start_paused = true)]
async fn drain_of_idle_registry_returns_at_once() {
    let began = Instant::now();
    host().registry.drain(WITHIN).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn unread_reply_does_not_block_drain() {
    let handler = handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            loop {
                reply.send_text("more").await?;
            }
        }))
    });
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new("flood", "", handler)));
    let reply = host.begin(tool_call("flood"));
    let began = Instant::now();
    host.registry.drain(WITHIN).await;
    assert!(began.elapsed() < WITHIN * 2);
    drop(reply);
}
