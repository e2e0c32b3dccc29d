//! Answers as chunked JSON, written while they are produced.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use super::Server;
use super::request::Post;
use super::wire::Connection;
use tidegate_testkit::host::FLOOD_CHUNK;
use tidegate_testkit::schema::check_response;

/// Reads chunks until they contain `text`.
async fn read_until(connection: &mut Connection, text: &str) -> Vec<u8> {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        read.extend_from_slice(&connection.chunk().await.unwrap());
    }
    read
}

#[tokio::test]
async fn the_first_rows_arrive_before_the_last_are_made() {
    let server = Server::start().await;
    let legacy = server.session(Revision::V2025_06_18).await;
    let steps = json!([["text", "first row"], ["wait"], ["text", ", last row"]]);
    let params = json!({"name": "script", "arguments": {"steps": steps}});
    let posts = [Post::script(steps), legacy.post("tools/call", params)];
    let mut open = Vec::new();
    for post in posts {
        let mut connection = server.connect().await;
        connection.send(&post.bytes()).await;
        let head = connection.head().await;
        assert!(head.is_chunked());
        assert_eq!(head.header("content-type"), Some("application/json"));
        let read = read_until(&mut connection, "first row").await;
        open.push((post, connection, read));
    }
    assert_eq!(server.open_calls(), 2);
    server.host.release.cancel();
    for (post, mut connection, mut read) in open {
        while let Some(chunk) = connection.chunk().await {
            read.extend_from_slice(&chunk);
        }
        let response: Value = serde_json::from_slice(&read).unwrap();
        check_response(post.revision, &post.method, &response);
        assert_eq!(response["result"]["content"][0]["text"], "first row, last row");
    }
}

#[tokio::test]
async fn short_answer_has_content_length() {
    let server = Server::start().await;
    let answer = server.ask(&Post::script(json!([["text", "short"]]))).await;
    assert!(!answer.head.is_chunked());
    assert!(answer.header("content-length").is_some());
}

#[tokio::test]
async fn slow_reader_applies_backpressure() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    connection.send(&Post::script(json!([["flood", 256 * FLOOD_CHUNK.len()]])).bytes()).await;
    assert!(connection.head().await.is_chunked());
    let mut read = connection.chunk().await.unwrap();
    // 16 MiB exceed all socket buffers: the call waits for its reader, and others do not.
    for _ in 0..20 {
        assert_eq!(server.ask(&Post::modern("tools/list", json!({}))).await.summary(), "200");
    }
    assert_eq!(server.open_calls(), 1);
    while let Some(chunk) = connection.chunk().await {
        read.extend_from_slice(&chunk);
    }
    let chunk = json!(*FLOOD_CHUNK).to_string();
    let expected = chunk.trim_matches('"').repeat(256);
    let begin = read.windows(8).position(|window| window == b"\"text\":\"").unwrap() + 8;
    assert!(read[begin..].starts_with(expected.as_bytes()), "the answer is not intact");
    assert!(read[begin + expected.len()..].starts_with(b"\"}],\"isError\":false,"), "nothing more is in it");
}

#[tokio::test]
async fn resources_stream_too() {
    let server = Server::start().await;
    let steps = json!([["text", "first"], ["wait"], ["text", "last"]]).to_string();
    let uri = tidegate_core::UriTemplate::parse("script://{steps}").unwrap().expand(&[&steps]);
    let mut connection = server.connect().await;
    connection.send(&Post::modern("resources/read", json!({"uri": uri})).bytes()).await;
    connection.head().await;
    read_until(&mut connection, "first").await;
    server.host.release.cancel();
    read_until(&mut connection, "last").await;
}
