//! Work that goes on when its answer has ended.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_core::{
    Call, Caller, Error, ErrorKind, Handler, Limits, Metadata, Principal, ReplySender, SnapshotBuilder, Tool,
    handler_fn,
};
use tokio_util::sync::CancellationToken;

use crate::host::{Host, LOCAL, told, tool_call};

/// Answers at once and works on for `time`, for which it may have `allowed`; says how that ended.
fn working_on(time: Duration, allowed: Duration) -> (Arc<dyn Handler>, Arc<Mutex<Option<&'static str>>>) {
    let ended = Arc::new(Mutex::new(None));
    let said = ended.clone();
    let handler = handler_fn(move |job, reply| {
        let said = said.clone();
        async move {
            job.keep_in("tidegate://results/1".to_owned());
            reply.text("shown").await?;
            reply.end_early(Metadata::new(), allowed).await?;
            let how = tokio::select! {
                () = job.cancelled() => "cancelled",
                () = tokio::time::sleep(time) => "done",
            };
            *said.lock() = Some(how);
            if job.is_cancelled() { Err(Error::new(ErrorKind::Cancelled, "ended")) } else { Ok(Metadata::new()) }
        }
    });
    (handler, ended)
}

fn host_of(handler: Arc<dyn Handler>) -> Host {
    let limits = Limits { timeout: Duration::from_secs(1), ..Limits::default() };
    Host::within(limits, SnapshotBuilder::new().tool(Tool::new("work", "works", handler)))
}

fn owner() -> Caller {
    Caller::new(Principal::owner(), LOCAL)
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn cancellable(token: &CancellationToken) -> Call {
    Call { cancellation: token.clone(), ..tool_call("work") }
}

#[tokio::test(start_paused = true)]
async fn the_answer_ends_and_neither_adapter_nor_time_limit_of_the_call_end_the_work() {
    let (handler, ended) = working_on(Duration::from_secs(30), Duration::from_secs(60));
    let host = host_of(handler);
    let token = CancellationToken::new();
    assert_eq!(host.ask(cancellable(&token)).await, "text shown\ndone {}");
    token.cancel();
    settle().await;
    let jobs = host.registry.jobs().list(&owner());
    assert_eq!((jobs[0].state.name(), jobs[0].result.as_deref()), ("running", Some("tidegate://results/1")));
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(*ended.lock(), Some("done"));
    assert_eq!(host.registry.jobs().list(&owner())[0].state.name(), "done");
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_its_own_time_is_over() {
    let (handler, ended) = working_on(Duration::from_secs(300), Duration::from_secs(60));
    let host = host_of(handler);
    assert_eq!(host.ask(tool_call("work")).await, "text shown\ndone {}");
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert_eq!(*ended.lock(), Some("cancelled"));
    assert_eq!(host.registry.jobs().list(&owner())[0].state.name(), "timed_out");
}

#[tokio::test(start_paused = true)]
async fn it_is_cancelled_in_the_list_of_jobs() {
    let (handler, ended) = working_on(Duration::from_secs(30), Duration::from_secs(60));
    let host = host_of(handler);
    let reply = host.begin(tool_call("work"));
    let id = reply.job().id();
    assert_eq!(told(reply).await, "text shown\ndone {}");
    assert!(host.registry.jobs().cancel(id, &owner()));
    settle().await;
    assert_eq!(*ended.lock(), Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn who_left_before_the_end_of_the_answer_ends_the_work() {
    let (handler, ended) = working_on(Duration::from_secs(30), Duration::from_secs(60));
    let host = host_of(handler);
    let mut reply = host.begin(tool_call("work"));
    assert!(reply.next().await.is_some());
    drop(reply);
    settle().await;
    assert_eq!(*ended.lock(), Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_nobody_could_hear_of_is_none() {
    let handler = handler_fn(|_job, reply: ReplySender| async move {
        // As many as may wait, so that the end has no place.
        for _ in 0..2 {
            reply.text("shown").await?;
            reply.end_text().await?;
        }
        reply.end_early(Metadata::new(), Duration::from_secs(60)).await?;
        std::future::pending().await
    });
    let host = host_of(handler);
    let reply = host.begin(tool_call("work"));
    settle().await;
    assert!(host.registry.jobs().cancel(reply.job().id(), &owner()));
    settle().await;
    assert!(told(reply).await.ends_with("cancelled: the call was cancelled"));
    assert_eq!(host.registry.jobs().list(&owner())[0].state.name(), "cancelled");
}
