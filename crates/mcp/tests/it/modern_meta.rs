//! `_meta` of a modern request, which says what a handshake said before.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use crate::client::{Client, ClientResult, message};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Asks for the list of prompts with exactly this `_meta`, in no session.
async fn list_with_meta(meta: Value) -> ClientResult {
    Client::modern().send(&message(1, "prompts/list", json!({"_meta": meta}))).await
}

async fn check(meta: Value) -> String {
    list_with_meta(meta).await.text()
}

#[tokio::test]
async fn version_and_capabilities_are_needed_and_nothing_else() {
    assert!(check(json!({VERSION: "2026-07-28", CAPABILITIES: {}})).await.starts_with("result "));
    let all = json!({
        VERSION: "2026-07-28",
        CAPABILITIES: {"sampling": {}, "extensions": {"x/y": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "me", "version": "1"},
        "x/unknown": [1],
    });
    assert!(check(all).await.starts_with("result "));
    insta::assert_snapshot!(check(json!({})).await, @r#"error -32602: params._meta lacks "io.modelcontextprotocol/protocolVersion" and "io.modelcontextprotocol/clientCapabilities"; a client of 2025-11-25 or older begins with initialize"#);
    insta::assert_snapshot!(check(json!({CAPABILITIES: {}})).await, @r#"error -32602: params._meta lacks "io.modelcontextprotocol/protocolVersion" and "io.modelcontextprotocol/clientCapabilities"; a client of 2025-11-25 or older begins with initialize"#);
    insta::assert_snapshot!(check(json!({VERSION: "2026-07-28"})).await, @r#"error -32602: params._meta lacks "io.modelcontextprotocol/clientCapabilities""#);
    insta::assert_snapshot!(check(json!({VERSION: null, CAPABILITIES: {}})).await, @r#"error -32602: params._meta lacks "io.modelcontextprotocol/protocolVersion" and "io.modelcontextprotocol/clientCapabilities"; a client of 2025-11-25 or older begins with initialize"#);
    insta::assert_snapshot!(check(json!({VERSION: "2026-07-28", CAPABILITIES: null})).await, @r#"error -32602: params._meta lacks "io.modelcontextprotocol/clientCapabilities""#);
}

#[tokio::test]
async fn an_unsupported_version_is_answered_with_those_that_are_supported() {
    insta::assert_snapshot!(check(json!({VERSION: "2099-01-01", CAPABILITIES: {}})).await, @r#"error -32022: Unsupported protocol version {"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2099-01-01"}"#);
    insta::assert_snapshot!(check(json!({VERSION: ""})).await, @r#"error -32022: Unsupported protocol version {"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":""}"#);
    let answer = check(json!({VERSION: "2025-11-25", CAPABILITIES: {}})).await;
    assert!(answer.starts_with("error -32022"), "a legacy revision begins with a handshake: {answer}");
}

#[tokio::test]
async fn every_supported_version_that_an_error_names_is_one_that_discovery_names() {
    let discovered =
        Client::modern().send_request("server/discover", json!({})).await.result()["supportedVersions"].take();
    let refused = list_with_meta(json!({VERSION: "2099-01-01", CAPABILITIES: {}})).await.response.unwrap();
    assert_eq!(refused["error"]["data"]["supported"], discovered);
    insta::assert_snapshot!(discovered, @r#"["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]"#);
}

#[tokio::test]
async fn discovery_returns_server_info_and_capabilities() {
    let response = Client::modern().send_request("server/discover", json!({})).await.response.unwrap();
    insta::assert_snapshot!(response, @r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"logging":{},"extensions":{"io.modelcontextprotocol/tasks":{}},"completions":{}},"instructions":"Say \"hello\" first.","ttlMs":60000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","title":"Test","version":"1.2.3"}}}}"#);
}

#[tokio::test]
async fn a_modern_request_in_a_legacy_session_is_answered_as_modern() {
    let legacy = Client::of(Revision::V2025_06_18);
    let modern = Client { revision: Revision::V2026_07_28, ..legacy.clone() };
    let result = modern.send_request("tools/list", json!({})).await.result();
    assert_eq!(result["resultType"], "complete");
    let result = legacy.send_request("tools/list", json!({})).await.result();
    assert!(result.get("resultType").is_none());
}

#[tokio::test]
async fn every_modern_result_carries_its_type_and_the_servers_identity() {
    let client = Client::modern();
    let identity = json!({"name": "test", "title": "Test", "version": "1.2.3"});
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "script"})),
        ("tools/call", json!({"name": "script", "arguments": {"colour": 1}})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "test://plain"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "plain"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "plain"}, "argument": {"name": "a", "value": ""}}),
        ),
    ] {
        let result = client.send_request(method, params).await.result();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"], identity, "{method}");
    }
}
