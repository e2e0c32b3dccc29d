//! Clients that close, disconnect or do not read, and shutdown.

use std::time::Duration;

use serde_json::json;
use tidegate_mcp::Revision;
use tidegate_transport::http::HttpOptions;
use tokio::io::AsyncWriteExt;

use super::super::request::Post;
use super::{Server, Socket};
use tidegate_testkit::message_checker::text;

#[tokio::test]
async fn disconnect_cancels_calls() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    for vanishes in [false, true] {
        let mut socket = Socket::agreed(&server, Revision::V2025_03_26).await;
        socket.call(json!(1), json!([["flood", 300_000], ["cancelled"]])).await;
        let call = |id: usize| {
            let params = tidegate_testkit::message_checker::script(&json!([["cancelled"]]));
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        };
        // No further calls of a batch are started either.
        let batch: serde_json::Value = (2..50).map(call).collect();
        socket.say(&batch.to_string()).await;
        server.until_open_calls(9).await;
        if vanishes {
            drop(socket);
        } else {
            socket.close().await;
        }
        server.wait_until_back_at(&before).await;
    }
}

#[tokio::test]
async fn disconnect_within_a_message_leaks_nothing() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    let mut socket = Socket::open(&server).await;
    // The header of a masked frame of 100 bytes, and three of them.
    socket.stream.get_mut().write_all(b"\x81\xe4\x00\x00\x00\x00abc").await.unwrap();
    drop(socket);
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn stalled_reader_is_disconnected() {
    let server = Server::with(HttpOptions { write_within: Duration::from_millis(200), ..HttpOptions::default() }).await;
    let before = server.resource_usage().await;
    let mut socket = Socket::open(&server).await;
    socket.call(json!(1), json!([["flood", 20_000_000]])).await;
    socket.call(json!(2), json!([["cancelled"]])).await;
    server.until_open_calls(2).await;
    // Nothing is read.
    server.wait_until_back_at(&before).await;
    drop(socket);
}

#[tokio::test]
async fn web_socket_holds_its_connection_permit() {
    let server = Server::with(HttpOptions { connections_max: 1, ..HttpOptions::default() }).await;
    let mut socket = Socket::open(&server).await;
    let mut waiting = server.connect().await;
    waiting.send(&Post::modern("tools/list", json!({})).bytes()).await;
    for _ in 0..10 {
        socket.lives().await;
    }
    assert_eq!(server.host.service.registry().jobs().open_count(), 0);
    let answer = tokio::time::timeout(Duration::from_millis(50), waiting.head()).await;
    assert!(answer.is_err(), "it was served beside the WebSocket");
    socket.close().await;
    assert_eq!(waiting.answer().await.summary(), "200");
}

#[tokio::test]
async fn a_shutdown_lets_running_calls_end_and_says_so() {
    let server = Server::start().await;
    let mut busy = Socket::open(&server).await;
    let mut idle = Socket::agreed(&server, Revision::V2025_11_25).await;
    busy.call(json!(1), json!([["wait"], ["flood", 300_000], ["text", "done"]])).await;
    server.until_open_calls(1).await;
    server.shutdown.cancel();
    let unreachable = (1001, "the server is shutting down".to_owned());
    assert_eq!(idle.closed().await, unreachable);
    server.host.release.cancel();
    assert!(text(&busy.hear().await.unwrap()).ends_with("\ndone"));
    assert_eq!(busy.closed().await, unreachable);
    server.running.wait().await;
}

#[tokio::test]
async fn shutdown_is_bounded() {
    let options = HttpOptions { drain_within: Duration::from_millis(100), ..HttpOptions::default() };
    let server = Server::with(options).await;
    let mut stubborn = Socket::open(&server).await;
    stubborn.call(json!(1), json!([["cancelled"]])).await;
    let mut unread = Socket::open(&server).await;
    unread.call(json!(1), json!([["flood", 20_000_000]])).await;
    server.until_open_calls(2).await;
    server.shutdown.cancel();
    server.running.wait().await;
    assert_eq!(server.host.service.registry().jobs().open_count(), 0);
}
