//! Requests that open no WebSocket: each required header is missing or wrong once.

use serde_json::json;
use tidegate_transport::http::HttpOptions;

use super::super::request::Post;
use super::super::wire::request;
use super::{Server, Socket};

const RIGHT: [(&str, &str); 5] = [
    ("Connection", "keep-alive, Upgrade"),
    ("Upgrade", "WebSocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Protocol", "chat, mcp"),
];

/// Valid headers except for one, which has another value or is missing.
fn but(name: &str, value: Option<&str>) -> Vec<u8> {
    let headers = RIGHT.into_iter().filter(|(header, _)| *header != name);
    request("GET", "/mcp/ws", &headers.chain(value.map(|value| (name, value))).collect::<Vec<_>>(), b"")
}

#[tokio::test]
async fn rejected_handshake_keeps_the_connection() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    let mut connection = server.connect().await;
    let mut message = String::new();
    for (name, value) in [
        ("Connection", None),
        ("Upgrade", Some("h2c")),
        ("Sec-WebSocket-Version", Some("8")),
        ("Sec-WebSocket-Key", None),
        ("Sec-WebSocket-Key", Some("c2hvcnQ=")),
        ("Sec-WebSocket-Protocol", None),
        ("Sec-WebSocket-Protocol", Some("chat, mcp2")),
        ("Origin", Some("https://evil.example")),
        ("Host", Some("evil.example")),
    ] {
        let answer = connection.ask(&but(name, value)).await;
        message.push_str(&format!("{name} {value:?}: {}\n", answer.summary()));
        assert_eq!(answer.header("sec-websocket-version").is_some(), name == "Sec-WebSocket-Version");
    }
    insta::assert_snapshot!(message, @r#"
    Connection None: 426 -32600 Invalid request: this path accepts only WebSocket upgrades; use /mcp for plain HTTP
    Upgrade Some("h2c"): 426 -32600 Invalid request: this path accepts only WebSocket upgrades; use /mcp for plain HTTP
    Sec-WebSocket-Version Some("8"): 426 -32600 Invalid request: Sec-WebSocket-Version must be 13
    Sec-WebSocket-Key None: 400 -32600 Invalid request: Sec-WebSocket-Key must be 16 bytes as Base64
    Sec-WebSocket-Key Some("c2hvcnQ="): 400 -32600 Invalid request: Sec-WebSocket-Key must be 16 bytes as Base64
    Sec-WebSocket-Protocol None: 400 -32600 Invalid request: the client must offer the subprotocol: Sec-WebSocket-Protocol: mcp
    Sec-WebSocket-Protocol Some("chat, mcp2"): 400 -32600 Invalid request: the client must offer the subprotocol: Sec-WebSocket-Protocol: mcp
    Origin Some("https://evil.example"): 403 -32600 the origin "https://evil.example" is not allowed; the server's option --allow-origin adds it
    Host Some("evil.example"): 403 -32600 the host "evil.example" is not allowed; the server's option --allow-host adds it
    "#);
    drop(connection);
    server.wait_until_back_at(&before).await;
    assert_eq!(server.figure("tidegate_messages_refused_total{transport=\"ws\"}").await, "9");
}

#[tokio::test]
async fn handshake_follows_rfc_6455() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    connection.send(&request("GET", "/mcp/ws", &RIGHT, b"")).await;
    let head = connection.head().await;
    assert_eq!(head.status, 101);
    assert_eq!(head.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(head.header("sec-websocket-protocol"), Some("mcp"));
}

#[tokio::test]
async fn disabled_transport_is_not_found() {
    let server = Server::with(HttpOptions { has_web_socket: false, ..HttpOptions::default() }).await;
    let answer = server.connect().await.ask(&request("GET", "/mcp/ws", &RIGHT, b"")).await;
    assert_eq!(answer.head.status, 404);
    let server = Server::with(HttpOptions { has_mcp: false, ..HttpOptions::default() }).await;
    Socket::open(&server).await.lives().await;
    assert_eq!(server.ask(&Post::modern("tools/list", json!({}))).await.head.status, 404);
}
