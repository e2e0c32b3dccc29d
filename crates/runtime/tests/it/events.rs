//! The events that log and metrics receive, in order.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{
    Answer, Registry, SnapshotBuilder, Tool,
    event::{Event, EventDispatcher, Subscriber},
    handler_fn,
};

use crate::host::{Host, call, reply_text, tool_call, tool_with_text};

fn failing() -> Tool {
    Tool::new("fail", "", handler_fn(|_| async { Err(Error::new(ErrorKind::TooLarge, "too many rows")) }))
}

#[tokio::test]
async fn call_emits_start_and_end_events() {
    let host = Host::new(SnapshotBuilder::new().tool(tool_with_text("say", "a")).tool(failing()));
    host.call_to_text(tool_call("say")).await;
    host.call_to_text(tool_call("fail")).await;
    host.call_to_text(tool_call("none")).await;
    host.call_to_text(call(tidegate_core::CallTarget::Resource("x://y".to_owned()))).await;
    host.registry.swap(SnapshotBuilder::new().build());
    host.call_to_text(tool_call("say")).await;
    insta::assert_snapshot!(host.recorder.lines(), @r"
    started tool say
    ended tool say: done
    started tool fail
    ended tool fail: too_large
    refused tool none: not_found
    refused resource x://y: not_found
    registry 2
    refused tool say: not_found
    ");
}

#[tokio::test]
async fn end_event_is_emitted_before_reply_ends() {
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new(
        "rows",
        "",
        handler_fn(|call| async move {
            call.usage().count_rows(3);
            call.usage().count_rows(4);
            Ok(Answer::text("abc"))
        }),
    )));
    let reply = host.begin(tool_call("rows"));
    let job = reply.job().clone();
    reply_text(reply).await;
    assert!(host.recorder.lines().ends_with("ended tool rows: done"));
    assert_eq!((job.usage().rows(), job.usage().bytes(), host.registry.jobs().open_count()), (7, 3, 0));
    assert_eq!(job.elapsed(), job.elapsed(), "the clock of an ended job stands still");
}

#[tokio::test]
async fn subscribers_are_notified_in_order() {
    struct Named(&'static str, Arc<Mutex<Vec<&'static str>>>);
    impl Subscriber for Named {
        fn on_event(&self, _: Event<'_>) {
            self.1.lock().push(self.0);
        }
    }
    let received = Arc::new(Mutex::new(Vec::new()));
    let subscribers = ["log", "metrics"].map(|name| Arc::new(Named(name, received.clone())) as Arc<dyn Subscriber>);
    let tools = SnapshotBuilder::new().tool(tool_with_text("say", "a")).build();
    let registry = Registry::new(tools, EventDispatcher::new(subscribers));
    reply_text(registry.call(tool_call("say")).unwrap()).await;
    assert_eq!(*received.lock(), ["log", "metrics", "log", "metrics"]);
}
