//! A slow answer does not delay others; a cancelled one is never sent; long ones are whole.

use serde_json::json;
use tidegate_mcp::Revision;

use super::{Server, Socket};
use tidegate_testkit::host::FLOOD_CHUNK;
use tidegate_testkit::message_checker::text;

#[tokio::test]
async fn pings_are_answered_while_a_long_answer_is_produced() {
    let server = Server::start().await;
    let mut socket = Socket::agreed(&server, Revision::V2025_06_18).await;
    // It has produced 300 KiB already and is not complete.
    socket.call(json!("slow"), json!([["flood", 300_000], ["wait"], ["text", "end"]])).await;
    for number in 0..100 {
        assert_eq!(socket.ask(json!(number), "ping", json!({})).await["result"], json!({}));
    }
    server.host.release.cancel();
    let answer = socket.hear().await.unwrap();
    assert_eq!(answer["id"], "slow");
    assert!(text(&answer).ends_with("\nend"));
}

#[tokio::test]
async fn answers_come_when_they_are_ready_and_each_request_has_one() {
    let server = Server::start().await;
    let mut socket = Socket::open(&server).await;
    for number in 0..60 {
        let steps = if number % 2 == 0 { json!([["wait"]]) } else { json!([]) };
        socket.call(json!(number), steps).await;
    }
    for _ in 0..30 {
        assert_eq!(socket.hear().await.unwrap()["id"].as_u64().unwrap() % 2, 1);
    }
    server.host.release.cancel();
    for _ in 0..30 {
        assert_eq!(socket.hear().await.unwrap()["id"].as_u64().unwrap() % 2, 0);
    }
    assert!(socket.ledger.open.is_empty());
}

#[tokio::test]
async fn beyond_the_bound_requests_wait_for_their_turn() {
    let server = Server::start().await;
    let mut socket = Socket::open(&server).await;
    for number in 0..100 {
        socket.call(json!(number), json!([["wait"]])).await;
    }
    server.until_open_calls(64).await;
    server.host.release.cancel();
    for _ in 0..100 {
        socket.hear().await.unwrap();
    }
}

#[tokio::test]
async fn a_long_answer_is_whole() {
    let server = Server::start().await;
    let mut socket = Socket::open(&server).await;
    for chunks in [0, 1, 3, 4, 5, 16, 40] {
        socket.call(json!(chunks), json!([["text", "<"], ["flood", chunks * FLOOD_CHUNK.len()], ["text", ">"]])).await;
        let answer = socket.hear().await.unwrap();
        assert!(text(&answer) == format!("<{}>", FLOOD_CHUNK.repeat(chunks)), "{chunks} chunks are not whole");
    }
}

#[tokio::test]
async fn notifications_precede_the_answer() {
    let server = Server::start().await;
    let mut socket = Socket::open(&server).await;
    let steps = json!([["progress", 1], ["progress", 2], ["text", "done"], ["progress", 3]]);
    let params = json!({"name": "script", "arguments": {"steps": steps}, "_meta": {"progressToken": "p"}});
    socket.send(json!(1), "tools/call", params).await;
    let mut rendered = Vec::new();
    for _ in 0..3 {
        let message = socket.hear().await.unwrap();
        rendered
            .push(message["params"]["progress"].as_f64().map_or_else(|| text(&message).to_owned(), |n| n.to_string()));
    }
    assert_eq!(rendered, ["1", "2", "done"]);
    socket.lives().await;
}

#[tokio::test]
async fn a_cancelled_call_is_silent_and_ends() {
    let server = Server::start().await;
    let mut socket = Socket::agreed(&server, Revision::V2024_11_05).await;
    socket.call(json!("c"), json!([["text", "rows"], ["cancelled"], ["text", "more"]])).await;
    server.until_open_calls(1).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}});
    socket.say(&cancelled.to_string()).await;
    server.until_open_calls(0).await;
    socket.lives().await;
}
