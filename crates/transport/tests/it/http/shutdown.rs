//! Shutdown: running calls may end, and nothing keeps the process alive forever.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tidegate_transport::http::HttpOptions;
use tokio::net::TcpStream;

use super::Server;
use super::request::Post;
use tidegate_testkit::wait::wait_until;

#[tokio::test]
async fn running_calls_end_and_new_connections_are_not_taken() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let steps = json!([["wait"], ["flood", 200_000], ["text", "done"]]);
    let whole = Post::script(steps.clone());
    let modern = Post::script_with_progress(steps.clone());
    let legacy = session.call(steps.clone());
    let legacy_whole = session.post("tools/call", json!({"name": "script", "arguments": {"steps": steps}})).of_id(2);
    let mut connections = Vec::new();
    for post in [&whole, &modern, &legacy, &legacy_whole] {
        let mut connection = server.connect().await;
        connection.send(&post.bytes()).await;
        connections.push(connection);
    }
    server.until_open_calls(4).await;
    let mut idle = server.connect().await;
    let mut listening = server.connect().await;
    listening.send(&session.head("GET", &[])).await;
    listening.head().await;
    server.shutdown.cancel();
    assert!(idle.is_closed().await);
    assert_eq!(listening.event().await, None);
    let address = server.address;
    wait_until("the end of listening", async || TcpStream::connect(address).await.is_err()).await;
    assert_eq!(server.open_calls(), 4);
    server.host.release.cancel();
    for (number, mut connection) in connections.into_iter().enumerate() {
        let head = connection.head().await;
        let response: Value = if head.is_event_stream() {
            connection.events().await.last().unwrap().message()
        } else {
            let mut body = Vec::new();
            while let Some(chunk) = connection.chunk().await {
                body.extend_from_slice(&chunk);
            }
            serde_json::from_slice(&body).unwrap()
        };
        let text = response["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("\ndone"), "the answer of connection {number} is not whole");
        assert!(connection.is_closed().await);
    }
    server.running.wait().await;
}

#[tokio::test]
async fn what_does_not_end_within_the_bound_is_cancelled() {
    let options = HttpOptions { drain_within: Duration::from_millis(100), ..HttpOptions::default() };
    let server = Server::with(options).await;
    let session = server.session(Revision::V2025_11_25).await;
    let mut connections = Vec::new();
    for post in [
        Post::script(json!([["text", "rows"], ["cancelled"]])),
        Post::script_with_progress(json!([["cancelled"]])),
        session.call(json!([["cancelled"]])),
        // This one is not read.
        Post::script(json!([["flood", 100_000_000]])),
    ] {
        let mut connection = server.connect().await;
        connection.send(&post.bytes()).await;
        connections.push(connection);
    }
    server.until_open_calls(4).await;
    server.shutdown.cancel();
    server.running.wait().await;
    assert_eq!(server.host.service.registry().jobs().open_count(), 0);
}

#[tokio::test]
async fn a_server_without_calls_ends_at_once() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let mut listening = server.connect().await;
    listening.send(&session.head("GET", &[])).await;
    listening.head().await;
    let mut idle = server.connect().await;
    idle.ask(&Post::modern("tools/list", json!({})).bytes()).await;
    server.shutdown.cancel();
    server.running.wait().await;
    assert_eq!(listening.event().await, None);
    assert!(idle.is_closed().await);
}
