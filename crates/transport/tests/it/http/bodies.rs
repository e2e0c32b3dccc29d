//! Bodies: type, size, speed and form. The connection stays usable.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_transport::http::HttpOptions;

use super::request::Post;
use super::wire::Connection;
use super::{Server, wire};
use tidegate_testkit::schema::check_response;

async fn lives(connection: &mut Connection) {
    let answer = connection.ask(&Post::modern("server/discover", json!({})).bytes()).await;
    assert_eq!(answer.summary(), "200");
}

#[tokio::test]
async fn requires_json_content_type() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    for (content_type, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON;charset=utf-8", 200),
        ("application/json ; x=y", 200),
        ("text/plain", 415),
        ("application/jsonp", 415),
        ("application/json-rpc", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ] {
        let post = Post::modern("server/discover", json!({})).with("Content-Type", content_type);
        let answer = connection.ask(&post.bytes()).await;
        assert_eq!(answer.head.status, status, "{content_type:?}");
        check_response(post.revision, &post.method, &answer.message());
    }
    let untyped = Post::modern("server/discover", json!({})).without("Content-Type");
    assert_eq!(
        connection.ask(&untyped.bytes()).await.summary(),
        "415 -32600 Invalid request: Content-Type must be application/json"
    );
}

#[tokio::test]
async fn a_body_that_is_no_message_is_refused_with_its_code() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut table = String::new();
    for body in [
        "",
        "hello",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
        "{}",
        "[]",
        "7",
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":["ping"]}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        &nested,
    ] {
        let answer = connection.ask(&Post::raw(body).bytes()).await;
        table.push_str(&format!("{:50} {}\n", body.chars().take(48).collect::<String>(), answer.summary()));
        check_response(tidegate_mcp::Revision::NEWEST_LEGACY, "", &answer.message());
        lives(&mut connection).await;
    }
    insta::assert_snapshot!(table, @r#"
                                                       400 -32700 Parse error: EOF while parsing a value at line 1 column 0
    hello                                              400 -32700 Parse error: expected value at line 1 column 1
    {"jsonrpc":"2.0","id":1,"method":"ping"            400 -32700 Parse error: EOF while parsing an object at line 1 column 39
    {}                                                 400 -32600 Invalid request: the member "jsonrpc" must be "2.0"
    []                                                 400 -32600 Invalid request: an empty batch
    7                                                  400 -32600 Invalid request: invalid type: integer `7`, expected an object at line 1 column 1
    {"jsonrpc":"2.0","id":null,"method":"ping"}        400 -32600 Invalid request: the id must be a string or a number
    {"jsonrpc":"2.0","id":{},"method":"ping"}          400 -32600 Invalid request: the id must be a string or a number
    {"jsonrpc":"2.0","id":7,"method":["ping"]}         400 -32600 Invalid request: the method must be a string
    [{"jsonrpc":"2.0","id":1,"method":"ping"}]         400 -32600 batches exist only in revision 2025-03-26
    [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[   400 -32600 batches exist only in revision 2025-03-26
    "#);
    let answer = connection.ask(&Post::raw(*b"{\"jsonrpc\":\"\xff\"}").bytes()).await;
    assert!(answer.summary().starts_with("400 -32700 "));
    lives(&mut connection).await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_and_the_connection_lives_on() {
    let server = Server::with(HttpOptions { body_bytes_max: 10_000, ..HttpOptions::default() }).await;
    let mut connection = server.connect().await;
    for length in [10_001, 100_000, 5_000_000] {
        let answer = connection.ask(&Post::raw(vec![b' '; length]).bytes()).await;
        assert_eq!(answer.summary(), "413 -32600 Invalid request: the body is larger than 10000 bytes");
        lives(&mut connection).await;
    }
    // The same without a known length.
    let mut chunked =
        wire::request("POST", "/mcp", &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")], b"");
    for _ in 0..20 {
        chunked.extend_from_slice(b"3e8\r\n");
        chunked.extend_from_slice(&[b' '; 1_000]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(connection.ask(&chunked).await.head.status, 413);
    lives(&mut connection).await;
    let whole = Post::raw(vec![b' '; 10_000]);
    assert!(connection.ask(&whole.bytes()).await.summary().starts_with("400 -32700"), "just the bound is read");
}

#[tokio::test]
async fn huge_body_is_not_read() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let headers =
        [("Content-Type", "application/json"), ("Content-Length", "1000000000000"), ("Expect", "100-continue")];
    let answer = connection.ask(&wire::request("POST", "/mcp", &headers, b"")).await;
    assert_eq!(answer.head.status, 413);
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn a_body_may_come_in_chunks() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let post = Post::modern("tools/list", json!({})).with("Transfer-Encoding", "chunked");
    let (head, body) = (post.without_body().bytes(), post.body);
    connection.send(&head).await;
    for byte in body {
        connection.send(&[b'1', b'\r', b'\n', byte, b'\r', b'\n']).await;
    }
    connection.send(b"0\r\n\r\n").await;
    assert_eq!(connection.answer().await.summary(), "200");
    lives(&mut connection).await;
}

#[tokio::test]
async fn other_transfer_codings_are_refused() {
    let server = Server::start().await;
    for codings in ["gzip, chunked", "chunked, chunked", "identity, chunked"] {
        for path in ["/mcp", "/rest/sql"] {
            let mut connection = server.connect().await;
            let headers = [("Content-Type", "application/json"), ("Transfer-Encoding", codings)];
            let mut request = wire::request("POST", path, &headers, b"");
            request.extend_from_slice(b"2\r\n{}\r\n0\r\n\r\n");
            let answer = connection.ask(&request).await;
            assert_eq!(answer.head.status, 400, "{path} {codings}");
            let text = String::from_utf8(answer.body.clone()).unwrap();
            assert!(text.contains("is not supported; send the body uncompressed"), "{text}");
            assert!(connection.is_closed().await);
        }
    }
}

#[tokio::test]
async fn slow_body_times_out() {
    let options = HttpOptions { read_within: Duration::from_millis(100), ..HttpOptions::default() };
    let server = Server::with(options).await;
    let mut slow_body = server.connect().await;
    let headers = [("Content-Type", "application/json"), ("Content-Length", "100")];
    let answer = slow_body.ask(&wire::request("POST", "/mcp", &headers, b"{")).await;
    assert_eq!(answer.summary(), "408 -32600 Invalid request: the body arrived too slowly");
    assert!(slow_body.is_closed().await);
    let mut slow_head = server.connect().await;
    slow_head.send(b"POST /mcp HTTP/1.1\r\nHost: ").await;
    assert!(slow_head.is_closed().await);
}

#[tokio::test]
async fn a_connection_lives_on_after_every_refusal() {
    let server = Server::start().await;
    let session = server.session(tidegate_mcp::Revision::V2025_11_25).await;
    let mut connection = server.connect().await;
    let discover = || Post::modern("server/discover", json!({}));
    let refusals: Vec<(u16, Vec<u8>)> = vec![
        (403, discover().with("Host", "evil.example.com").bytes()),
        (415, discover().with("Content-Type", "text/plain").bytes()),
        (400, discover().without("Mcp-Method").bytes()),
        (404, Post::modern("ping", json!({})).bytes()),
        (400, Post::message("logging/setLevel", json!({"level": "info"})).bytes()),
        (400, Post::message("tools/list", json!({})).with("MCP-Protocol-Version", "1999-01-01").bytes()),
        (404, Post::message("tools/list", json!({})).with("Mcp-Session-Id", "none").bytes()),
        (400, wire::request("DELETE", "/mcp", &[], b"")),
        (404, wire::request("DELETE", "/mcp", &[("Mcp-Session-Id", "none")], b"")),
        (406, wire::request("GET", "/mcp", &[("Accept", "application/json")], b"")),
        (400, session.head("GET", &[("Last-Event-ID", "9-9")])),
        (405, wire::request("PUT", "/mcp", &[], b"")),
        (404, wire::request("GET", "/nothing", &[], b"")),
        (400, Post::raw("{").bytes()),
    ];
    for (status, request) in refusals {
        let answer = connection.ask(&request).await;
        let rendered = answer.summary();
        assert_eq!(answer.head.status, status, "{rendered}");
        lives(&mut connection).await;
    }
}

#[tokio::test]
async fn an_error_names_the_request_whenever_its_id_could_be_read() {
    let server = Server::start().await;
    for post in [
        Post::message("logging/setLevel", json!({"level": "info"})),
        Post::message("tools/list", json!({})).with("Mcp-Session-Id", "none"),
        Post::message("tools/list", json!({})).with("MCP-Protocol-Version", "1999-01-01"),
        Post::message("initialize", json!({})),
        Post::modern("server/discover", json!({})).without("MCP-Protocol-Version"),
        Post::modern("unknown", json!({})),
        Post::modern("tools/call", json!({"name": "unknown"})),
        Post::raw(r#"{"jsonrpc":"2.0","id":1,"method":7}"#),
    ] {
        let answer = server.ask(&post).await.message();
        assert_eq!(answer["id"], Value::from(1), "{answer}");
        assert!(answer.get("error").is_some(), "{answer}");
        check_response(post.revision, &post.method, &answer);
    }
}
