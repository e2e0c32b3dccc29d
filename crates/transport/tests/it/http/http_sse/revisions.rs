//! Handshakes, batches, changed lists, toolsets, modern requests between legacy ones.

use serde_json::{Value, json};
use tidegate_core::{AllowedNames, Toolset};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};

use super::{Server, Stream};
use tidegate_testkit::message_checker::{error_summary, text};

#[tokio::test]
async fn each_revision_gets_its_own_answers() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let mut stream = Stream::agreed(&server, revision).await;
        stream.call(json!(1), json!([["text", "hello"]])).await;
        assert_eq!(text(&stream.hear().await.unwrap()), "hello");
        stream.lives().await;
    }
    let mut modern = Stream::open(&server).await;
    modern.lives().await;
    drop(modern);
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn batches_are_answered_where_supported() {
    let server = Server::start().await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    let mut stream = Stream::agreed(&server, Revision::V2025_03_26).await;
    for id in ["1", "2"] {
        stream.ledger.open.insert(id.to_owned(), ("ping".to_owned(), Revision::V2025_03_26));
    }
    stream.say(batch).await;
    let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "result": {}});
    assert_eq!(stream.hear().await.unwrap(), json!([ping(1), ping(2)]));
    let mut first = Stream::agreed(&server, Revision::V2024_11_05).await;
    first.say(batch).await;
    assert_eq!(
        error_summary(&first.hear().await.unwrap()),
        "-32600 for id null: batches exist only in revision 2025-03-26"
    );
    first.lives().await;
}

#[tokio::test]
async fn notifies_sessions_of_changed_lists() {
    let server = Server::start().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    // More than the capacity of the message queue.
    for number in 0..40 {
        stream.ask(json!(number), "resources/subscribe", json!({"uri": format!("fruit://{number}")})).await;
    }
    server.host.service.registry().swap(tidegate_testkit::host::entries(&Default::default()).build());
    let mut methods = std::collections::BTreeMap::new();
    for _ in 0..43 {
        let method = stream.hear().await.unwrap()["method"].as_str().unwrap().to_owned();
        *methods.entry(method).or_insert(0) += 1;
    }
    insta::assert_debug_snapshot!(methods, @r#"
    {
        "notifications/prompts/list_changed": 1,
        "notifications/resources/list_changed": 1,
        "notifications/resources/updated": 40,
        "notifications/tools/list_changed": 1,
    }
    "#);
    stream.lives().await;
}

#[tokio::test]
async fn toolset_has_its_own_endpoint() {
    let server = Server::start().await;
    let tool = |name: &str| Tool::new(name, "", handler_fn(|_| async { Ok(Answer::content(Vec::new())) }));
    let named = Toolset { name: "some".to_owned(), entries: AllowedNames::matching(["a"]) };
    let entries = SnapshotBuilder::new().tool(tool("a")).tool(tool("b")).toolset(named);
    server.host.service.registry().swap(entries.build());
    let mut names = Vec::new();
    for path in ["/mcp/sse", "/mcp/some/sse"] {
        let mut stream = Stream::at(&server, path, &[]).await;
        let answer = stream.ask(json!(1), "tools/list", json!({})).await;
        let listed = answer["result"]["tools"].as_array().unwrap();
        names.push(listed.iter().map(|tool: &Value| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>());
    }
    assert_eq!(names, [vec!["a", "b"], vec!["a"]]);
}
