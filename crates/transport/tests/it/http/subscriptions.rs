//! `subscriptions/listen` over Streamable HTTP: an event stream of its own, and access to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::BodyDataStream;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tidegate_core::Access;
use tidegate_mcp::Revision;
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;

use super::Server;
use super::identity::revocable_key;
use super::in_process::InProcessRouter;
use super::request::Post;
use super::wire::Connection;
use tidegate_testkit::host::WatchedResources;
use tidegate_testkit::schema::{check_notification, check_response};
use tidegate_testkit::wait::{settle, wait_until};

const MODERN: Revision = Revision::V2026_07_28;

fn post(notifications: Value) -> Post {
    Post::modern("subscriptions/listen", json!({"notifications": notifications}))
}

async fn server_with_resources(options: HttpOptions) -> (Server, Arc<WatchedResources>) {
    let (host, resources) = WatchedResources::with_host();
    (Server::of(host, Arc::new(Metrics::new()), options).await, resources)
}

/// A stream that was acknowledged.
async fn open(server: &Server, post: &Post) -> Connection {
    let mut connection = server.connect().await;
    connection.send(&post.bytes()).await;
    let head = connection.head().await;
    assert_eq!(head.status, 200);
    assert!(head.is_event_stream() && head.is_chunked());
    assert!(next(&mut connection).await.unwrap().starts_with("subscriptions/acknowledged"));
    connection
}

/// The next message, checked; `None` at the end of the stream.
async fn next(connection: &mut Connection) -> Option<String> {
    let event = connection.event().await?;
    assert!(event.id.is_none(), "modern streams cannot be resumed");
    let message = event.message();
    if message.get("result").is_some() {
        check_response(MODERN, "subscriptions/listen", &message);
        return Some(format!("result for {}", message["id"]));
    }
    check_notification(MODERN, &message);
    assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    let method = message["method"].as_str().unwrap().strip_prefix("notifications/").unwrap();
    let uri = message["params"]["uri"].as_str().unwrap_or_default();
    Some(format!("{method} {uri}").trim_end().to_owned())
}

#[tokio::test]
async fn delivers_subscriptions_until_shutdown() {
    let (server, watched) = server_with_resources(HttpOptions::default()).await;
    let expectation = json!({"toolsListChanged": true, "resourceSubscriptions": ["watched://rose", "watched://lily"]});
    let mut connection = open(&server, &post(expectation)).await;
    watched.change("tulip");
    watched.change("rose");
    assert_eq!(next(&mut connection).await.unwrap(), "resources/updated watched://rose");
    server.host.service.registry().swap(watched.snapshot(Access::default()));
    let mut message = Vec::new();
    for _ in 0..3 {
        message.push(next(&mut connection).await.unwrap());
    }
    message.sort_unstable();
    let expected = ["resources/updated watched://lily", "resources/updated watched://rose", "tools/list_changed"]
        .map(str::to_owned);
    assert_eq!(message, expected);
    server.shutdown.cancel();
    assert_eq!(next(&mut connection).await.unwrap(), "result for 1");
    assert_eq!(next(&mut connection).await, None);
    server.running.wait().await;
}

#[tokio::test]
async fn closing_the_stream_releases_its_permit() {
    let options = HttpOptions { sessions_max: 1, ..HttpOptions::default() };
    let server = Server::with(options).await;
    let before = server.resource_usage().await;
    let expectation = json!({"promptsListChanged": true, "resourceSubscriptions": ["test://plain"]});
    let connection = open(&server, &post(expectation.clone())).await;
    let refused = server.ask(&post(expectation.clone())).await;
    assert_eq!(refused.summary(), "503 -32603 there are too many open sessions; try again later");
    drop(connection);
    server.wait_until_back_at(&before).await;
    open(&server, &post(expectation)).await;
}

#[tokio::test]
async fn stalled_subscriber_is_disconnected() {
    let options = HttpOptions { write_within: Duration::from_millis(200), ..HttpOptions::default() };
    let (server, resources) = server_with_resources(options).await;
    let before = server.resource_usage().await;
    // Long names, so that few changes exceed the socket buffers.
    let uris: Vec<String> = (0..50).map(|number| format!("watched://{number}-{}", "x".repeat(7_000))).collect();
    let connection = open(&server, &post(json!({"resourceSubscriptions": uris}))).await;
    wait_until("the end of the subscription", async || {
        server.host.service.registry().swap(resources.snapshot(Access::default()));
        server.resource_usage().await == before
    })
    .await;
    drop(connection);
}

#[tokio::test]
async fn requires_accept_event_stream() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    for post in [post(json!({})).with("Accept", "application/json"), post(json!({})).without("Accept")] {
        let refused = server.ask(&post).await;
        let words = "406 -32600 subscriptions/listen opens an event stream: Accept must include text/event-stream";
        assert_eq!(refused.summary(), words);
        assert_eq!(refused.message()["id"], 1);
    }
    let wrong = server.ask(&post(json!({"toolsListChanged": 1}))).await;
    assert!(wrong.summary().starts_with("200 -32602 params.notifications is wrong"), "{}", wrong.summary());
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn revoked_key_receives_no_changes() {
    let (one_key, options) = revocable_key();
    let (server, resources) = server_with_resources(options).await;
    let post = post(json!({"toolsListChanged": true, "resourceSubscriptions": ["watched://rose"]}));
    let mut connection = open(&server, &post.with("Authorization", "Bearer key")).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    resources.change("rose");
    assert_eq!(next(&mut connection).await, None, "no result either: it did not end well");
}

#[tokio::test]
async fn lost_grant_ends_only_its_resource() {
    let (_, options) = revocable_key();
    let (server, watched) = server_with_resources(options).await;
    let mut connection = {
        let expectation = json!({"resourceSubscriptions": ["watched://rose", "test://plain"]});
        open(&server, &post(expectation).with("Authorization", "Bearer key")).await
    };
    // This access is never granted here: its toolset belongs to another endpoint.
    let hidden = Access { toolset: Some("other".to_owned()), ..Access::default() };
    server.host.service.registry().swap(watched.snapshot(hidden));
    assert_eq!(next(&mut connection).await.unwrap(), "resources/updated test://plain");
    watched.change("rose");
    server.host.service.registry().swap(watched.snapshot(Access::default()));
    let message = [next(&mut connection).await.unwrap(), next(&mut connection).await.unwrap()];
    assert_eq!(message, ["resources/updated test://plain", "resources/updated watched://rose"], "once it is back");
}

/// The text of the stream, until it has `count` events.
async fn events(stream: &mut BodyDataStream, count: usize) -> Vec<String> {
    let mut text = String::new();
    while text.matches("\n\n").count() < count {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    text.split_terminator("\n\n").map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn idle_stream_gets_keep_alives_and_revalidates() {
    let (one_key, options) = revocable_key();
    let in_process_router = InProcessRouter::new(options);
    let post = post(json!({"toolsListChanged": true})).with("Authorization", "Bearer key");
    let mut stream = in_process_router.ask(&post).await.into_body().into_data_stream();
    let began = tokio::time::Instant::now();
    assert_eq!(events(&mut stream, 4).await[1..], [":", ":", ":"]);
    assert_eq!(began.elapsed().as_secs(), 45);
    one_key.is_revoked.store(true, Ordering::SeqCst);
    assert!(stream.next().await.is_none());
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_receives_each_change_once() {
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let post = post(json!({"toolsListChanged": true, "resourceSubscriptions": ["test://plain"]}));
    let mut stream = in_process_router.ask(&post).await.into_body().into_data_stream();
    for _ in 0..100 {
        in_process_router.host.service.registry().swap(tidegate_testkit::host::entries(&Default::default()).build());
        settle().await;
    }
    let message = events(&mut stream, 4).await;
    let methods = message.iter().map(|event| event.split('"').nth(7).unwrap_or(event));
    let expected = [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
        "notifications/resources/updated",
        ":",
    ];
    assert_eq!(methods.collect::<Vec<_>>(), expected);
}
