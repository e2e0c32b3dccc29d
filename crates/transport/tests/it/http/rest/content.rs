//! Answers that are not tables.

use serde_json::{Value, json};

use super::fixture::{problem, request, script, start, summary};

#[tokio::test]
async fn content_is_json_or_text() {
    let server = start().await;
    let mut connection = server.connect().await;
    let steps = json!([
        ["text", "one \"quoted\"\n"], ["text", "line"], ["end"], ["block", "two"], ["image", "image/png"],
        ["link", "test://x"], ["resource", "test://y"], ["blob", "test://z"], ["structured", {"rows": 3}],
        ["truncated", true],
    ]);
    let answer = connection.ask(&script(steps.clone(), &[])).await;
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap(), @r#"
    {
      "content": [
        {
          "type": "text",
          "text": "one \"quoted\"\nline"
        },
        {
          "type": "text",
          "text": "two"
        },
        {
          "type": "image",
          "data": "AAH/",
          "mimeType": "image/png"
        },
        {
          "type": "resource_link",
          "uri": "test://x",
          "name": "link",
          "title": "Link",
          "mimeType": "text/plain",
          "size": 3
        },
        {
          "type": "resource",
          "resource": {
            "uri": "test://y",
            "mimeType": "text/plain",
            "text": "inside"
          }
        },
        {
          "type": "resource",
          "resource": {
            "uri": "test://z",
            "mimeType": "text/plain",
            "blob": "AAH/"
          }
        }
      ],
      "structured": {
        "rows": 3
      },
      "truncated": true
    }
    "#);
    let text = connection.ask(&script(steps, &[("Accept", "text/plain")])).await;
    insta::assert_snapshot!(summary(&text), @r#"
    200 text/plain; charset=utf-8 one "quoted"
    line
    two
    [3 bytes of image/png]
    link: test://x
    inside
    [3 bytes of test://z]
    "#);
    let nothing = connection.ask(&script(json!([]), &[])).await;
    assert_eq!(summary(&nothing), r#"200 application/json {"content":[]}"#);
    let data = connection.ask(&script(json!([["structured", [1, 2]]]), &[])).await;
    assert_eq!(data.text(), r#"{"content":[],"structured":[1,2]}"#);
}

#[tokio::test]
async fn serves_files_raw_when_accepted() {
    let server = start().await;
    let mut connection = server.connect().await;
    let image = json!([["image", "image/png"]]);
    for accept in ["image/png", "image/*", "image/png, application/json;q=0.1"] {
        let answer = connection.ask(&script(image.clone(), &[("Accept", accept)])).await;
        assert_eq!((answer.header("content-type"), answer.body.as_slice()), (Some("image/png"), &b"\x00\x01\xff"[..]));
    }
    let json = connection.ask(&script(image.clone(), &[("Accept", "*/*")])).await;
    assert_eq!(json.header("content-type"), Some("application/json"));
    let mut table = String::new();
    for (steps, accept) in [
        (image.clone(), "audio/*"),
        (json!([["image", "image/png"], ["text", "and more"]]), "image/png"),
        (json!([["text", "no table"]]), "text/csv"),
        (json!([["body"], ["bytes", "a table"]]), "image/png"),
        (json!([["image", "image/png"], ["fail", "no more"]]), "image/png"),
    ] {
        table.push_str(&problem(&connection.ask(&script(steps, &[("Accept", accept)])).await));
        table.push('\n');
    }
    insta::assert_snapshot!(table, @r#"
    406 not_acceptable: the answer is not a table; available types: application/json, text/plain
    406 not_acceptable: the answer has several parts; available types: application/json
    406 not_acceptable: the answer is not a table; available types: application/json, text/plain
    406 not_acceptable: the answer is a table; available types: application/json, application/x-ndjson, text/csv, application/vnd.apache.arrow.stream, application/vnd.apache.parquet, text/plain, text/markdown
    503 unavailable: no more
    "#);
    server.until_open_calls(0).await;
}

#[tokio::test]
async fn falls_back_to_an_accepted_text_format() {
    let server = start().await;
    let headers = [("Accept", "text/csv, application/json;q=0.5"), ("Content-Type", "application/json")];
    let body = json!({"steps": [["text", "no table"]]}).to_string();
    let answer = server.rest(&request("POST", "/rest/tools/script/call", &headers, &body)).await;
    assert_eq!(answer.text(), r#"{"content":[{"type":"text","text":"no table"}]}"#);
}
