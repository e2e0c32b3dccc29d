//! The caller is resolved before the upgrade, at each message, and while the connection is quiet.

use std::sync::atomic::Ordering;

use serde_json::json;
use tidegate_core::{Acl, TransportKind};
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};
use tidegate_transport::http::HttpOptions;

use super::super::identity::revocable_key;
use super::super::wire::request;
use super::{Server, Socket};
use tidegate_testkit::wait::wait_until;

const KEY: (&str, &str) = ("Authorization", "Bearer key");

#[tokio::test]
async fn without_the_right_key_there_is_no_web_socket() {
    let (_, options) = revocable_key();
    let server = Server::with(options).await;
    let mut connection = server.connect().await;
    for headers in [&[][..], &[("Authorization", "Bearer other")], &[("Authorization", "Basic key")]] {
        let answer = connection.ask(&request("GET", "/mcp/ws", headers, b"")).await;
        assert_eq!(answer.head.status, 401);
        assert!(answer.header("www-authenticate").is_some());
    }
    assert_eq!(server.figure("tidegate_messages_refused_total{transport=\"ws\"}").await, "3");
    Socket::at(&server, "/mcp/ws", &[KEY]).await.lives().await;
}

/// Web pages cannot set the header `Authorization` of a WebSocket.
#[tokio::test]
async fn a_subprotocol_may_carry_the_key() {
    let (_, options) = revocable_key();
    let server = Server::with(options).await;
    let mut table = String::new();
    for (offered, further) in [
        ("mcp, bearer.key", None),
        ("bearer.key, mcp", None),
        ("mcp, base64url.bearer.a2V5", None),
        ("mcp, bearer.other", None),
        ("mcp, base64url.bearer.b3RoZXI", None),
        ("mcp", None),
        ("bearer.key", None),
        ("mcp, bearer.key, bearer.other", None),
        ("mcp, bearer.other", Some(KEY)),
        ("mcp, base64url.bearer.=", None),
        ("mcp, bearer.", None),
    ] {
        let headers = [
            ("Connection", "upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Sec-WebSocket-Protocol", offered),
        ];
        let headers: Vec<_> = headers.into_iter().chain(further).collect();
        let mut connection = server.connect().await;
        connection.send(&request("GET", "/mcp/ws", &headers, b"")).await;
        let head = connection.head().await;
        let selected = head.header("sec-websocket-protocol").unwrap_or("-");
        table.push_str(&format!(
            "{offered}{}: {} {selected}\n",
            if further.is_some() { " + header" } else { "" },
            head.status
        ));
    }
    insta::assert_snapshot!(table, @r"
    mcp, bearer.key: 101 mcp
    bearer.key, mcp: 101 mcp
    mcp, base64url.bearer.a2V5: 101 mcp
    mcp, bearer.other: 401 -
    mcp, base64url.bearer.b3RoZXI: 401 -
    mcp: 401 -
    bearer.key: 400 -
    mcp, bearer.key, bearer.other: 400 -
    mcp, bearer.other + header: 400 -
    mcp, base64url.bearer.=: 400 -
    mcp, bearer.: 400 -
    ");
    // Other transports do not read it.
    let post = [("Sec-WebSocket-Protocol", "mcp, bearer.key")];
    assert_eq!(server.connect().await.ask(&request("POST", "/mcp", &post, b"{}")).await.head.status, 401);
}

#[tokio::test]
async fn a_key_that_is_revoked_ends_the_connection_at_its_next_message() {
    let (one_key, options) = revocable_key();
    let server = Server::with(options).await;
    let mut socket = Socket::at(&server, "/mcp/ws", &[KEY]).await;
    socket.call(json!(1), json!([["cancelled"]])).await;
    server.until_open_calls(1).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    socket.send(json!(2), "tools/list", json!({})).await;
    assert_eq!(socket.closed().await, (1008, "the key or token is not valid".to_owned()));
    server.until_open_calls(0).await;
}

#[tokio::test]
async fn revoked_key_receives_no_changes() {
    let (one_key, options) = revocable_key();
    let server = Server::with(options).await;
    let mut socket = Socket::at(&server, "/mcp/ws", &[KEY]).await;
    socket.shake_hands(tidegate_mcp::Revision::V2025_11_25).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    server.host.service.registry().swap(SnapshotBuilder::new().build());
    assert_eq!(socket.closed().await.0, 1008);
}

#[tokio::test]
async fn while_the_configuration_changes_a_request_is_put_off() {
    let (one_key, options) = revocable_key();
    let server = Server::with(options).await;
    let mut socket = Socket::at(&server, "/mcp/ws", &[KEY]).await;
    one_key.generation.store(1, Ordering::SeqCst);
    let answer = socket.ask(json!(1), "tools/list", json!({})).await;
    assert_eq!(answer["error"]["message"], "the configuration of the server is changing; try again");
    server.host.service.registry().swap(SnapshotBuilder::new().generation(1).build());
    assert_eq!(socket.ask(json!(2), "tools/list", json!({})).await["result"]["tools"], json!([]));
}

#[tokio::test]
async fn transport_acl_applies() {
    let server = Server::start().await;
    let mut tool = Tool::new("only", "", handler_fn(|_| async { Ok(Answer::content(Vec::new())) }));
    tool.access.acl = Acl { transports: Some(vec![TransportKind::WebSocket]), networks: None };
    server.host.service.registry().swap(SnapshotBuilder::new().tool(tool).build());
    let listed = Socket::open(&server).await.ask(json!(1), "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "only");
    let post = super::super::request::Post::modern("tools/list", json!({}));
    assert_eq!(server.ask(&post).await.message()["result"]["tools"], json!([]));
}

#[tokio::test]
async fn sessions_per_principal_are_bounded() {
    let (_, options) = revocable_key();
    let server = Server::with(HttpOptions { sessions_max: 10, sessions_per_principal_max: 2, ..options }).await;
    let first = Socket::at(&server, "/mcp/ws", &[KEY]).await;
    let mut second = Socket::at(&server, "/mcp/ws", &[KEY]).await;
    let headers = [KEY, ("Connection", "upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")];
    let headers =
        [&headers[..], &[("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Sec-WebSocket-Protocol", "mcp")]];
    let third = server.connect().await.ask(&request("GET", "/mcp/ws", &headers.concat(), b"")).await;
    assert_eq!(third.summary(), "503 -32603 you have too many open sessions; try again later");
    second.lives().await;
    first.close().await;
    wait_until("the session", async || server.figure("tidegate_sessions{transport=\"ws\"}").await == "1").await;
    Socket::at(&server, "/mcp/ws", &[KEY]).await.lives().await;
}
