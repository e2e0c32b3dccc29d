//! The maximum number of connections, and waiting for one.

use std::time::Duration;

use serde_json::json;
use tidegate_transport::http::HttpOptions;

use super::Server;
use super::request::Post;

#[tokio::test]
async fn connections_beyond_the_bound_wait_for_their_turn() {
    let server = Server::with(HttpOptions { connections_max: 2, ..HttpOptions::default() }).await;
    let list = Post::modern("tools/list", json!({})).bytes();
    let mut open = [server.connect().await, server.connect().await];
    for connection in &mut open {
        assert_eq!(connection.ask(&list).await.summary(), "200");
    }
    let mut waiting = server.connect().await;
    waiting.send(&list).await;
    // The open connections are served meanwhile.
    for connection in &mut open {
        assert_eq!(connection.ask(&list).await.summary(), "200");
    }
    drop(open);
    assert_eq!(waiting.answer().await.summary(), "200");
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
