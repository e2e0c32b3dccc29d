//! `subscriptions/listen` beside other requests, and what a legacy session hears of its resources.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tidegate_core::Access;
use tidegate_mcp::Revision;
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;

use super::super::identity::asking;
use super::{Server, Stream};
use crate::garden::Garden;
use crate::ledger::{heard_on, told};

async fn garden(options: HttpOptions) -> (Server, Arc<Garden>) {
    let (host, garden) = Garden::with_host();
    (Server::of(host, Arc::new(Metrics::new()), options).await, garden)
}

fn wish(uris: &[&str]) -> Value {
    json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": uris}})
}

/// Opens a stream of notifications.
async fn listen(stream: &mut Stream, id: Value, uris: &[&str]) {
    stream.send(id.clone(), "subscriptions/listen", wish(uris)).await;
    assert_eq!(next(stream).await, format!("{id} subscriptions/acknowledged"));
}

/// The next message: the stream that it belongs to, and what it says.
async fn next(stream: &mut Stream) -> String {
    heard_on(&stream.hear().await.unwrap())
}

async fn cancel(stream: &mut Stream, id: Value) {
    let params = json!({"requestId": id});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    stream.say(&message.to_string()).await;
    stream.ledger.open.remove(&id.to_string());
}

#[tokio::test]
async fn each_stream_tells_what_it_was_asked_for_until_it_is_cancelled_or_the_server_shuts_down() {
    let (server, garden) = garden(HttpOptions::default()).await;
    let mut stream = Stream::open(&server).await;
    listen(&mut stream, json!("a"), &["garden://rose"]).await;
    listen(&mut stream, json!(7), &[]).await;
    stream.call(json!("slow"), json!([["cancelled"]])).await;
    garden.dig("rose");
    garden.dig("lily");
    assert_eq!(next(&mut stream).await, "\"a\" resources/updated garden://rose");
    stream.lives().await;
    cancel(&mut stream, json!("a")).await;
    cancel(&mut stream, json!("slow")).await;
    // The next answer comes after the cancellation was heard.
    stream.lives().await;
    garden.dig("rose");
    server.host.service.registry().swap(garden.state(Access::default()));
    assert_eq!(next(&mut stream).await, "7 tools/list_changed");
    listen(&mut stream, json!("a"), &[]).await;
    server.shutdown.cancel();
    let mut rest = [next(&mut stream).await, next(&mut stream).await];
    rest.sort_unstable();
    assert_eq!(rest, ["\"a\" result", "7 result"]);
}

#[tokio::test]
async fn streams_are_bounded_and_take_no_place_of_requests() {
    let (server, _) = garden(HttpOptions::default()).await;
    let before = server.level().await;
    let mut stream = Stream::open(&server).await;
    for id in 0..16 {
        listen(&mut stream, json!(id), &["test://plain"]).await;
    }
    stream.send(json!("more"), "subscriptions/listen", wish(&[])).await;
    let refused = stream.hear().await.unwrap();
    assert_eq!(told(&refused), "-32600 for id \"more\": more than 16 streams of notifications are open");
    stream.lives().await;
    drop(stream);
    server.until_back_at(&before).await;
}

#[tokio::test]
async fn a_key_that_is_revoked_hears_nothing_more() {
    let (one_key, options) = asking();
    let (server, garden) = garden(options).await;
    let mut stream = Stream::at(&server, "/mcp/sse", &[("Authorization", "Bearer key")]).await;
    listen(&mut stream, json!(1), &["garden://rose"]).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    garden.dig("rose");
    server.host.service.registry().swap(garden.state(Access::default()));
    assert!(stream.hear().await.is_none(), "the stream ends without a result");
}

#[tokio::test]
async fn a_legacy_session_hears_of_the_resource_that_changed_alone() {
    let (server, garden) = garden(HttpOptions::default()).await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    for uri in ["garden://rose", "garden://lily"] {
        stream.ask(json!(uri), "resources/subscribe", json!({"uri": uri})).await;
    }
    garden.dig("lily");
    assert_eq!(stream.hear().await.unwrap()["params"], json!({"uri": "garden://lily"}));
    stream.ask(json!(1), "resources/unsubscribe", json!({"uri": "garden://lily"})).await;
    garden.dig("lily");
    garden.dig("rose");
    assert_eq!(stream.hear().await.unwrap()["params"], json!({"uri": "garden://rose"}));
    stream.lives().await;
}
