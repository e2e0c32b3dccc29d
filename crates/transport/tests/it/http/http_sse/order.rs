//! A slow answer does not delay others; long ones are whole; a cancelled one is never sent. An answer that is alone on
//! its stream leaves while it is produced.

use serde_json::json;
use tidegate_mcp::Revision;

use super::{Server, Stream};
use tidegate_testkit::host::FLOOD_CHUNK;
use tidegate_testkit::message_checker::text;

#[tokio::test]
async fn pings_are_answered_while_a_long_answer_is_produced() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    stream.call(json!("other"), json!([["wait"], ["text", "other"]])).await;
    server.until_open_calls(1).await;
    stream.call(json!("slow"), json!([["flood", 300_000], ["wait"], ["text", "end"]])).await;
    for number in 0..20 {
        assert_eq!(stream.ask(json!(number), "ping", json!({})).await["result"], json!({}));
    }
    server.host.release.cancel();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = stream.hear().await.unwrap();
        assert!(answer["id"] == "other" || text(&answer).ends_with("\nend"));
        ids.push(answer["id"].clone());
    }
    ids.sort_by_key(ToString::to_string);
    assert_eq!(ids, ["other", "slow"]);
}

#[tokio::test]
async fn an_answer_alone_on_its_stream_leaves_while_it_is_produced() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    stream.call(json!("rows"), json!([["text", "first rows"], ["wait"], ["text", ", last rows"]])).await;
    stream.wait_for_bytes("first rows").await;
    // A message that comes later follows the answer.
    stream.send(json!("later"), "ping", json!({})).await;
    server.host.release.cancel();
    assert_eq!(text(&stream.hear().await.unwrap()), "first rows, last rows");
    assert_eq!(stream.hear().await.unwrap()["id"], "later");
    stream.lives().await;
}

#[tokio::test]
async fn a_shutdown_waits_for_an_answer_that_has_begun() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    stream.call(json!(1), json!([["text", "first"], ["wait"], ["text", ", last"]])).await;
    stream.wait_for_bytes("first").await;
    server.shutdown.cancel();
    server.host.release.cancel();
    assert_eq!(text(&stream.hear().await.unwrap()), "first, last");
    assert_eq!(stream.hear().await, None);
    server.running.wait().await;
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
    stream.call(json!("c"), json!([["cancelled"], ["text", "more"]])).await;
    server.until_open_calls(1).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}});
    stream.say(&cancelled.to_string()).await;
    server.until_open_calls(0).await;
    stream.lives().await;
}

#[tokio::test]
async fn a_cancelled_answer_that_has_begun_ends_as_an_error() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    stream.call(json!("c"), json!([["text", "rows"], ["cancelled"], ["text", "more"]])).await;
    stream.wait_for_bytes("rows").await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}});
    stream.say(&cancelled.to_string()).await;
    let answer = stream.hear().await.unwrap();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!("c"), &json!(true)), "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], "rows");
    server.until_open_calls(0).await;
    stream.lives().await;
}
