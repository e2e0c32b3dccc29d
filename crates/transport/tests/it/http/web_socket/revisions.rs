//! Handshakes, batches, changed lists, modern requests between them, toolsets.

use serde_json::{Value, json};
use tidegate_core::{AllowedNames, Toolset};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};

use super::{Server, Socket};
use tidegate_testkit::message_checker::{error_summary, text};

#[tokio::test]
async fn legacy_and_modern_requests_share_a_connection() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let mut socket = Socket::agreed(&server, revision).await;
        socket.call(json!(1), json!([["text", "hello"]])).await;
        assert_eq!(text(&socket.hear().await.unwrap()), "hello");
        socket.lives().await;
        // A modern request may occur between legacy ones.
        socket.ledger.agreed = None;
        assert_eq!(socket.ask(json!(2), "tools/list", json!({})).await["result"]["resultType"], "complete");
        socket.close().await;
    }
    let mut modern = Socket::open(&server).await;
    assert!(modern.ask(json!(1), "server/discover", json!({})).await.get("result").is_some());
    modern.call(json!(2), json!([["text", "hello"]])).await;
    assert_eq!(text(&modern.hear().await.unwrap()), "hello");
    modern.close().await;
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn batches_are_answered_where_supported() {
    let server = Server::start().await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    let mut socket = Socket::agreed(&server, Revision::V2025_03_26).await;
    for id in ["1", "2"] {
        socket.ledger.open.insert(id.to_owned(), ("ping".to_owned(), Revision::V2025_03_26));
    }
    socket.say(batch).await;
    let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "result": {}});
    assert_eq!(socket.hear().await.unwrap(), json!([ping(1), ping(2)]));
    let mut other = Socket::agreed(&server, Revision::V2025_06_18).await;
    other.say(batch).await;
    assert_eq!(
        error_summary(&other.hear().await.unwrap()),
        "-32600 for id null: batches exist only in revision 2025-03-26"
    );
    other.lives().await;
}

#[tokio::test]
async fn notifies_sessions_of_changed_lists() {
    let server = Server::start().await;
    let mut legacy = Socket::agreed(&server, Revision::V2025_06_18).await;
    legacy.ask(json!(1), "resources/subscribe", json!({"uri": "test://plain"})).await;
    let mut modern = Socket::open(&server).await;
    modern.lives().await;
    server.host.service.registry().swap(tidegate_testkit::host::entries(&Default::default()).build());
    let mut methods = Vec::new();
    for _ in 0..4 {
        methods.push(legacy.hear().await.unwrap()["method"].as_str().unwrap().to_owned());
    }
    insta::assert_snapshot!(methods.join("\n"), @r"
    notifications/tools/list_changed
    notifications/resources/list_changed
    notifications/prompts/list_changed
    notifications/resources/updated
    ");
    legacy.lives().await;
    modern.lives().await;
}

#[tokio::test]
async fn toolset_has_its_own_endpoint() {
    let server = Server::start().await;
    let tool = |name: &str| Tool::new(name, "", handler_fn(|_| async { Ok(Answer::content(Vec::new())) }));
    let named = Toolset { name: "some".to_owned(), entries: AllowedNames::matching(["a"]) };
    let entries = SnapshotBuilder::new().tool(tool("a")).tool(tool("b")).toolset(named);
    server.host.service.registry().swap(entries.build());
    let mut names = Vec::new();
    for path in ["/mcp/ws", "/mcp/some/ws"] {
        let mut socket = Socket::at(&server, path, &[]).await;
        let answer = socket.ask(json!(1), "tools/list", json!({})).await;
        let listed = answer["result"]["tools"].as_array().unwrap();
        names.push(listed.iter().map(|tool: &Value| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>());
    }
    assert_eq!(names, [vec!["a", "b"], vec!["a"]]);
}
