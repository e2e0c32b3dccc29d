//! Answers that are written while they are produced, that fail, or that are not read.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_transport::http::HttpOptions;

use super::super::wire::Connection;
use super::fixture::{get, problem, script, start, with};
use tidegate_testkit::host::FLOOD_CHUNK;

const TRAILERS: (&str, &str) = ("TE", "trailers");

/// The whole of a chunked body.
async fn rest_of(connection: &mut Connection) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(chunk) = connection.chunk().await {
        read.extend_from_slice(&chunk);
    }
    read
}

#[tokio::test]
async fn the_first_rows_arrive_before_the_last_are_made() {
    let server = start().await;
    let mut connection = server.connect().await;
    let steps =
        json!([["body", 2], ["bytes", "first,"], ["wait"], ["bytes", "last"], ["rows", 2], ["truncated", true]]);
    connection.send(&script(steps, &[TRAILERS, ("Accept", "text/csv")])).await;
    let head = connection.head().await;
    assert!(head.is_chunked());
    assert_eq!(head.header("content-type"), Some("text/csv"));
    assert_eq!(head.header("tidegate-rows-max"), Some("2"));
    assert_eq!(head.header("trailer"), Some("tidegate-rows, tidegate-truncated, tidegate-cursor"));
    assert_eq!(connection.chunk().await.unwrap(), b"first,");
    server.host.release.cancel();
    assert_eq!(rest_of(&mut connection).await, b"last");
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(connection.trailers, [field("tidegate-rows", "2"), field("tidegate-truncated", "true")]);
    // The connection stays usable, and clients that do not request trailers get none.
    connection.send(&script(json!([["body"], ["bytes", "a"], ["torrent", 1_000_000]]), &[])).await;
    let head = connection.head().await;
    assert_eq!((head.is_chunked(), head.header("trailer")), (true, None));
    rest_of(&mut connection).await;
    assert_eq!(connection.trailers, []);
    assert_eq!(connection.ask(&get("/rest/jobs")).await.head.status, 200);
}

#[tokio::test]
async fn short_answer_has_facts_in_headers() {
    let server = start().await;
    let steps = json!([["progress", 1], ["body"], ["bytes", "a"], ["bytes", "b"], ["rows", 1], ["truncated", false]]);
    let answer = server.rest(&script(steps, &[TRAILERS])).await;
    assert_eq!((answer.text(), answer.header("content-length")), ("ab", Some("2")));
    let facts = (answer.header("tidegate-rows"), answer.header("tidegate-truncated"), answer.header("trailer"));
    assert_eq!(facts, (Some("1"), Some("false"), None));
    let empty = server.rest(&script(json!([["body"]]), &[])).await;
    assert_eq!((empty.head.status, empty.text()), (200, ""));
}

#[tokio::test]
async fn a_failure_before_the_first_byte_has_its_status() {
    let server = start().await;
    for steps in [json!([["fail", "no rows", "timed_out"]]), json!([["body"], ["fail", "no rows", "timed_out"]])] {
        assert_eq!(problem(&server.rest(&script(steps, &[])).await), "504 timed_out: no rows");
    }
}

#[tokio::test]
async fn failed_stream_breaks_the_connection() {
    for steps in [
        json!([["body"], ["bytes", "first"], ["wait"], ["fail", "gone"]]),
        json!([["text", "first"], ["wait"], ["fail", "gone"]]),
    ] {
        let server = start().await;
        let mut connection = server.connect().await;
        connection.send(&script(steps, &[TRAILERS])).await;
        assert_eq!(connection.head().await.status, 200);
        connection.chunk().await.unwrap();
        server.host.release.cancel();
        connection.until_broken().await;
        server.until_open_calls(0).await;
    }
}

#[tokio::test]
async fn failed_content_states_the_error() {
    let server = start().await;
    let mut connection = server.connect().await;
    connection.send(&script(json!([["text", "first"], ["wait"], ["fail", "gone"]]), &[])).await;
    connection.head().await;
    let mut read = connection.chunk().await.unwrap();
    server.host.release.cancel();
    read.extend(connection.chunk().await.unwrap());
    let body: Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(body, json!({"content": [{"type": "text", "text": "first"}], "error": "gone"}));
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn slow_reader_applies_backpressure() {
    let server = start().await;
    let mut connection = server.connect().await;
    connection.send(&script(json!([["body"], ["torrent", 256 * FLOOD_CHUNK.len()]]), &[])).await;
    assert!(connection.head().await.is_chunked());
    let mut read = connection.chunk().await.unwrap();
    // 16 MiB exceed all socket buffers: the call waits for its reader, and others do not.
    for _ in 0..20 {
        assert_eq!(server.rest(&get("/rest/tools")).await.head.status, 200);
    }
    assert_eq!(server.open_calls(), 1);
    read.extend(rest_of(&mut connection).await);
    assert!(read == FLOOD_CHUNK.repeat(256).as_bytes(), "the answer is not intact");
    server.until_open_calls(0).await;
}

#[tokio::test]
async fn disconnect_cancels_the_call() {
    let server = start().await;
    for steps in [json!([["cancelled"]]), json!([["body"], ["bytes", "first"], ["cancelled"]])] {
        let mut connection = server.connect().await;
        connection.send(&script(steps, &[])).await;
        server.until_open_calls(1).await;
        drop(connection);
        server.until_open_calls(0).await;
    }
}

#[tokio::test]
async fn stalled_reader_is_disconnected() {
    let server = with(HttpOptions { write_within: Duration::from_millis(200), ..HttpOptions::default() }).await;
    let mut connection = server.connect().await;
    connection.send(&script(json!([["body"], ["torrent", 1_000 * FLOOD_CHUNK.len()]]), &[])).await;
    connection.head().await;
    server.until_open_calls(1).await;
    server.until_open_calls(0).await;
}
