//! Who may end a call, and when it ends by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_core::{CallLimits, Error, ErrorKind, Limits};
use tidegate_runtime::{Answer, AnswerMeta, Handler, SnapshotBuilder, Tool, handler_fn};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::host::{
    Host, called_by, caller_with_access, pass_time, reply_text, run_until_idle, tool_call, until_cancelled,
};

fn host_of(handler: Arc<dyn Handler>) -> Host {
    Host::new(SnapshotBuilder::new().tool(Tool::new("work", "", handler)))
}

/// Never ends; `dropped` records when it was dropped.
fn uncancellable_handler(dropped: Arc<AtomicBool>) -> Arc<dyn Handler> {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    handler_fn(move |_| {
        let flag = Flag(dropped.clone());
        async move {
            std::future::pending::<()>().await;
            drop(flag);
            Ok(Answer::content(vec![]))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn dropping_the_reply_cancels_the_job() {
    let host = host_of(until_cancelled());
    let reply = host.begin(tool_call("work"));
    run_until_idle().await;
    let job = reply.job().clone();
    assert!(!job.is_cancelled());
    drop(reply);
    run_until_idle().await;
    assert!(job.is_cancelled());
    assert_eq!(host.registry.jobs().open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_reply_unblocks_waiting_handler() {
    let host = host_of(handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            loop {
                reply.send_text("more").await?;
            }
        }))
    }));
    let reply = host.begin(tool_call("work"));
    run_until_idle().await;
    drop(reply);
    run_until_idle().await;
    insta::assert_snapshot!(host.recorder.lines(), @r"
    started tool work
    ended tool work: cancelled
    ");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_read_to_its_end_cancels_nothing() {
    let host = host_of(handler_fn(|_| async { Ok(Answer::content(vec![])) }));
    let mut reply = host.begin(tool_call("work"));
    let job = reply.job().clone();
    while reply.next().await.is_some() {}
    drop(reply);
    assert!(!job.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn the_callers_token_cancels_its_call_and_no_other() {
    let host = host_of(handler_fn(|call| async move {
        tokio::select! {
            () = call.cancelled() => {}
            () = pass_time(Duration::from_secs(1)) => {}
        }
        Ok(Answer::text("slept"))
    }));
    let token = CancellationToken::new();
    let mut first = tool_call("work");
    first.cancellation = token.clone();
    let (first, second) = (host.begin(first), host.begin(tool_call("work")));
    run_until_idle().await;
    token.cancel();
    assert_eq!(reply_text(first).await, "failed cancelled: the call was cancelled");
    assert_eq!(reply_text(second).await, "block slept\ndone {}");
}

#[tokio::test(start_paused = true)]
async fn caller_can_cancel_only_own_jobs() {
    let host = host_of(until_cancelled());
    let (ann, bob) = (caller_with_access("ann", &[]), caller_with_access("bob", &[]));
    let reply = host.begin(called_by(&ann, tool_call("work")));
    let (jobs, id) = (host.registry.jobs(), reply.job().id());
    run_until_idle().await;
    assert!(!jobs.cancel(id, &bob));
    assert!(!reply.job().is_cancelled());
    assert!(jobs.cancel(id, &ann));
    assert_eq!(reply_text(reply).await, "done {}");
    assert!(!jobs.cancel(id, &ann), "it has ended");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cancelled_by_an_operator_says_so() {
    let host = host_of(handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            reply.send_text("rows").await?;
            reply.job().cancelled().await;
            reply.send_text("nobody reads this").await?;
            Ok(AnswerMeta::default())
        }))
    }));
    let reply = host.begin(tool_call("work"));
    run_until_idle().await;
    reply.job().cancel();
    assert_eq!(reply_text(reply).await, "text rows\nfailed cancelled: the call was cancelled");
}

#[tokio::test(start_paused = true)]
async fn cooperative_handler_ends_at_deadline() {
    let host = host_of(handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            reply.send_text("rows").await?;
            reply.job().cancelled().await;
            Err(Error::new(ErrorKind::Unavailable, "the query was interrupted"))
        }))
    }));
    let began = Instant::now();
    insta::assert_snapshot!(reply_text(host.begin(tool_call("work"))).await, @r"
    text rows
    failed timed_out: the call exceeded its time limit of 60.0 s
    Ask for less: filter, aggregate, or set a smaller limit.
    ");
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_the_cancellation_is_dropped_after_the_grace() {
    let dropped = Arc::new(AtomicBool::new(false));
    let host = host_of(uncancellable_handler(dropped.clone()));
    let began = Instant::now();
    let reply = host.begin(tool_call("work"));
    let job = reply.job().clone();
    let answer = reply_text(reply).await;
    assert!(answer.starts_with("failed timed_out: the call exceeded its time limit of 60.0 s\n"), "{answer}");
    assert_eq!(began.elapsed().as_secs(), 62);
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(job.status().state.name(), "timed_out");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_does_not_time_out_in_its_grace() {
    let host = host_of(uncancellable_handler(Arc::default()));
    let reply = host.begin(tool_call("work"));
    pass_time(Duration::from_secs(59)).await;
    reply.job().cancel();
    assert_eq!(reply_text(reply).await, "failed cancelled: the call was cancelled");
}

#[tokio::test(start_paused = true)]
async fn an_entry_has_a_time_limit_of_its_own_and_may_have_none() {
    let timeout = |timeout| CallLimits { timeout: Some(timeout), ..CallLimits::default() };
    let tool =
        |name: &str, limit| Tool::new(name, "", uncancellable_handler(Arc::default())).with_limits(timeout(limit));
    let host = Host::with_limits(
        Limits { cancel_grace: Duration::ZERO, ..Limits::default() },
        SnapshotBuilder::new().tool(tool("brief", Duration::from_secs(5))).tool(tool("endless", Duration::MAX)),
    );
    let endless = host.begin(tool_call("endless"));
    let answer = reply_text(host.begin(tool_call("brief"))).await;
    assert!(answer.starts_with("failed timed_out: the call exceeded its time limit of 5.0 s"), "{answer}");
    pass_time(Duration::from_secs(3_600)).await;
    assert!(!endless.job().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn internal_error_is_kept_despite_cancellation() {
    let host = host_of(handler_fn(|call| async move {
        call.cancelled().await;
        panic!("on the way out")
    }));
    let reply = host.begin(tool_call("work"));
    run_until_idle().await;
    reply.job().cancel();
    assert_eq!(
        reply_text(reply).await,
        "failed internal: internal error; the server's log has the detail under id <id>"
    );
}
