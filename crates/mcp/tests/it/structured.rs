//! Data beside the text of a result, as far as the revision knows it.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use crate::client::Client;

/// The result of a tool that answers with `steps`, in each revision that differs from the one before.
async fn check(tool: &str, steps: Value) -> String {
    let mut message: Vec<(String, String)> = Vec::new();
    for client in Client::all_revisions() {
        let text = client.call(tool, steps.clone()).await.text();
        if message.last().is_none_or(|(_, last)| *last != text) {
            message.push((client.revision.name().to_owned(), text));
        }
    }
    message.into_iter().map(|(revision, text)| format!("{revision} {text}\n")).collect()
}

#[tokio::test]
async fn object_is_structured_since_2025_06_18() {
    insta::assert_snapshot!(check("decorated", json!([["structured", {"rows": 3}]])).await, @r#"
    2024-11-05 result {"content":[{"type":"text","text":"{\"rows\":3}"}],"isError":false}
    2025-06-18 result {"content":[{"type":"text","text":"{\"rows\":3}"}],"structuredContent":{"rows":3},"isError":false}
    "#);
}

#[tokio::test]
async fn other_values_are_structured_since_2026_07_28() {
    insta::assert_snapshot!(check("listing", json!([["structured", [1, 2]]])).await, @r#"
    2024-11-05 result {"content":[{"type":"text","text":"[1,2]"}],"isError":false}
    2026-07-28 result {"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2],"isError":false}
    "#);
    insta::assert_snapshot!(check("script", json!([["structured", null]])).await, @r#"
    2024-11-05 result {"content":[{"type":"text","text":"null"}],"isError":false}
    2026-07-28 result {"content":[{"type":"text","text":"null"}],"structuredContent":null,"isError":false}
    "#);
}

#[tokio::test]
async fn own_text_is_not_duplicated() {
    let steps = json!([["text", "three rows"], ["structured", {"rows": 3}]]);
    insta::assert_snapshot!(check("decorated", steps.clone()).await, @r#"
    2024-11-05 result {"content":[{"type":"text","text":"three rows"}],"isError":false}
    2025-06-18 result {"content":[{"type":"text","text":"three rows"}],"structuredContent":{"rows":3},"isError":false}
    "#);
    let steps = json!([["structured", {"rows": 3}], ["text", "three rows"]]);
    let result = Client::modern().call("decorated", steps).await.result();
    assert_eq!(result["content"], json!([{"type": "text", "text": "three rows"}]));
}

#[tokio::test]
async fn output_schema_violation_is_internal_error() {
    let result = Client::modern().call("decorated", json!([["structured", {"rows": "three"}]])).await.result();
    assert_eq!(result["isError"], true);
    assert!(result.get("structuredContent").is_none());
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("internal error"));
}

#[tokio::test]
async fn a_failure_after_the_data_keeps_it_and_says_so() {
    let steps = json!([["structured", {"rows": 3}], ["fail", "the rest is lost"]]);
    let result = Client::of(Revision::V2025_11_25).call("decorated", steps).await;
    insta::assert_snapshot!(result.text(), @r#"result {"content":[{"type":"text","text":"{\"rows\":3}"},{"type":"text","text":"the rest is lost"}],"structuredContent":{"rows":3},"isError":true}"#);
}
