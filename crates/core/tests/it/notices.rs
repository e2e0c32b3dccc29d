//! Progress and log messages only for those who asked.

use serde_json::json;
use tidegate_core::{Call, LogLevel, Metadata, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, tool_call};

async fn check(change: impl FnOnce(&mut Call)) -> String {
    let handler = handler_fn(|_, reply| async move {
        reply.progress(1.0, Some(2.0), Some("half".to_owned())).await?;
        reply.progress(f64::NAN, None, None).await?;
        reply.progress(f64::INFINITY, None, None).await?;
        reply.progress(2.0, Some(f64::NAN), None).await?;
        for level in [LogLevel::Debug, LogLevel::Warning, LogLevel::Emergency] {
            reply.log(level, Some("test".to_owned()), json!({"n": 1})).await?;
        }
        Ok(Metadata::new())
    });
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new("work", "", handler)));
    let mut call = tool_call("work");
    change(&mut call);
    host.ask(call).await
}

#[tokio::test]
async fn nobody_hears_what_nobody_asked_for() {
    assert_eq!(check(|_| {}).await, "done {}");
}

#[tokio::test]
async fn progress_is_told_in_numbers() {
    insta::assert_snapshot!(check(|call| call.wants_progress = true).await, @r#"
    progress 1 of Some(2.0) Some("half")
    progress 2 of None None
    done {}
    "#);
}

#[tokio::test]
async fn log_messages_are_as_severe_as_was_asked_or_more() {
    insta::assert_snapshot!(check(|call| call.log_level = Some(LogLevel::Warning)).await, @r#"
    log warning Some("test") {"n":1}
    log emergency Some("test") {"n":1}
    done {}
    "#);
    assert_eq!(check(|call| call.log_level = Some(LogLevel::Debug)).await.lines().count(), 4);
}
