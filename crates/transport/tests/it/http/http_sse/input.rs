//! Invalid input of a client: each is rejected with a reason, and the session continues.

use std::time::Duration;

use serde_json::json;
use tidegate_mcp::Revision;
use tidegate_transport::http::HttpOptions;

use super::super::wire::request;
use super::{Server, Stream};
use tidegate_testkit::message_checker::error_summary;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// The name of the case, its headers and its body.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [u8]);

#[tokio::test]
async fn malformed_message_keeps_the_session() {
    let server = Server::with(HttpOptions { body_bytes_max: 1_000, ..HttpOptions::default() }).await;
    let before = server.resource_usage().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    let mut answers = String::new();
    let cases: [Case; 9] = [
        ("nothing", &[JSON, ("Content-Length", "0")], b""),
        ("no JSON", &[JSON], b"hello"),
        ("no UTF-8", &[JSON], b"\xff\xfe"),
        ("no message", &[JSON], b"{}"),
        ("an empty batch", &[JSON], b"[]"),
        ("too large", &[JSON], &[b'x'; 1_001]),
        ("another type", &[("Content-Type", "text/plain")], b"{}"),
        ("another origin", &[JSON, ("Origin", "https://evil.example")], b"{}"),
        ("another host", &[JSON, ("Host", "evil.example")], b"{}"),
    ];
    for (name, headers, body) in cases {
        let answer = stream.post_with(headers, body).await;
        answers.push_str(&format!("{name}: {}\n", answer.summary()));
        stream.lives().await;
    }
    insta::assert_snapshot!(answers, @r#"
    nothing: 400 -32700 Parse error: EOF while parsing a value at line 1 column 0
    no JSON: 400 -32700 Parse error: expected value at line 1 column 1
    no UTF-8: 400 -32700 Parse error: invalid utf-8 sequence of 1 bytes from index 0
    no message: 400 -32600 Invalid request: the member "jsonrpc" must be "2.0"
    an empty batch: 400 -32600 Invalid request: an empty batch
    too large: 413 -32600 Invalid request: the body is larger than 1000 bytes
    another type: 415 -32600 Invalid request: Content-Type must be application/json
    another origin: 403 -32600 the origin "https://evil.example" is not allowed; the server's option --allow-origin adds it
    another host: 403 -32600 the host "evil.example" is not allowed; the server's option --allow-host adds it
    "#);
    assert_eq!(server.figure("tidegate_messages_refused_total{transport=\"sse\"}").await, "9");
    drop(stream);
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn unfinished_message_times_out() {
    let options = HttpOptions { read_within: Duration::from_millis(100), ..HttpOptions::default() };
    let server = Server::with(options).await;
    let before = server.resource_usage().await;
    let mut stream = Stream::open(&server).await;
    let begun = request("POST", &stream.endpoint, &[JSON, ("Content-Length", "100")], b"{");
    let mut slow = server.connect().await;
    assert_eq!(slow.ask(&begun).await.summary(), "408 -32600 Invalid request: the body arrived too slowly");
    let mut vanishing = server.connect().await;
    vanishing.send(&begun).await;
    drop((slow, vanishing));
    stream.lives().await;
    drop(stream);
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn rejections_are_sent_on_the_stream_too() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    let wrong = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": []});
    stream.ledger.open.insert("7".to_owned(), ("tools/list".to_owned(), Revision::V2024_11_05));
    let answer = stream.post(wrong.to_string().as_bytes()).await;
    assert_eq!(answer.summary(), "400 -32600 Invalid request: the params must be an object");
    let received = stream.hear().await.unwrap();
    assert_eq!(error_summary(&received), "-32600 for id 7: Invalid request: the params must be an object");
}

#[tokio::test]
async fn opening_requires_accept_event_stream() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    let mut connection = server.connect().await;
    let mut answers = String::new();
    let events = ("Accept", "text/event-stream");
    for (method, path, headers) in [
        ("GET", "/mcp/sse", &[][..]),
        ("GET", "/mcp/sse", &[("Accept", "application/json")]),
        ("GET", "/mcp/sse", &[events, ("Origin", "https://evil.example")]),
        ("GET", "/mcp/sse", &[events, ("Host", "evil.example")]),
        ("GET", "/mcp/unknown/sse", &[events]),
        ("POST", "/mcp/sse", &[JSON]),
        ("POST", "/mcp/messages/0123456789abcdef", &[JSON]),
        ("POST", "/mcp/messages/%20", &[JSON]),
        ("GET", "/mcp/messages/0123456789abcdef", &[events]),
    ] {
        let body: &[u8] = if method == "POST" { b"{}" } else { b"" };
        let answer = connection.ask(&request(method, path, headers, body)).await;
        answers.push_str(&format!("{method} {path} {headers:?}: {}\n", answer.summary()));
    }
    insta::assert_snapshot!(answers, @r#"
    GET /mcp/sse []: 406 -32600 GET opens an event stream: Accept must include text/event-stream
    GET /mcp/sse [("Accept", "application/json")]: 406 -32600 GET opens an event stream: Accept must include text/event-stream
    GET /mcp/sse [("Accept", "text/event-stream"), ("Origin", "https://evil.example")]: 403 -32600 the origin "https://evil.example" is not allowed; the server's option --allow-origin adds it
    GET /mcp/sse [("Accept", "text/event-stream"), ("Host", "evil.example")]: 403 -32600 the host "evil.example" is not allowed; the server's option --allow-host adds it
    GET /mcp/unknown/sse [("Accept", "text/event-stream")]: 404 -32600 there is no toolset "unknown"; the endpoint of the whole server is /mcp
    POST /mcp/sse [("Content-Type", "application/json")]: 405
    POST /mcp/messages/0123456789abcdef [("Content-Type", "application/json")]: 404 -32600 the session does not exist or has ended; open a new one with GET /mcp/sse
    POST /mcp/messages/%20 [("Content-Type", "application/json")]: 404 -32600 the session does not exist or has ended; open a new one with GET /mcp/sse
    GET /mcp/messages/0123456789abcdef [("Accept", "text/event-stream")]: 405
    "#);
    drop(connection);
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn disabled_transport_is_not_found() {
    let server = Server::with(HttpOptions { has_sse: false, ..HttpOptions::default() }).await;
    let mut connection = server.connect().await;
    let events = [("Accept", "text/event-stream")];
    assert_eq!(connection.ask(&request("GET", "/mcp/sse", &events, b"")).await.head.status, 404);
    assert_eq!(connection.ask(&request("POST", "/mcp/messages/0", &[JSON], b"{}")).await.head.status, 404);
    let server = Server::with(HttpOptions { has_mcp: false, ..HttpOptions::default() }).await;
    Stream::agreed(&server, Revision::V2024_11_05).await.lives().await;
}
