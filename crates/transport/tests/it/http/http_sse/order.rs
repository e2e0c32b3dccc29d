//! A slow answer does not delay others; long ones are whole; a cancelled one is never sent.

use serde_json::json;
use tidegate_mcp::Revision;

use super::{Server, Stream};
use tidegate_testkit::host::FLOOD_CHUNK;
use tidegate_testkit::message_checker::text;

#[tokio::test]
async fn pings_are_answered_while_a_long_answer_is_produced() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    stream.call(json!("slow"), json!([["flood", 300_000], ["wait"], ["text", "end"]])).await;
    for number in 0..20 {
        assert_eq!(stream.ask(json!(number), "ping", json!({})).await["result"], json!({}));
    }
    server.host.release.cancel();
    let answer = stream.hear().await.unwrap();
    assert_eq!(answer["id"], "slow");
    assert!(text(&answer).ends_with("\nend"));
}

#[tokio::test]
async fn a_long_answer_is_one_event() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2025_03_26).await;
    for chunks in [0, 1, 3, 4, 5, 16, 40] {
        stream.call(json!(chunks), json!([["text", "<"], ["flood", chunks * FLOOD_CHUNK.len()], ["text", ">"]])).await;
        let answer = stream.hear().await.unwrap();
        assert!(text(&answer) == format!("<{}>", FLOOD_CHUNK.repeat(chunks)), "{chunks} chunks are not whole");
    }
}

#[tokio::test]
async fn notifications_precede_the_answer() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    let steps = json!([["progress", 1], ["progress", 2], ["text", "done"], ["progress", 3]]);
    let params = json!({"name": "script", "arguments": {"steps": steps}, "_meta": {"progressToken": "p"}});
    stream.send(json!(1), "tools/call", params).await;
    let mut rendered = Vec::new();
    for _ in 0..3 {
        let message = stream.hear().await.unwrap();
        rendered
            .push(message["params"]["progress"].as_f64().map_or_else(|| text(&message).to_owned(), |n| n.to_string()));
    }
    assert_eq!(rendered, ["1", "2", "done"]);
    stream.lives().await;
}

#[tokio::test]
async fn a_cancelled_call_is_silent_and_ends() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    stream.call(json!("c"), json!([["text", "rows"], ["cancelled"], ["text", "more"]])).await;
    server.until_open_calls(1).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}});
    stream.say(&cancelled.to_string()).await;
    server.until_open_calls(0).await;
    stream.lives().await;
}
