//! `completion/complete`.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use crate::client::Client;

async fn check(reference: Value, argument: &str, value: &str) -> String {
    let params = json!({"ref": reference, "argument": {"name": argument, "value": value}});
    Client::modern().send_request("completion/complete", params).await.text()
}

fn prompt(name: &str) -> Value {
    json!({"type": "ref/prompt", "name": name})
}

#[tokio::test]
async fn prompts_and_templates_complete() {
    insta::assert_snapshot!(check(prompt("decorated"), "mood", "ap").await, @r#"result {"completion":{"values":["apple","apricot"],"hasMore":false,"total":2}}"#);
    insta::assert_snapshot!(check(json!({"type": "ref/resource", "uri": "fruit://{fruit}"}), "fruit", "b").await, @r#"result {"completion":{"values":["banana"],"hasMore":false,"total":1}}"#);
    insta::assert_snapshot!(check(prompt("plain"), "mood", "").await, @r#"result {"completion":{"values":[],"hasMore":false}}"#);
}

#[tokio::test]
async fn completion_uses_context() {
    let params = json!({
        "ref": prompt("decorated"),
        "argument": {"name": "mood", "value": ""},
        "context": {"arguments": {"basket": "cherry"}},
    });
    for client in Client::all_revisions() {
        let result = client.send_request("completion/complete", params.clone()).await.result();
        assert_eq!(result["completion"]["values"], json!(["cherry", "apricot", "banana"]));
    }
}

#[tokio::test]
async fn a_hundred_values_at_most_and_how_many_there_are() {
    let params = json!({"ref": prompt("decorated"), "argument": {"name": "many", "value": ""}});
    let result = Client::of(Revision::V2024_11_05).send_request("completion/complete", params).await.result();
    let completion = &result["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(250), &json!(true)));
}

#[tokio::test]
async fn unknown_references_are_wrong_params() {
    insta::assert_snapshot!(check(prompt("decorate"), "mood", "").await, @r#"
    error -32602: there is no prompt "decorate"
    Valid choices: decorated {"kind":"not_found"}
    "#);
    insta::assert_snapshot!(check(json!({"type": "ref/resource", "uri": "fruit://{x}"}), "x", "").await, @r#"error -32602: there is no resource template "fruit://{x}" {"kind":"not_found"}"#);
}
