//! Requests are counted, whatever they ask for, and each once; and lists are those of who asks.

use std::sync::Arc;

use serde_json::json;
use tidegate_core::event::Events;
use tidegate_core::{
    Access, Allowance, Caller, Grants, Limits, Metadata, OnlyFor, Origin, Principal, Proof, Rate, SnapshotBuilder,
    Tool, TransportKind, handler_fn,
};
use tidegate_mcp::Revision;

use crate::client::Client;
use crate::host::Host;

/// A host where each principal may ask so many times, and then no more for hours.
fn host(burst: u32) -> Host {
    let of_principal = Allowance { rate: Rate::per_second(0.000_1, burst), ..Allowance::default() };
    Host::with(Events::default(), |entries| entries.limits(Limits { of_principal, ..Limits::default() }))
}

/// Somebody with a key, who shares `grants` with others.
fn key(subject: &str, grants: &Arc<Grants>) -> Caller {
    let origin = Origin { transport: TransportKind::StreamableHttp, peer: None };
    Caller::new(Arc::new(Principal::new(subject, Proof::Key, grants.clone())), origin)
}

#[tokio::test]
async fn each_request_counts_once_and_is_refused_when_there_were_too_many() {
    let grants = Arc::new(Grants::everything());
    let mut client = Client::on(&host(5), Revision::V2026_07_28);
    client.peer.caller = key("ann", &grants);
    client.script(json!([["text", "a"]])).await.result();
    client.ask("tools/list", json!({})).await.result();
    client.ask("server/discover", json!({})).await.result();
    client.ask("resources/list", json!({})).await.result();
    assert_eq!(client.ask("no/such", json!({})).await.response.unwrap()["error"]["code"], -32_601);
    for method in ["tools/list", "server/discover", "resources/read", "no/such"] {
        let error = client.ask(method, json!({"uri": "test://plain"})).await.response.unwrap()["error"].clone();
        assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-31_000), &json!("rate_limited")), "{method}");
        assert!(error["message"].as_str().unwrap().starts_with("too many requests of yours; try again in"));
    }
    client.peer.caller = key("bob", &grants);
    client.ask("tools/list", json!({})).await.result();
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
    let mut client = Client::on(&host, Revision::V2025_11_25);
    client.peer.caller = ann;
    assert_eq!(client.ask("ping", json!({})).await.response.unwrap()["error"]["code"], -31_000);
}

#[tokio::test]
async fn principals_of_the_same_roles_see_what_is_for_them_alone() {
    let handler = handler_fn(|_, _| async { Ok(Metadata::new()) });
    let for_one = |subject: &'static str| {
        let only_for = OnlyFor::new(move |principal| principal.subject == subject);
        let access = Access { only_for: Some(only_for), ..Access::default() };
        Tool::new(format!("of_{subject}"), "", handler.clone()).with_access(access)
    };
    let host = Host::of(SnapshotBuilder::new().tool(for_one("ann")).tool(for_one("bob")));
    let grants = Arc::new(Grants::everything());
    let mut client = Client::on(&host, Revision::V2026_07_28);
    for _ in 0..2 {
        for subject in ["ann", "bob"] {
            client.peer.caller = key(subject, &grants);
            let tools = client.ask("tools/list", json!({})).await.result()["tools"].clone();
            let names: Vec<&str> =
                tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(names, [format!("of_{subject}")]);
        }
    }
}
