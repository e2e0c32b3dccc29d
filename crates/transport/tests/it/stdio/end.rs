//! The ways in which a connection ends, and the effect on its calls.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_runtime::event::{Event, EventDispatcher, Subscriber};
use tidegate_transport::stdio::StdioOptions;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::Pipe;
use tidegate_testkit::host::Host;
use tidegate_testkit::message_checker::text;
use tidegate_testkit::wait::{pass_time, settle};

#[tokio::test(start_paused = true)]
async fn calls_that_run_at_the_end_of_input_are_answered() {
    let host = Host::new();
    let mut pipe = Pipe::open(&host);
    pipe.call(json!("slow"), json!([["wait"], ["text", "in time"]])).await;
    pipe.call(json!("quick"), json!([["text", "at once"]])).await;
    let release = host.release.clone();
    tokio::spawn(async move {
        pass_time(Duration::from_secs(5)).await;
        release.cancel();
    });
    let rest = pipe.close().await;
    assert_eq!(rest.iter().map(text).collect::<Vec<_>>(), ["at once", "in time"]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_run_too_long_after_it_are_cancelled() {
    let host = Host::new();
    let mut pipe = Pipe::open(&host);
    pipe.call(json!("heedful"), json!([["cancelled"]])).await;
    pipe.call(json!("stubborn"), json!([["wait"]])).await;
    let began = Instant::now();
    assert_eq!(pipe.close().await, Vec::<Value>::new());
    assert_eq!(began.elapsed().as_secs(), 10);
    pass_time(Duration::from_secs(3)).await;
    assert_eq!(host.service.registry().jobs().open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_a_running_call_end() {
    let host = Host::new();
    let mut pipe = Pipe::open(&host);
    pipe.call(json!(1), json!([["wait"], ["text", "in time"]])).await;
    settle().await;
    pipe.shutdown.cancel();
    settle().await;
    assert!(!pipe.served.is_finished());
    host.release.cancel();
    assert_eq!(text(&pipe.hear().await.unwrap()), "in time");
    assert!(pipe.hear().await.is_none());
    pipe.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_not_held_up_by_a_client_that_does_not_read() {
    let host = Host::new();
    let pipe = Pipe::open(&host);
    let (mut writer, shutdown) = (pipe.writer, pipe.shutdown);
    // Far more refusals than the pipe and the queue can hold.
    let flood = tokio::spawn(async move { while writer.write_all(b"garbage\n").await.is_ok() {} });
    settle().await;
    assert!(!flood.is_finished());
    shutdown.cancel();
    pipe.served.await.unwrap().unwrap();
    flood.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_ends_the_connection_and_its_calls() {
    let host = Host::new();
    let mut pipe = Pipe::open(&host);
    pipe.call(json!(1), json!([["cancelled"]])).await;
    settle().await;
    let Pipe { writer, reader, served, .. } = pipe;
    drop(reader);
    drop(writer);
    served.await.unwrap().unwrap();
    assert_eq!(host.service.registry().jobs().open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn unread_large_answer_does_not_block_shutdown() {
    let host = Host::new();
    let options = StdioOptions { drain_within: Duration::from_secs(2), ..StdioOptions::default() };
    let mut pipe = Pipe::with(&host, options);
    pipe.call(json!(1), json!([["flood", 3_000_000]])).await;
    while host.service.registry().jobs().open_count() > 0 {
        tokio::task::yield_now().await;
    }
    pipe.writer.shutdown().await.unwrap();
    pipe.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn emits_connection_events() {
    #[derive(Default)]
    struct Received(Mutex<Vec<String>>);
    impl Subscriber for Received {
        fn on_event(&self, event: Event<'_>) {
            if !matches!(event, Event::CallStarted { .. } | Event::CallEnded { .. }) {
                self.0.lock().push(format!("{event:?}"));
            }
        }
    }
    let received = Arc::new(Received::default());
    let host = Host::with_events(EventDispatcher::new([received.clone() as Arc<dyn Subscriber>]));
    let mut pipe = Pipe::open(&host);
    pipe.line(b"{").await;
    pipe.hear().await;
    pipe.close().await;
    insta::assert_snapshot!(received.0.lock().join("\n"), @r#"
    ConnectionOpened { transport: Stdio }
    MessageRefused { transport: Stdio, peer: None, reason: "Parse error: EOF while parsing an object at line 1 column 1" }
    ConnectionClosed { transport: Stdio }
    "#);
}
