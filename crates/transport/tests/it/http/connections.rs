//! The maximum number of connections: idle ones make room, others are waited for.

use std::time::Duration;

use serde_json::json;
use tidegate_transport::http::HttpOptions;

use super::Server;
use super::request::Post;

#[tokio::test]
async fn connection_beyond_the_bound_ends_the_oldest_idle_one() {
    let server = Server::with(HttpOptions { connections_max: 2, ..HttpOptions::default() }).await;
    let list = Post::modern("tools/list", json!({})).bytes();
    let (mut silent, mut used) = (server.connect().await, server.connect().await);
    assert_eq!(used.ask(&list).await.summary(), "200");
    let mut third = server.connect().await;
    assert_eq!(third.ask(&list).await.summary(), "200");
    assert!(silent.is_closed().await);
    assert_eq!(used.ask(&list).await.summary(), "200");
}

#[tokio::test]
async fn connections_with_a_request_are_never_ended_for_others() {
    let server = Server::with(HttpOptions { connections_max: 2, ..HttpOptions::default() }).await;
    let mut busy = [server.connect().await, server.connect().await];
    for (connection, count) in busy.iter_mut().zip(1..) {
        connection.send(&Post::script(json!([["wait"]])).bytes()).await;
        server.until_open_calls(count).await;
    }
    let mut waiting = server.connect().await;
    waiting.send(&Post::modern("tools/list", json!({})).bytes()).await;
    let [first, _second] = busy;
    drop(first);
    assert_eq!(waiting.answer().await.summary(), "200");
    // The idle connection makes room again, and the second call still runs.
    server.until_open_calls(1).await;
    assert_eq!(server.ask(&Post::modern("tools/list", json!({}))).await.summary(), "200");
    assert_eq!(server.open_calls(), 1);
}

#[tokio::test]
async fn one_connection_carries_any_number_of_requests() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let list = Post::modern("tools/list", json!({})).bytes();
    let both = [list.as_slice(), &Post::script(json!([["flood", 600_000]])).bytes()].concat();
    for _ in 0..3 {
        // Two requests at once: the second waits for the first.
        connection.send(&both).await;
        assert!(connection.answer().await.text().contains("\"tools\""));
        assert!(connection.answer().await.head.is_chunked());
    }
}

#[tokio::test]
async fn stalled_reader_is_disconnected() {
    let server = Server::with(HttpOptions { write_within: Duration::from_millis(200), ..HttpOptions::default() }).await;
    let mut connection = server.connect().await;
    connection.send(&Post::script(json!([["flood", 200_000_000]])).bytes()).await;
    server.until_open_calls(1).await;
    // Nothing is read; the call ends long before its own limit.
    server.until_open_calls(0).await;
    drop(connection);
}
