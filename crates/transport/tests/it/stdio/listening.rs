//! `subscriptions/listen` concurrent with other requests, and resource notifications of a legacy session.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::Access;
use tidegate_mcp::Revision;
use tokio::io::AsyncWriteExt;

use super::{Pipe, settle};
use tidegate_testkit::host::WatchedResources;
use tidegate_testkit::message_checker::{error_summary, notification_summary};

fn subscription_params(uris: &[&str]) -> Value {
    json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": uris}})
}

/// Opens a notification stream.
async fn listen(pipe: &mut Pipe, id: Value, uris: &[&str]) {
    pipe.send(id.clone(), "subscriptions/listen", subscription_params(uris)).await;
    assert_eq!(next(pipe).await, format!("{id} subscriptions/acknowledged"));
}

/// The next message: the stream that it belongs to, and its content.
async fn next(pipe: &mut Pipe) -> String {
    notification_summary(&pipe.hear().await.unwrap())
}

async fn cancel(pipe: &mut Pipe, id: Value) {
    let params = json!({"requestId": id});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    pipe.line(message.to_string().as_bytes()).await;
    pipe.ledger.open.remove(&id.to_string());
}

fn swap(host: &tidegate_testkit::host::Host, resources: &Arc<WatchedResources>) {
    host.service.registry().swap(resources.snapshot(Access::default()));
}

#[tokio::test(start_paused = true)]
async fn delivers_subscriptions_between_answers() {
    let (host, watched) = WatchedResources::with_host();
    let mut pipe = Pipe::open(&host);
    listen(&mut pipe, json!("a"), &["watched://rose"]).await;
    listen(&mut pipe, json!(7), &[]).await;
    pipe.call(json!("slow"), json!([["wait"], ["text", "done"]])).await;
    watched.change("rose");
    watched.change("lily");
    assert_eq!(next(&mut pipe).await, "\"a\" resources/updated watched://rose");
    pipe.lives().await;
    cancel(&mut pipe, json!("a")).await;
    settle().await;
    watched.change("rose");
    swap(&host, &watched);
    assert_eq!(next(&mut pipe).await, "7 tools/list_changed");
    // The id of the cancelled stream is free, and it sends nothing more.
    listen(&mut pipe, json!("a"), &["watched://rose"]).await;
    host.release.cancel();
    let mut rest: Vec<String> =
        pipe.close().await.iter().map(notification_summary).filter(|line| !line.is_empty()).collect();
    rest.sort_unstable();
    assert_eq!(rest, ["\"a\" result", "7 result"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_streams_with_their_results() {
    let (host, _) = WatchedResources::with_host();
    let mut pipe = Pipe::open(&host);
    listen(&mut pipe, json!(1), &["watched://rose"]).await;
    pipe.shutdown.cancel();
    assert_eq!(next(&mut pipe).await, "1 result");
    assert!(pipe.hear().await.is_none());
    pipe.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn subscriptions_have_their_own_bound() {
    let (host, _) = WatchedResources::with_host();
    let mut pipe = Pipe::open(&host);
    for id in 0..16 {
        listen(&mut pipe, json!(id), &["test://plain"]).await;
    }
    pipe.send(json!("more"), "subscriptions/listen", subscription_params(&[])).await;
    let refused = pipe.hear().await.unwrap();
    assert_eq!(
        error_summary(&refused),
        "-32600 for id \"more\": too many open notification streams: at most 16 per connection"
    );
    pipe.lives().await;
    cancel(&mut pipe, json!(3)).await;
    settle().await;
    listen(&mut pipe, json!(3), &[]).await;
    assert_eq!(pipe.close().await.len(), 16);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_receives_only_the_last_change() {
    let (host, resources) = WatchedResources::with_host();
    let mut pipe = Pipe::open(&host);
    listen(&mut pipe, json!(1), &["watched://rose"]).await;
    for _ in 0..3_000 {
        swap(&host, &resources);
        settle().await;
    }
    resources.change("rose");
    let mut count = 0;
    pipe.writer.shutdown().await.unwrap();
    while next(&mut pipe).await != "1 result" {
        count += 1;
    }
    // The capacity of a 64 KiB pipe and a queue of 64 messages, where each change would be two messages.
    assert!((2..1_000).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_does_not_keep_the_process() {
    let (host, resources) = WatchedResources::with_host();
    let mut pipe = Pipe::open(&host);
    listen(&mut pipe, json!(1), &["watched://rose"]).await;
    for _ in 0..1_000 {
        swap(&host, &resources);
        settle().await;
    }
    pipe.shutdown.cancel();
    pipe.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn legacy_session_receives_only_the_changed_resource() {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let (host, watched) = WatchedResources::with_host();
        let mut pipe = Pipe::agreed(&host, revision).await;
        for uri in ["watched://rose", "watched://lily"] {
            pipe.ask(json!(uri), "resources/subscribe", json!({"uri": uri})).await;
        }
        watched.change("lily");
        assert_eq!(pipe.hear().await.unwrap()["params"], json!({"uri": "watched://lily"}));
        pipe.ask(json!(1), "resources/unsubscribe", json!({"uri": "watched://lily"})).await;
        watched.change("lily");
        watched.change("rose");
        assert_eq!(pipe.hear().await.unwrap()["params"], json!({"uri": "watched://rose"}));
        assert_eq!(pipe.close().await, Vec::<Value>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn second_initialize_resets_the_session() {
    let (host, watched) = WatchedResources::with_host();
    let mut pipe = Pipe::agreed(&host, Revision::V2025_06_18).await;
    pipe.ask(json!(1), "resources/subscribe", json!({"uri": "watched://rose"})).await;
    pipe.shake_hands(Revision::V2025_11_25).await;
    watched.change("rose");
    swap(&host, &watched);
    for _ in 0..3 {
        assert!(pipe.hear().await.unwrap()["method"].as_str().unwrap().ends_with("list_changed"));
    }
    assert_eq!(pipe.close().await, Vec::<Value>::new());
}
