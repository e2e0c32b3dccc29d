//! The caller is resolved at each message and while it is quiet; a session belongs to its owner.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use tidegate_core::{Acl, TransportKind};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};
use tidegate_transport::http::HttpOptions;

use super::super::identity::{AnyName, revocable_key};
use super::super::request::Post;
use super::super::wire::request;
use super::{Server, Stream};
use tidegate_testkit::wait::wait_until;

const KEY: (&str, &str) = ("Authorization", "Bearer key");
const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn session_is_hidden_from_other_principals() {
    let server = Server::with(HttpOptions { authenticator: Arc::new(AnyName), ..HttpOptions::default() }).await;
    let mut stream = Stream::at(&server, "/mcp/sse", &[("Authorization", "Bearer ann")]).await;
    let list = stream.ledger.request(&json!(1), "tools/list", json!({}));
    let mut message = Vec::new();
    for bearer in [None, Some("Bearer bob"), Some("Bearer ann")] {
        let headers: Vec<_> = bearer.map(|bearer| ("Authorization", bearer)).into_iter().chain([JSON]).collect();
        message.push(stream.post_with(&headers, list.as_bytes()).await.summary());
    }
    insta::assert_debug_snapshot!(message, @r#"
    [
        "401 -32600 authentication is required: send Authorization: Bearer with an API key or a token",
        "404 -32600 the session does not exist or has ended; open a new one with GET /mcp/sse",
        "202",
    ]
    "#);
    assert_eq!(stream.hear().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn revoked_key_cannot_post_or_receive() {
    let (one_key, options) = revocable_key();
    let server = Server::with(options).await;
    let mut stream = Stream::at(&server, "/mcp/sse", &[KEY]).await;
    stream.shake_hands(Revision::V2024_11_05).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(stream.post(ping).await.summary(), "401 -32600 the key or token is not valid");
    server.host.service.registry().swap(SnapshotBuilder::new().build());
    assert_eq!(stream.hear().await, None);
    one_key.is_revoked.store(false, Ordering::SeqCst);
    assert_eq!(stream.post(ping).await.head.status, 404);
}

#[tokio::test]
async fn without_the_right_key_there_is_no_stream() {
    let (_, options) = revocable_key();
    let server = Server::with(options).await;
    let mut connection = server.connect().await;
    for headers in [&[][..], &[("Authorization", "Bearer other")]] {
        let headers = [headers, &[("Accept", "text/event-stream")]].concat();
        let answer = connection.ask(&request("GET", "/mcp/sse", &headers, b"")).await;
        assert_eq!(answer.head.status, 401);
        assert!(answer.header("www-authenticate").is_some());
    }
}

#[tokio::test]
async fn transport_acl_applies() {
    let server = Server::start().await;
    let mut tool = Tool::new("only", "", handler_fn(|_| async { Ok(Answer::content(Vec::new())) }));
    tool.access.acl = Acl { transports: Some(vec![TransportKind::Sse]), networks: None };
    server.host.service.registry().swap(SnapshotBuilder::new().tool(tool).build());
    let listed = Stream::open(&server).await.ask(json!(1), "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "only");
    let post = Post::modern("tools/list", json!({}));
    assert_eq!(server.ask(&post).await.message()["result"]["tools"], json!([]));
}

#[tokio::test]
async fn transports_share_the_session_bound() {
    let server = Server::with(HttpOptions { sessions_max: 2, ..HttpOptions::default() }).await;
    let first = Stream::open(&server).await;
    let _second = Stream::open(&server).await;
    let accept = [("Accept", "text/event-stream")];
    let third = server.connect().await.ask(&request("GET", "/mcp/sse", &accept, b"")).await;
    assert_eq!(third.summary(), "503 -32603 there are too many open sessions; try again later");
    let initialize = Post::message("initialize", json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(server.ask(&initialize).await.head.status, 503);
    drop(first);
    wait_until("the end of the session", async || server.figure("tidegate_sessions{transport=\"sse\"}").await == "1")
        .await;
    assert_eq!(server.ask(&initialize).await.head.status, 200);
}
