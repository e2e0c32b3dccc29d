//! Progress and log messages only for callers that request them.

use serde_json::json;
use tidegate_core::{Limits, LogLevel};
use tidegate_runtime::{Answer, Call, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, pass_time, reply_text, run_until_idle, tool_call, until_cancelled};

async fn check(change: impl FnOnce(&mut Call)) -> String {
    let handler = handler_fn(|call| async move {
        call.progress(1.0, Some(2.0), Some("half".to_owned())).await?;
        call.progress(f64::NAN, None, None).await?;
        call.progress(f64::INFINITY, None, None).await?;
        call.progress(2.0, Some(f64::NAN), None).await?;
        for level in [LogLevel::Debug, LogLevel::Warning, LogLevel::Emergency] {
            call.log(level, Some("test".to_owned()), json!({"n": 1})).await?;
        }
        Ok(Answer::content(vec![]))
    });
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new("work", "", handler)));
    let mut call = tool_call("work");
    change(&mut call);
    host.call_to_text(call).await
}

#[tokio::test]
async fn unrequested_notifications_are_not_sent() {
    assert_eq!(check(|_| {}).await, "done {}");
}

#[tokio::test]
async fn progress_carries_numbers() {
    insta::assert_snapshot!(check(|call| call.wants_progress = true).await, @r#"
    progress 1 of Some(2.0) Some("half")
    progress 2 of None None
    done {}
    "#);
}

#[tokio::test]
async fn log_messages_respect_requested_level() {
    insta::assert_snapshot!(check(|call| call.log_level = Some(LogLevel::Warning)).await, @r#"
    log warning Some("test") {"n":1}
    log emergency Some("test") {"n":1}
    done {}
    "#);
    assert_eq!(check(|call| call.log_level = Some(LogLevel::Debug)).await.lines().count(), 4);
}

#[tokio::test(start_paused = true)]
async fn waiting_call_reports_progress() {
    let snapshot = SnapshotBuilder::new()
        .tool(Tool::new("work", "", until_cancelled()))
        .tool(crate::host::tool_with_text("say", "a"));
    let host = Host::with_limits(Limits { running_calls_max: 1, ..Limits::default() }, snapshot);
    let eager = |name| {
        let mut call = tool_call(name);
        call.wants_progress = true;
        call
    };
    assert_eq!(host.call_to_text(eager("say")).await, "block a\ndone {}");
    let running = host.begin(eager("work"));
    run_until_idle().await;
    let waiting = host.begin(eager("say"));
    run_until_idle().await;
    drop(running);
    insta::assert_snapshot!(reply_text(waiting).await, @r#"
    progress 0 of None Some("waiting for other calls to end")
    block a
    done {}
    "#);
}

#[tokio::test(start_paused = true)]
async fn drops_frequent_or_non_increasing_progress() {
    let handler = handler_fn(|call| async move {
        for done in [1.0, 1.0, 0.5, 2.0, 3.0, 4.0, 5.0, 6.0] {
            call.progress(done, None, None).await?;
        }
        pass_time(std::time::Duration::from_secs(1)).await;
        call.progress(7.0, None, None).await?;
        Ok(Answer::content(vec![]))
    });
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new("work", "", handler)));
    let mut call = tool_call("work");
    call.wants_progress = true;
    insta::assert_snapshot!(host.call_to_text(call).await, @"
    progress 1 of None None
    progress 2 of None None
    progress 3 of None None
    progress 4 of None None
    progress 7 of None None
    done {}
    ");
}
