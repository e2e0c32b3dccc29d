//! What log and metrics hear, in order.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::event::{Event, Events, Subscriber};
use tidegate_core::{Error, ErrorKind, Metadata, Registry, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, call, told, tool_call, tool_that_says};

fn failing() -> Tool {
    Tool::new("fail", "", handler_fn(|_, _| async { Err(Error::new(ErrorKind::TooLarge, "too many rows")) }))
}

#[tokio::test]
async fn every_call_is_told_from_its_start_to_its_end() {
    let host = Host::new(SnapshotBuilder::new().tool(tool_that_says("say", "a")).tool(failing()));
    host.ask(tool_call("say")).await;
    host.ask(tool_call("fail")).await;
    host.ask(tool_call("none")).await;
    host.ask(call(tidegate_core::Target::Resource("x://y".to_owned()))).await;
    host.registry.swap(SnapshotBuilder::new().build());
    host.ask(tool_call("say")).await;
    insta::assert_snapshot!(host.heard.lines(), @r"
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
async fn a_call_is_closed_and_told_before_its_reader_sees_the_end() {
    let host = Host::new(SnapshotBuilder::new().tool(Tool::new(
        "rows",
        "",
        handler_fn(|job, reply| async move {
            job.count_rows(3);
            reply.text("abc").await?;
            job.count_rows(4);
            Ok(Metadata::new())
        }),
    )));
    let reply = host.begin(tool_call("rows"));
    let job = reply.job().clone();
    told(reply).await;
    assert!(host.heard.lines().ends_with("ended tool rows: done"));
    assert_eq!((job.rows(), job.bytes(), host.registry.jobs().open_count()), (7, 3, 0));
    assert_eq!(job.elapsed(), job.elapsed(), "the clock of an ended job stands still");
}

#[tokio::test]
async fn everybody_hears_in_the_order_they_subscribed() {
    struct Named(&'static str, Arc<Mutex<Vec<&'static str>>>);
    impl Subscriber for Named {
        fn hear(&self, _: Event<'_>) {
            self.1.lock().push(self.0);
        }
    }
    let heard = Arc::new(Mutex::new(Vec::new()));
    let subscribers = ["log", "metrics"].map(|name| Arc::new(Named(name, heard.clone())) as Arc<dyn Subscriber>);
    let tools = SnapshotBuilder::new().tool(tool_that_says("say", "a")).build();
    let registry = Registry::new(tools, Events::new(subscribers));
    told(registry.call(tool_call("say")).unwrap()).await;
    assert_eq!(*heard.lock(), ["log", "metrics", "log", "metrics"]);
}
