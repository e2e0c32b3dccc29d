//! `prompts/get`: messages, gathered.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use crate::client::Client;

async fn check(revision: Revision, name: &str, arguments: Value) -> String {
    Client::of(revision).send_request("prompts/get", json!({"name": name, "arguments": arguments})).await.text()
}

#[tokio::test]
async fn messages_carry_roles() {
    insta::assert_snapshot!(check(Revision::V2026_07_28, "plain", json!({})).await, @r#"result {"messages":[{"role":"user","content":{"type":"text","text":"nothing to do"}}],"description":"Says what its steps are."}"#);
    let steps = json!([
        ["say", "I am the model"],
        ["block", "I am the person"],
        ["audio", "audio/wav"],
        ["resource", "test://x"]
    ]);
    let arguments = json!({"steps": steps.to_string()});
    insta::assert_snapshot!(check(Revision::V2025_03_26, "decorated", arguments.clone()).await, @r#"result {"messages":[{"role":"assistant","content":{"type":"text","text":"I am the model"}},{"role":"user","content":{"type":"text","text":"I am the person"}},{"role":"user","content":{"type":"audio","data":"AAH/","mimeType":"audio/wav"}},{"role":"user","content":{"type":"resource","resource":{"uri":"test://x","mimeType":"text/plain","text":"inside"}}}],"description":"Takes a step."}"#);
    insta::assert_snapshot!(check(Revision::V2024_11_05, "decorated", arguments).await, @r#"result {"messages":[{"role":"assistant","content":{"type":"text","text":"I am the model"}},{"role":"user","content":{"type":"text","text":"I am the person"}},{"role":"user","content":{"type":"text","text":"[3 bytes of audio/wav]"}},{"role":"user","content":{"type":"resource","resource":{"uri":"test://x","mimeType":"text/plain","text":"inside"}}}],"description":"Takes a step."}"#);
}

#[tokio::test]
async fn invalid_prompt_requests_are_errors() {
    let newest = Revision::V2026_07_28;
    insta::assert_snapshot!(check(newest, "plane", json!({})).await, @r#"
    error -32602: there is no prompt "plane"
    Valid choices: plain {"kind":"not_found"}
    "#);
    insta::assert_snapshot!(check(newest, "decorated", json!({"mood": 7})).await, @r#"
    error -32602: the arguments of prompt "decorated" are wrong:
    - steps: is required
    - mood: must be a string {"kind":"invalid_arguments"}
    "#);
    let failing = json!([["say", "a"], ["fail", "gone"]]).to_string();
    insta::assert_snapshot!(check(newest, "decorated", json!({"steps": failing})).await, @r#"error -31000: gone {"kind":"unavailable"}"#);
    let panicking = check(newest, "decorated", json!({"steps": "[[\"panic\"]]"})).await;
    assert!(panicking.starts_with("error -32603: internal error; the server's log has the detail under id "));
}
