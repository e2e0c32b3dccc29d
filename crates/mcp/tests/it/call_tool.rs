//! `tools/call`: a result that is written while the tool answers.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_core::{MissingNode, MissingNodes};
use tidegate_mcp::{ResponseFrame, Revision, RpcAnswer};
use tidegate_runtime::{AdapterDetail, Answer, AnswerMeta, SnapshotBuilder, Tool, WriteSummary, handler_fn};

use crate::client::{Client, bytes, request};
use tidegate_testkit::host::Host;

/// The content of the result in the newest revision, one block a line, and whether it is an error.
async fn check(steps: Value) -> String {
    blocks(&Client::modern().script(steps).await.result())
}

fn blocks(result: &Value) -> String {
    let blocks: Vec<String> = result["content"].as_array().unwrap().iter().map(Value::to_string).collect();
    format!("{}\nisError: {}", blocks.join("\n"), result["isError"])
}

#[tokio::test]
async fn text_chunks_are_one_block_until_something_ends_it() {
    let steps = json!([
        ["text", "["],
        ["text", "1"],
        ["text", "]"],
        ["block", "between"],
        ["text", "again"],
        ["end"],
        ["end"],
        ["text", ""],
        ["text", "third"],
        ["image", "image/png"],
        ["link", "test://plain"],
    ]);
    insta::assert_snapshot!(check(steps).await, @r#"
    {"type":"text","text":"[1]"}
    {"type":"text","text":"between"}
    {"type":"text","text":"again"}
    {"type":"text","text":"third"}
    {"type":"image","data":"AAH/","mimeType":"image/png"}
    {"type":"resource_link","uri":"test://plain","name":"link","title":"Link","mimeType":"text/plain","size":3}
    isError: false
    "#);
}

#[tokio::test]
async fn any_character_is_escaped_wherever_the_chunks_are_cut() {
    let text = "\u{0}\u{1f}\u{7f}\"\\\"\n\r\t\u{8}\u{c}/\u{2028}\u{2029}ä€😀\u{10ffff}\u{feff}\"}],\"isError\":true";
    let single: Vec<Value> = text.chars().map(|character| json!(["text", character.to_string()])).collect();
    let halves = [json!(["text", &text[..3]]), json!(["text", &text[3..]])];
    for steps in [json!([["text", text]]), json!(single), json!(halves)] {
        for client in Client::all_revisions() {
            let result = client.script(steps.clone()).await.result();
            assert_eq!(result["content"], json!([{"type": "text", "text": text}]));
            assert_eq!(result["isError"], false);
        }
    }
}

#[tokio::test]
async fn a_thousand_chunks_are_written_one_by_one() {
    let steps: Vec<Value> = (0..1_000).map(|number| json!(["text", format!("{number},")])).collect();
    let client_result = Client::modern().script(json!(steps)).await;
    assert_eq!(client_result.pieces, 1_001);
    let expected: String = (0..1_000).map(|number| format!("{number},")).collect();
    assert_eq!(client_result.result()["content"][0]["text"], expected);
}

#[tokio::test]
async fn each_sort_of_content_is_what_the_revision_knows() {
    let steps = json!([
        ["text", "text"],
        ["image", "image/png"],
        ["audio", "audio/wav"],
        ["link", "test://plain"],
        ["resource", "test://inside"],
        ["blob", "test://blob"],
        ["say", "a message"],
    ]);
    let rendered = async |revision| blocks(&Client::of(revision).script(steps.clone()).await.result());
    insta::assert_snapshot!(rendered(Revision::V2024_11_05).await, @r#"
    {"type":"text","text":"text"}
    {"type":"image","data":"AAH/","mimeType":"image/png"}
    {"type":"text","text":"[3 bytes of audio/wav]"}
    {"type":"text","text":"link: test://plain"}
    {"type":"resource","resource":{"uri":"test://inside","mimeType":"text/plain","text":"inside"}}
    {"type":"resource","resource":{"uri":"test://blob","mimeType":"text/plain","blob":"AAH/"}}
    {"type":"text","text":"a message"}
    isError: false
    "#);
    insta::assert_snapshot!(rendered(Revision::V2025_03_26).await, @r#"
    {"type":"text","text":"text"}
    {"type":"image","data":"AAH/","mimeType":"image/png"}
    {"type":"audio","data":"AAH/","mimeType":"audio/wav"}
    {"type":"text","text":"link: test://plain"}
    {"type":"resource","resource":{"uri":"test://inside","mimeType":"text/plain","text":"inside"}}
    {"type":"resource","resource":{"uri":"test://blob","mimeType":"text/plain","blob":"AAH/"}}
    {"type":"text","text":"a message"}
    isError: false
    "#);
    insta::assert_snapshot!(rendered(Revision::V2025_06_18).await, @r#"
    {"type":"text","text":"text"}
    {"type":"image","data":"AAH/","mimeType":"image/png"}
    {"type":"audio","data":"AAH/","mimeType":"audio/wav"}
    {"type":"resource_link","uri":"test://plain","name":"link","title":"Link","mimeType":"text/plain","size":3}
    {"type":"resource","resource":{"uri":"test://inside","mimeType":"text/plain","text":"inside"}}
    {"type":"resource","resource":{"uri":"test://blob","mimeType":"text/plain","blob":"AAH/"}}
    {"type":"text","text":"a message"}
    isError: false
    "#);
    assert_eq!(rendered(Revision::V2025_06_18).await, rendered(Revision::V2026_07_28).await);
}

#[tokio::test]
async fn silent_tool_has_empty_content() {
    for client in Client::all_revisions() {
        assert_eq!(client.script(json!([])).await.result()["content"], json!([]));
    }
}

#[tokio::test]
async fn a_failure_is_a_result_that_the_model_can_read() {
    insta::assert_snapshot!(check(json!([["fail", "the database is gone"]])).await, @r#"
    {"type":"text","text":"the database is gone"}
    isError: true
    "#);
    insta::assert_snapshot!(check(json!([["fail", "no such table", "not_found"]])).await, @r#"
    {"type":"text","text":"no such table"}
    isError: true
    "#);
    insta::assert_snapshot!(check(json!([["text", "[1,2"], ["text", ",3]"], ["fail", "the rest is lost"]])).await, @r#"
    {"type":"text","text":"[1,2,3]"}
    {"type":"text","text":"the rest is lost"}
    isError: true
    "#);
    insta::assert_snapshot!(check(json!([["block", "rows"], ["fail", "the rest is lost"]])).await, @r#"
    {"type":"text","text":"rows"}
    {"type":"text","text":"the rest is lost"}
    isError: true
    "#);
    let panicked = check(json!([["text", "rows"], ["panic"]])).await;
    assert!(panicked.contains("internal error; the server's log has the detail under id "), "{panicked}");
    assert!(!panicked.contains("as requested"), "{panicked}");
}

#[tokio::test]
async fn wrong_arguments_are_tool_errors_and_unknown_tools_protocol_errors() {
    for client in Client::all_revisions() {
        let result =
            client.send_request("tools/call", json!({"name": "script", "arguments": {"steps": 7}})).await.result();
        insta::allow_duplicates! {
            insta::assert_snapshot!(blocks(&result), @r#"
            {"type":"text","text":"the arguments of tool \"script\" are wrong:\n- steps: 7 is not of type \"array\""}
            isError: true
            "#);
        }
        let text = client.send_request("tools/call", json!({"name": "scripts"})).await.text();
        insta::allow_duplicates! {
            insta::assert_snapshot!(text, @r#"
            error -32602: there is no tool "scripts"
            Valid choices: script {"kind":"not_found"}
            "#);
        }
    }
}

#[tokio::test]
async fn metadata_comes_last_with_server_info() {
    let steps = json!([["text", "rows"], ["rows", 3], ["meta", {"a\"b": null}]]);
    let modern = Client::modern().script(steps.clone()).await.response.unwrap();
    insta::assert_snapshot!(modern, @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"rows"}],"isError":false,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","title":"Test","version":"1.2.3"},"a\"b":null,"dev.tidegate/rows":3}}}"#);
    let legacy = Client::of(Revision::V2025_11_25).script(steps).await.response.unwrap();
    insta::assert_snapshot!(legacy, @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"rows"}],"isError":false,"_meta":{"a\"b":null,"dev.tidegate/rows":3}}}"#);
}

#[tokio::test]
async fn each_member_of_the_metadata_has_its_name() {
    let handler = handler_fn(|call| async move {
        let node = MissingNode { name: "oslo".to_owned(), reason: "is away".to_owned(), rows: Some(1) };
        call.record_missing_nodes(&MissingNodes { nodes: vec![node], rows_total: Some(4) })?;
        let write = WriteSummary { rejected: 3, sequence: 7, is_created: false, repeated_rows: Some(2) };
        let meta = AnswerMeta {
            was_buffered: Some(true),
            rows: Some(2),
            bytes: Some(20),
            elapsed: Some(Duration::from_micros(1_500_900)),
            is_truncated: Some(true),
            cursor: Some("next".to_owned()),
            is_cached: true,
            result_uri: Some("tidegate://results/1".to_owned()),
            missing_nodes: None,
            write: Some(Box::new(write)),
            adapter: Some(Box::new(AdapterDetail::Table { bytes: Some(9), indexed_columns: Vec::new() })),
            other: Map::from_iter([("example.com/note".to_owned(), json!("own"))]),
        };
        Ok(Answer::content(Vec::new()).with_meta(meta))
    });
    let host = Host::from_entries(SnapshotBuilder::new().tool(Tool::new("everything", "", handler)));
    let client = Client::for_host(&host, Revision::V2025_11_25);
    let result = client.send_request("tools/call", json!({"name": "everything"})).await.result();
    insta::assert_snapshot!(serde_json::to_string_pretty(&result["_meta"]).unwrap(), @r#"
    {
      "example.com/note": "own",
      "dev.tidegate/mode": "batch",
      "dev.tidegate/rows": 2,
      "dev.tidegate/bytes": 20,
      "dev.tidegate/elapsed_ms": 1500,
      "dev.tidegate/truncated": true,
      "dev.tidegate/cursor": "next",
      "dev.tidegate/cached": true,
      "dev.tidegate/result": "tidegate://results/1",
      "dev.tidegate/rejected": 3,
      "dev.tidegate/sequence": 7,
      "dev.tidegate/created": false,
      "dev.tidegate/repeated_rows": 2,
      "dev.tidegate/partial": true,
      "dev.tidegate/missing_nodes": [
        {
          "name": "oslo",
          "reason": "is away",
          "rows": 1
        }
      ],
      "dev.tidegate/missing_rows_share": 0.25
    }
    "#);
}

#[tokio::test]
async fn an_id_returns_exactly_as_it_came() {
    let client = Client::of(Revision::V2025_11_25);
    for id in ["7", "-7", "7.0", "1e3", "12345678901234567890123", r#""""#, r#""a\u00e4\"""#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"script"}}}}"#);
        let Ok(tidegate_mcp::IncomingMessage::Request(request)) = tidegate_mcp::decode(text.as_bytes()) else {
            panic!("{id}")
        };
        let answer = bytes(client.service.answer(request, &client.context).await).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#)), "{answer}");
    }
}

#[tokio::test]
async fn streams_first_bytes_before_tool_ends() {
    let host = Host::new();
    let client = Client::for_host(&host, Revision::V2026_07_28);
    let steps = json!([["text", "first"], ["wait"], ["text", "second"]]);
    let message = client.message(1, "tools/call", json!({"name": "script", "arguments": {"steps": steps}}));
    let RpcAnswer::Stream(mut stream) = client.service.answer(request(&message), &client.context).await else {
        panic!()
    };
    let Some(ResponseFrame::ResponseBytes(first)) = stream.next().await else { panic!() };
    assert!(first.ends_with(b"\"text\":\"first"), "{first:?}");
    assert!(!stream.is_complete());
    host.release.cancel();
    let Some(ResponseFrame::ResponseBytes(second)) = stream.next().await else { panic!() };
    assert_eq!(second, "second");
    while stream.next().await.is_some() {}
    assert!(stream.is_complete());
}
