//! Batches, which only 2025-03-26 has.

use serde_json::{Value, json};
use tidegate_mcp::{IncomingMessage, Revision, decode};

use crate::client::{Client, message};
use tidegate_testkit::schema::check_response;

/// The answers of a batch, or why there are none.
async fn check(client: &Client, batch: &Value) -> String {
    let Ok(IncomingMessage::RpcBatch(messages)) = decode(batch.to_string().as_bytes()) else {
        panic!("no batch: {batch}")
    };
    match client.batch(messages).await {
        Ok(Some(answers)) => {
            let answers: Vec<Value> = serde_json::from_slice(&answers).unwrap();
            for answer in &answers {
                let method = batch.as_array().unwrap().iter().find(|message| message["id"] == answer["id"]);
                let method = method.and_then(|message| message["method"].as_str()).unwrap_or_default();
                check_response(client.revision, method, answer);
            }
            answers.iter().map(|answer| format!("{answer}\n")).collect()
        }
        Ok(None) => "silence".to_owned(),
        Err(error) => format!("error {}: {}", error.code, error.message),
    }
}

fn call(id: impl Into<Value>, steps: Value) -> Value {
    message(id, "tools/call", json!({"name": "script", "arguments": {"steps": steps}}))
}

#[tokio::test]
async fn the_answers_of_a_batch_come_together() {
    let client = Client::of(Revision::V2025_03_26);
    let progress = json!({"name": "script", "arguments": {"steps": [["progress", 1]]}, "_meta": {"progressToken": 1}});
    let batch = json!([
        message(1, "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call("two", json!([["text", "a"], ["text", "b"]])),
        message(3, "unknown", json!({})),
        7,
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        message(4, "tools/call", progress),
        message(5, "initialize", json!({"protocolVersion": "2025-03-26"})),
        [message(6, "ping", json!({}))],
    ]);
    insta::assert_snapshot!(check(&client, &batch).await, @r#"
    {"jsonrpc":"2.0","id":1,"result":{}}
    {"jsonrpc":"2.0","id":"two","result":{"content":[{"type":"text","text":"ab"}],"isError":false}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"there is no method \"unknown\" in this revision"}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: invalid type: integer `7`, expected an object at line 1 column 1"}}
    {"jsonrpc":"2.0","id":4,"result":{"content":[],"isError":false}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"there is no method \"initialize\" in this revision"}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a batch cannot contain a batch"}}
    "#);
}

#[tokio::test]
async fn a_batch_without_requests_is_not_answered() {
    let client = Client::of(Revision::V2025_03_26);
    let batch =
        json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1, "result": {}}]);
    assert_eq!(check(&client, &batch).await, "silence");
}

#[tokio::test]
async fn cancellation_in_batch_drops_one_response() {
    let client = Client::of(Revision::V2025_03_26);
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let batch = json!([call(1, json!([["cancelled"]])), message(2, "ping", json!({})), cancelled]);
    assert_eq!(check(&client, &batch).await, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n");
}

#[tokio::test]
async fn more_requests_than_run_at_once_are_all_answered() {
    let client = Client::of(Revision::V2025_03_26);
    let batch: Value = (0..100).map(|id| call(id, json!([["text", "x"]]))).collect();
    assert_eq!(check(&client, &batch).await.lines().count(), 100);
}

#[tokio::test]
async fn other_revisions_reject_batches() {
    let batch = json!([message(1, "ping", json!({}))]);
    for client in Client::all_revisions().filter(|client| client.revision != Revision::V2025_03_26) {
        let rendered = check(&client, &batch).await;
        assert_eq!(rendered, "error -32600: batches exist only in revision 2025-03-26", "{}", client.revision.name());
    }
}
