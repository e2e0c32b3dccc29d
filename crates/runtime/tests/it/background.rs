//! Work that continues after its answer has ended.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{Caller, Error, ErrorKind, Limits, Principal};
use tidegate_runtime::{Answer, AnswerMeta, Call, Handler, SnapshotBuilder, Tool, handler_fn};
use tokio_util::sync::CancellationToken;

use crate::host::{Host, LOCAL, pass_time, reply_text, run_until_idle, tool_call};

/// Answers at once and continues for `time`, of which `allowed` is permitted; reports how that ended.
fn background_handler(time: Duration, allowed: Duration) -> (Arc<dyn Handler>, Arc<Mutex<Option<&'static str>>>) {
    let ended = Arc::new(Mutex::new(None));
    let text = ended.clone();
    let handler = handler_fn(move |_| {
        let text = text.clone();
        let answer = Answer::written(move |reply| async move {
            let job = reply.job();
            job.set_result_uri("tidegate://results/1".to_owned());
            reply.send_text("shown").await?;
            reply.end_early(AnswerMeta::default(), allowed).await?;
            let how = tokio::select! {
                () = job.cancelled() => "cancelled",
                () = pass_time(time) => "done",
            };
            *text.lock() = Some(how);
            if job.is_cancelled() { Err(Error::new(ErrorKind::Cancelled, "ended")) } else { Ok(AnswerMeta::default()) }
        });
        async move { Ok(answer) }
    });
    (handler, ended)
}

fn host_of(handler: Arc<dyn Handler>) -> Host {
    let limits = Limits { timeout: Duration::from_secs(1), ..Limits::default() };
    Host::with_limits(limits, SnapshotBuilder::new().tool(Tool::new("work", "works", handler)))
}

fn owner() -> Caller {
    Caller::new(Principal::process_user(), LOCAL)
}

fn cancellable(token: &CancellationToken) -> Call {
    Call { cancellation: token.clone(), ..tool_call("work") }
}

#[tokio::test(start_paused = true)]
async fn background_work_survives_cancellation_and_timeout() {
    let (handler, ended) = background_handler(Duration::from_secs(30), Duration::from_secs(60));
    let host = host_of(handler);
    let token = CancellationToken::new();
    assert_eq!(host.call_to_text(cancellable(&token)).await, "text shown\ndone {}");
    token.cancel();
    run_until_idle().await;
    let jobs = host.registry.jobs().list(&owner());
    assert_eq!((jobs[0].state.name(), jobs[0].result.as_deref()), ("running", Some("tidegate://results/1")));
    pass_time(Duration::from_secs(31)).await;
    assert_eq!(*ended.lock(), Some("done"));
    assert_eq!(host.registry.jobs().list(&owner())[0].state.name(), "done");
}

#[tokio::test(start_paused = true)]
async fn background_work_has_own_timeout() {
    let (handler, ended) = background_handler(Duration::from_secs(300), Duration::from_secs(60));
    let host = host_of(handler);
    assert_eq!(host.call_to_text(tool_call("work")).await, "text shown\ndone {}");
    pass_time(Duration::from_secs(62)).await;
    assert_eq!(*ended.lock(), Some("cancelled"));
    assert_eq!(host.registry.jobs().list(&owner())[0].state.name(), "timed_out");
}

#[tokio::test(start_paused = true)]
async fn operator_can_cancel_background_work() {
    let (handler, ended) = background_handler(Duration::from_secs(30), Duration::from_secs(60));
    let host = host_of(handler);
    let reply = host.begin(tool_call("work"));
    let id = reply.job().id();
    assert_eq!(reply_text(reply).await, "text shown\ndone {}");
    assert!(host.registry.jobs().cancel(id, &owner()));
    run_until_idle().await;
    assert_eq!(*ended.lock(), Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn dropping_unfinished_reply_cancels_work() {
    let (handler, ended) = background_handler(Duration::from_secs(30), Duration::from_secs(60));
    let host = host_of(handler);
    let mut reply = host.begin(tool_call("work"));
    assert!(reply.next().await.is_some());
    drop(reply);
    run_until_idle().await;
    assert_eq!(*ended.lock(), Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn cancellation_before_end_is_delivered_wins() {
    let handler = handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            // As many parts as the channel can hold, so that the end has no room.
            for _ in 0..2 {
                reply.send_text("shown").await?;
                reply.end_text().await?;
            }
            reply.end_early(AnswerMeta::default(), Duration::from_secs(60)).await?;
            std::future::pending().await
        }))
    });
    let host = host_of(handler);
    let reply = host.begin(tool_call("work"));
    run_until_idle().await;
    assert!(host.registry.jobs().cancel(reply.job().id(), &owner()));
    run_until_idle().await;
    assert!(reply_text(reply).await.ends_with("cancelled: the call was cancelled"));
    assert_eq!(host.registry.jobs().list(&owner())[0].state.name(), "cancelled");
}
