//! Panics, internal errors, broken output schemas: the caller reads an id, the log the detail, and the process lives.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{json, value::to_raw_value};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_runtime::{Answer, Handler, ReplyPart, Resource, ResourceLister, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, process_user, reply_text, tool_call};

async fn check(handler: Arc<dyn Handler>) -> (String, String) {
    let schema = json!({"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]});
    let tool = Tool::new("work", "", handler).with_output_schema(schema).unwrap();
    let host = Host::new(SnapshotBuilder::new().tool(tool));
    let reply = host.begin(tool_call("work"));
    let job_id = reply.job().id().to_string();
    let answer = reply_text(reply).await;
    let received = host.recorder.lines().replace(&job_id, "<job>");
    // Ids are UUIDs, logged as `fault <id>:`.
    let received = received.lines().map(|line| match line.split_once(": ") {
        Some((head, detail)) if head.starts_with("fault ") && head != "fault <job>" => format!("fault <id>: {detail}"),
        _ => line.to_owned(),
    });
    (answer, received.collect::<Vec<_>>().join("\n"))
}

#[tokio::test]
async fn a_panic_becomes_an_internal_error_with_an_id() {
    let (answer, received) = check(handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            reply.send_text("rows").await?;
            panic!("the secret is {}", 42)
        }))
    }))
    .await;
    insta::assert_snapshot!(answer, @r"
    text rows
    failed internal: internal error; the server's log has the detail under id <id>
    ");
    insta::assert_snapshot!(received, @r"
    started tool work
    fault <id>: a handler panicked: the secret is 42
    ended tool work: internal
    ");
    let (_, received) = check(handler_fn(|_| async { std::panic::panic_any(7_u8) })).await;
    assert!(received.contains("a handler panicked: a panic without a message"), "{received}");
}

#[tokio::test]
async fn caller_and_log_share_error_id() {
    let panicking = Tool::new("panic", "", handler_fn(|_| async { panic!("boom") }));
    let host = Host::new(SnapshotBuilder::new().tool(panicking).tool(crate::host::tool_with_text("say", "a")));
    let mut reply = host.begin(tool_call("panic"));
    let Some(ReplyPart::End(Err(error))) = reply.next().await else { panic!("no failure") };
    let id = error.id().unwrap().to_string();
    assert!(error.to_string().contains(&id));
    assert!(host.recorder.lines().contains(&format!("fault {id}: a handler panicked: boom")));
    assert_eq!(host.call_to_text(tool_call("say")).await, "block a\ndone {}", "the process lives");
}

#[tokio::test]
async fn detail_of_other_errors_is_logged_under_the_job() {
    let (answer, received) = check(handler_fn(|_| async {
        Err(Error::new(ErrorKind::Unavailable, "the database is gone").with_detail("/srv/data: no such folder"))
    }))
    .await;
    insta::assert_snapshot!(answer, @"failed unavailable: the database is gone");
    insta::assert_snapshot!(received, @r"
    started tool work
    detail of unavailable <job>: /srv/data: no such folder
    ended tool work: unavailable
    ");
}

#[tokio::test]
async fn a_structured_answer_must_conform_to_the_output_schema() {
    let structured = |value: serde_json::Value| {
        handler_fn(move |_| {
            let answer = Answer::content(vec![]).with_structured(to_raw_value(&value).unwrap());
            async move { Ok(answer) }
        })
    };
    let (answer, _) = check(structured(json!({"rows": 3}))).await;
    insta::assert_snapshot!(answer, @r#"
    structured {"rows":3}
    done {}
    "#);
    let (answer, received) = check(structured(json!({"rows": "three"}))).await;
    insta::assert_snapshot!(answer, @"failed internal: internal error; the server's log has the detail under id <id>");
    insta::assert_snapshot!(received, @r#"
    started tool work
    fault <id>: work broke its output schema: [Violation { path: "rows", message: "\"three\" is not of type \"integer\"" }]
    ended tool work: internal
    "#);
}

#[tokio::test(start_paused = true)]
async fn failing_lister_does_not_affect_others() {
    struct Lister(bool);
    #[async_trait]
    impl ResourceLister for Lister {
        async fn list(&self, _: &Principal) -> Result<Vec<Resource>, Error> {
            assert!(self.0, "no list today");
            std::future::pending().await
        }
    }
    let host = Host::new(SnapshotBuilder::new());
    let panicked = host.registry.list_resources(&Lister(false), &process_user()).await.unwrap_err();
    assert_eq!(panicked.kind(), ErrorKind::Internal);
    assert!(host.recorder.lines().ends_with(": a handler panicked: no list today"), "{}", host.recorder.lines());
    let hung = host.registry.list_resources(&Lister(true), &process_user()).await.unwrap_err();
    assert_eq!(hung.kind(), ErrorKind::TimedOut);
}
