//! Requests are counted, whatever they ask for, and each once; and lists are those of who asks.

use std::sync::Arc;

use serde_json::json;
use tidegate_core::{
    Access, AuthMethod, CallOrigin, Caller, Grants, LevelLimits, Limits, Principal, PrincipalRule, RateLimit,
    TransportKind,
};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn};

use crate::client::Client;
use tidegate_testkit::host::Host;

/// A host where each principal may ask so many times, and then no more for hours.
fn host(burst: u32) -> Host {
    let of_principal = LevelLimits { rate: RateLimit::per_second(0.000_1, burst), ..LevelLimits::default() };
    Host::with_entries(EventDispatcher::default(), |entries| {
        entries.limits(Limits { per_principal: of_principal, ..Limits::default() })
    })
}

/// Somebody with a key, who shares `grants` with others.
fn key(subject: &str, grants: &Arc<Grants>) -> Caller {
    let origin = CallOrigin { transport: TransportKind::StreamableHttp, peer: None };
    Caller::new(Arc::new(Principal::new(subject, AuthMethod::Key, grants.clone())), origin)
}

#[tokio::test]
async fn requests_count_once_and_are_rate_limited() {
    let grants = Arc::new(Grants::everything());
    let mut client = Client::for_host(&host(5), Revision::V2026_07_28);
    client.context.caller = key("ann", &grants);
    client.script(json!([["text", "a"]])).await.result();
    client.send_request("tools/list", json!({})).await.result();
    client.send_request("server/discover", json!({})).await.result();
    client.send_request("resources/list", json!({})).await.result();
    assert_eq!(client.send_request("no/such", json!({})).await.response.unwrap()["error"]["code"], -32_601);
    for method in ["tools/list", "server/discover", "resources/read", "no/such"] {
        let error =
            client.send_request(method, json!({"uri": "test://plain"})).await.response.unwrap()["error"].clone();
        assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-31_000), &json!("rate_limited")), "{method}");
        assert!(error["message"].as_str().unwrap().starts_with("too many requests from you; try again in"));
    }
    client.context.caller = key("bob", &grants);
    client.send_request("tools/list", json!({})).await.result();
}

#[tokio::test]
async fn a_handshake_and_a_ping_count_too() {
    let host = host(2);
    let request = async |caller: &Caller| {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let request = crate::client::request(&crate::client::message(1, "initialize", params));
        host.service.initialize(&request, caller, Arc::default()).await.err().map(|error| error.code)
    };
    let ann = key("ann", &Arc::default());
    assert_eq!([request(&ann).await, request(&ann).await, request(&ann).await], [None, None, Some(-31_000)]);
    let mut client = Client::for_host(&host, Revision::V2025_11_25);
    client.context.caller = ann;
    assert_eq!(client.send_request("ping", json!({})).await.response.unwrap()["error"]["code"], -31_000);
}

#[tokio::test]
async fn tool_list_cache_respects_principal_rules() {
    let handler = handler_fn(|_| async { Ok(Answer::content(Vec::new())) });
    let for_one = |subject: &'static str| {
        let only_for = PrincipalRule::new(move |principal| principal.subject == subject);
        let access = Access { principal_rule: Some(only_for), ..Access::default() };
        Tool::new(format!("of_{subject}"), "", handler.clone()).with_access(access)
    };
    let host = Host::from_entries(SnapshotBuilder::new().tool(for_one("ann")).tool(for_one("bob")));
    let grants = Arc::new(Grants::everything());
    let mut client = Client::for_host(&host, Revision::V2026_07_28);
    for _ in 0..2 {
        for subject in ["ann", "bob"] {
            client.context.caller = key(subject, &grants);
            let tools = client.send_request("tools/list", json!({})).await.result()["tools"].clone();
            let names: Vec<&str> =
                tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(names, [format!("of_{subject}")]);
        }
    }
}
