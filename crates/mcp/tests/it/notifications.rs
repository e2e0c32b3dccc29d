//! Progress and log messages: only for those who asked, only before the response.

use serde_json::{Value, json};
use tidegate_mcp::{Revision, RpcAnswer};

use crate::client::{Client, ClientResult, request};

/// Calls `script` with `_meta`.
async fn call(client: &Client, steps: Value, meta: Value) -> ClientResult {
    client.send_request("tools/call", json!({"name": "script", "arguments": {"steps": steps}, "_meta": meta})).await
}

fn lines(client_result: &ClientResult) -> String {
    client_result
        .notifications
        .iter()
        .map(|notification| format!("{} {}\n", notification["method"], notification["params"]))
        .collect()
}

fn steps() -> Value {
    json!([
        ["progress", 1, 4, "begun"],
        ["log", "debug", {"n": 1}],
        ["progress", 2.5],
        ["log", "error", "trouble"],
        ["text", "rows"],
    ])
}

#[tokio::test]
async fn progress_has_the_token_of_its_request() {
    for client in Client::all_revisions() {
        let client_result = call(&client, steps(), json!({"progressToken": "p-1"})).await;
        assert_eq!(client_result.notifications.len(), 2, "{}", client.revision.name());
        if client.revision == Revision::V2024_11_05 {
            insta::assert_snapshot!(lines(&client_result), @r#"
            "notifications/progress" {"progressToken":"p-1","progress":1.0,"total":4.0}
            "notifications/progress" {"progressToken":"p-1","progress":2.5}
            "#);
        } else {
            insta::allow_duplicates! {
                insta::assert_snapshot!(lines(&client_result), @r#"
                "notifications/progress" {"progressToken":"p-1","progress":1.0,"total":4.0,"message":"begun"}
                "notifications/progress" {"progressToken":"p-1","progress":2.5}
                "#);
            }
        }
    }
}

#[tokio::test]
async fn unrequested_notifications_are_not_sent() {
    for client in Client::all_revisions() {
        assert_eq!(call(&client, steps(), json!({})).await.notifications, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn progress_only_rises() {
    let steps = json!([
        ["progress", 3],
        ["progress", 3],
        ["progress", 1],
        ["progress", -1],
        ["progress", 3.5],
        ["progress", 4, 2],
    ]);
    let client_result = call(&Client::modern(), steps, json!({"progressToken": 7})).await;
    let message: Vec<&Value> =
        client_result.notifications.iter().map(|notification| &notification["params"]["progress"]).collect();
    assert_eq!(message, [&json!(3.0), &json!(3.5), &json!(4.0)]);
}

#[tokio::test]
async fn no_notifications_after_response_begins() {
    let steps = json!([["progress", 1], ["text", "rows"], ["progress", 2], ["log", "error", 1], ["text", "more"]]);
    let meta = json!({"progressToken": 7, "io.modelcontextprotocol/logLevel": "debug"});
    let client_result = call(&Client::modern(), steps, meta).await;
    insta::assert_snapshot!(lines(&client_result), @r#""notifications/progress" {"progressToken":7,"progress":1.0}"#);
    assert_eq!(client_result.result()["content"][0]["text"], "rowsmore");
}

#[tokio::test]
async fn progress_token_is_returned_verbatim() {
    let client = Client::of(Revision::V2025_11_25);
    for token in ["0", "-7", "12345678901234567890123", r#""""#, r#""a\u00e4\"""#] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"script","arguments":{{"steps":[["progress",1]]}},"_meta":{{"progressToken":{token}}}}}}}"#
        );
        let Ok(tidegate_mcp::IncomingMessage::Request(request)) = tidegate_mcp::decode(text.as_bytes()) else {
            panic!("{token}")
        };
        let RpcAnswer::Stream(mut stream) = client.service.answer(request, &client.context).await else {
            panic!("{token}")
        };
        assert!(stream.may_notify());
        let Some(tidegate_mcp::ResponseFrame::Notification(message)) = stream.next().await else { panic!("{token}") };
        let message = String::from_utf8(message.to_vec()).unwrap();
        assert!(message.contains(&format!(r#""params":{{"progressToken":{token},"progress":1.0}}"#)), "{message}");
    }
}

#[tokio::test]
async fn a_legacy_client_sets_the_level_of_its_session() {
    for client in Client::all_revisions().filter(|client| client.revision.is_legacy()) {
        let received = async |level: &str| {
            assert_eq!(client.send_request("logging/setLevel", json!({"level": level})).await.result(), json!({}));
            lines(&call(&client, steps(), json!({})).await)
        };
        let rendered = [received("debug").await, received("error").await, received("critical").await].join("--\n");
        insta::allow_duplicates! {
            insta::assert_snapshot!(rendered, @r#"
            "notifications/message" {"level":"debug","logger":"script","data":{"n":1}}
            "notifications/message" {"level":"error","logger":"script","data":"trouble"}
            --
            "notifications/message" {"level":"error","logger":"script","data":"trouble"}
            --
            "#);
        }
    }
}

#[tokio::test]
async fn a_modern_client_asks_for_a_level_with_each_request() {
    let client = Client::modern();
    let client_result = call(&client, steps(), json!({"io.modelcontextprotocol/logLevel": "error"})).await;
    insta::assert_snapshot!(lines(&client_result), @r#""notifications/message" {"level":"error","logger":"script","data":"trouble"}"#);
    assert!(call(&client, steps(), json!({})).await.notifications.is_empty());
    // The level of a session, if there is one, is not a modern client's.
    let legacy = Client::of(Revision::V2025_11_25);
    legacy.send_request("logging/setLevel", json!({"level": "debug"})).await;
    let modern = Client { revision: Revision::V2026_07_28, ..legacy.clone() };
    assert!(call(&modern, steps(), json!({})).await.notifications.is_empty());
}

#[tokio::test]
async fn resources_and_prompts_send_progress() {
    let client = Client::modern();
    let meta = json!({"progressToken": "p"});
    let steps = json!([["progress", 1], ["text", "a"]]).to_string();
    let uri = tidegate_core::UriTemplate::parse("script://{steps}").unwrap().expand(&[&steps]);
    let read = client.send_request("resources/read", json!({"uri": uri, "_meta": meta})).await;
    assert_eq!(read.notifications.len(), 1);
    let got = client
        .send_request("prompts/get", json!({"name": "decorated", "arguments": {"steps": steps}, "_meta": meta}))
        .await;
    assert_eq!(got.notifications.len(), 1);
}

#[tokio::test]
async fn requesting_notifications_opens_stream_at_once() {
    let host = tidegate_testkit::host::Host::new();
    let client = Client::for_host(&host, Revision::V2026_07_28);
    let arguments = json!({"steps": [["wait"], ["progress", 1]]});
    let call = |meta: Value| {
        request(&client.message(1, "tools/call", json!({"name": "script", "arguments": arguments, "_meta": meta})))
    };
    let RpcAnswer::Stream(stream) = client.service.answer(call(json!({"progressToken": 1})), &client.context).await
    else {
        panic!("no stream")
    };
    assert!(stream.may_notify());
    drop(stream);
    let unasked = call(json!({}));
    host.release.cancel();
    let RpcAnswer::Whole(_) = client.service.answer(unasked, &client.context).await else { panic!("not whole") };
}
