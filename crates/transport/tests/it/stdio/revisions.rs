//! Handshakes, batches, changed lists, and modern requests between them.

use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tidegate_runtime::SnapshotBuilder;

use super::{Pipe, settle};
use tidegate_testkit::host::Host;
use tidegate_testkit::message_checker::text;

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["method"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_handshake_opens_a_session_and_a_second_one_another() {
    let host = Host::new();
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let mut pipe = Pipe::agreed(&host, revision).await;
        pipe.call(json!(1), json!([["text", "hello"]])).await;
        assert_eq!(text(&pipe.hear().await.unwrap()), "hello");
        pipe.lives().await;
    }
    let mut pipe = Pipe::agreed(&host, Revision::V2025_11_25).await;
    pipe.ledger.agreed = Some(Revision::V2024_11_05);
    let answer = pipe.ask(json!(2), "initialize", json!({"protocolVersion": "2024-11-05"})).await;
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
}

#[tokio::test]
async fn modern_requests_carry_their_revision() {
    let host = Host::new();
    let mut pipe = Pipe::open(&host);
    assert!(pipe.ask(json!(1), "server/discover", json!({})).await.get("result").is_some());
    pipe.ledger.open.insert("2".to_owned(), ("tools/list".to_owned(), Revision::V2026_07_28));
    pipe.line(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    insta::assert_snapshot!(pipe.hear().await.unwrap(), @r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"params._meta lacks \"io.modelcontextprotocol/protocolVersion\" and \"io.modelcontextprotocol/clientCapabilities\"; a client of 2025-11-25 or older begins with initialize"}}"#);
    // A modern request may occur between legacy ones.
    let mut pipe = Pipe::agreed(&host, Revision::V2025_03_26).await;
    pipe.ledger.agreed = None;
    assert_eq!(pipe.ask(json!(1), "tools/list", json!({})).await["result"]["resultType"], "complete");
    pipe.ledger.agreed = Some(Revision::V2025_03_26);
    assert!(pipe.ask(json!(2), "tools/list", json!({})).await["result"].get("resultType").is_none());
}

#[tokio::test]
async fn a_modern_initialize_is_an_unknown_method() {
    let mut pipe = Pipe::open(&Host::new());
    let answer = pipe.ask(json!(1), "initialize", json!({"protocolVersion": "2025-11-25"})).await;
    assert_eq!(answer["error"]["code"], -32_601);
    pipe.lives().await;
}

#[tokio::test]
async fn a_batch_is_answered_as_one() {
    let mut pipe = Pipe::agreed(&Host::new(), Revision::V2025_03_26).await;
    for id in ["1", "2"] {
        pipe.ledger.open.insert(id.to_owned(), ("ping".to_owned(), Revision::V2025_03_26));
    }
    pipe.line(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#)
        .await;
    insta::assert_snapshot!(pipe.hear().await.unwrap(), @r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#);
    pipe.line(br#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#).await;
    pipe.lives().await;
}

#[tokio::test(start_paused = true)]
async fn notifies_sessions_of_changed_lists() {
    let host = Host::new();
    let mut legacy = Pipe::agreed(&host, Revision::V2025_06_18).await;
    legacy.ask(json!(1), "resources/subscribe", json!({"uri": "test://plain"})).await;
    let mut modern = Pipe::open(&host);
    modern.lives().await;
    host.service.registry().swap(tidegate_testkit::host::entries(&Default::default()).build());
    let mut message = Vec::new();
    for _ in 0..4 {
        message.push(legacy.hear().await.unwrap());
    }
    insta::assert_snapshot!(methods(&message).join("\n"), @r"
    notifications/tools/list_changed
    notifications/resources/list_changed
    notifications/prompts/list_changed
    notifications/resources/updated
    ");
    assert_eq!(message[3]["params"], json!({"uri": "test://plain"}));
    settle().await;
    assert_eq!(legacy.close().await, Vec::<Value>::new(), "each change is notified once");
    assert_eq!(modern.close().await, Vec::<Value>::new(), "there is no subscription");
}

#[tokio::test(start_paused = true)]
async fn no_notification_before_the_handshake() {
    let host = Host::new();
    let pipe = Pipe::open(&host);
    settle().await;
    host.service.registry().swap(SnapshotBuilder::new().build());
    settle().await;
    assert_eq!(pipe.close().await, Vec::<Value>::new());
}
