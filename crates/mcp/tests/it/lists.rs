//! What the lists say of an entry in each revision, and how long they may be kept.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::{Access, Acl, MissingNode, MissingNodes};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, CacheHint, Resource, SnapshotBuilder, Tool, handler_fn};

use crate::client::Client;
use tidegate_testkit::host::Host;

/// The entries of a list by name, in one revision.
async fn check(revision: Revision, method: &str, key: &str, names: &[&str]) -> String {
    let result = Client::of(revision).send_request(method, json!({})).await.result();
    let entries = result[key].as_array().unwrap().iter();
    entries.filter(|entry| names.contains(&entry["name"].as_str().unwrap())).map(|entry| format!("{entry}\n")).collect()
}

#[tokio::test]
async fn tools_follow_revision() {
    let tools = async |revision| check(revision, "tools/list", "tools", &["decorated", "listing"]).await;
    insta::assert_snapshot!(tools(Revision::V2024_11_05).await, @r#"
    {"name":"decorated","description":"Does its steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false}}
    {"name":"listing","description":"Does its steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false}}
    "#);
    insta::assert_snapshot!(tools(Revision::V2025_03_26).await, @r#"
    {"name":"decorated","description":"Does its steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}
    {"name":"listing","description":"Does its steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false}}
    "#);
    insta::assert_snapshot!(tools(Revision::V2025_06_18).await, @r#"
    {"name":"decorated","title":"Decorated","description":"Does its steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false},"outputSchema":{"type":"object","properties":{"rows":{"type":"integer"}},"required":["rows"]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"_meta":{"dev.tidegate/test":1}}
    {"name":"listing","description":"Does its steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false}}
    "#);
    insta::assert_snapshot!(tools(Revision::V2025_11_25).await, @r#"
    {"name":"decorated","title":"Decorated","description":"Does its steps.","icons":[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"]}],"inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false},"outputSchema":{"type":"object","properties":{"rows":{"type":"integer"}},"required":["rows"]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"_meta":{"dev.tidegate/test":1}}
    {"name":"listing","description":"Does its steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false}}
    "#);
    insta::assert_snapshot!(tools(Revision::V2026_07_28).await, @r#"
    {"name":"decorated","title":"Decorated","description":"Does its steps.","icons":[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"]}],"inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false},"outputSchema":{"type":"object","properties":{"rows":{"type":"integer"}},"required":["rows"]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"_meta":{"dev.tidegate/test":1}}
    {"name":"listing","description":"Does its steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"array"}},"additionalProperties":false},"outputSchema":{"type":"array","items":{"type":"integer"}}}
    "#);
}

#[tokio::test]
async fn resources_follow_revision() {
    let resources = async |revision| check(revision, "resources/list", "resources", &["decorated", "apple"]).await;
    insta::assert_snapshot!(resources(Revision::V2024_11_05).await, @r#"
    {"uri":"fruit://apple","name":"apple"}
    {"uri":"test://decorated","name":"decorated","description":"With everything.","mimeType":"text/plain","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2026-07-28T00:00:00Z"},"size":12}
    "#);
    insta::assert_snapshot!(resources(Revision::V2025_06_18).await, @r#"
    {"uri":"fruit://apple","name":"apple"}
    {"uri":"test://decorated","name":"decorated","title":"Decorated","description":"With everything.","mimeType":"text/plain","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2026-07-28T00:00:00Z"},"size":12}
    "#);
    insta::assert_snapshot!(resources(Revision::V2026_07_28).await, @r#"
    {"uri":"fruit://apple","name":"apple"}
    {"uri":"test://decorated","name":"decorated","title":"Decorated","description":"With everything.","mimeType":"text/plain","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2026-07-28T00:00:00Z"},"icons":[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"]}],"size":12}
    "#);
    let templates =
        async |revision| check(revision, "resources/templates/list", "resourceTemplates", &["script", "fruit"]).await;
    insta::assert_snapshot!(templates(Revision::V2024_11_05).await, @r#"
    {"uriTemplate":"script://{steps}","name":"script","mimeType":"application/json"}
    {"uriTemplate":"fruit://{fruit}","name":"fruit"}
    "#);
    insta::assert_snapshot!(templates(Revision::V2026_07_28).await, @r#"
    {"uriTemplate":"script://{steps}","name":"script","mimeType":"application/json"}
    {"uriTemplate":"fruit://{fruit}","name":"fruit","title":"Fruit","icons":[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"]}]}
    "#);
}

#[tokio::test]
async fn prompts_follow_revision() {
    let prompts = async |revision| check(revision, "prompts/list", "prompts", &["decorated"]).await;
    insta::assert_snapshot!(prompts(Revision::V2025_03_26).await, @r#"{"name":"decorated","description":"Takes a step.","arguments":[{"name":"steps","description":"As JSON.","required":true},{"name":"mood","required":false}]}"#);
    insta::assert_snapshot!(prompts(Revision::V2025_06_18).await, @r#"{"name":"decorated","title":"Decorated","description":"Takes a step.","arguments":[{"name":"steps","title":"Steps","description":"As JSON.","required":true},{"name":"mood","required":false}]}"#);
    insta::assert_snapshot!(prompts(Revision::V2025_11_25).await, @r#"{"name":"decorated","title":"Decorated","description":"Takes a step.","icons":[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"]}],"arguments":[{"name":"steps","title":"Steps","description":"As JSON.","required":true},{"name":"mood","required":false}]}"#);
}

#[tokio::test]
async fn lists_keep_their_order() {
    let client = Client::modern();
    for (method, key, name) in
        [("tools/list", "tools", "name"), ("resources/list", "resources", "uri"), ("prompts/list", "prompts", "name")]
    {
        let names = async || {
            let result = client.send_request(method, json!({})).await.result();
            result[key].as_array().unwrap().iter().map(|entry| entry[name].clone()).collect::<Value>()
        };
        let first = names().await;
        for _ in 0..3 {
            assert_eq!(names().await, first, "{method}");
        }
    }
    let result = client.send_request("resources/list", json!({})).await.result();
    let uris: Vec<&str> = result["resources"].as_array().unwrap().iter().map(|r| r["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["fruit://apple", "fruit://banana", "test://decorated", "test://plain"]);
}

fn tool_named(name: &str) -> Tool {
    Tool::new(name, "", handler_fn(|_| async { Ok(Answer::content(Vec::new())) }))
}

#[tokio::test]
async fn modern_lists_carry_cache_hints() {
    let hint = async |entries: SnapshotBuilder| {
        let client = Client::for_host(&Host::from_entries(entries), Revision::V2026_07_28);
        let mut hints = Vec::new();
        for method in ["server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            let result = client.send_request(method, json!({})).await.result();
            hints.push(format!("{} {}", result["ttlMs"], result["cacheScope"].as_str().unwrap()));
        }
        hints.dedup();
        hints.join(", ")
    };
    let entries = || SnapshotBuilder::new().tool(tool_named("a"));
    assert_eq!(hint(entries()).await, "60000 public");
    let cache = CacheHint { time_to_live: Duration::from_secs(5), public: false };
    assert_eq!(hint(entries().cache_hint(cache)).await, "5000 private");
    let access = Access { names: vec!["read".to_owned()], ..Access::default() };
    assert_eq!(hint(entries().tool(tool_named("b").with_access(access))).await, "60000 private");
    let read = Client::modern().send_request("resources/read", json!({"uri": "test://plain"})).await.result();
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")));
}

#[tokio::test]
async fn a_tool_is_listed_with_what_is_known_of_its_answers() {
    let mut tool = tool_named("a").with_pagination();
    tool.cache = Some(CacheHint { time_to_live: Duration::from_secs(5), public: true });
    let client = Client::for_host(&Host::from_entries(SnapshotBuilder::new().tool(tool)), Revision::V2026_07_28);
    let listed = client.send_request("tools/list", json!({})).await.result();
    let expected =
        json!({"dev.tidegate/cache": {"ttlMs": 5_000, "public": true}, "dev.tidegate/supports_pagination": true});
    assert_eq!(listed["tools"][0]["_meta"], expected);
}

#[tokio::test]
async fn a_resource_without_the_rows_of_a_node_may_not_be_cached() {
    let hint = async |names: &'static [&'static str]| {
        let handler = handler_fn(move |call| async move {
            let node = |name: &&str| MissingNode { name: (*name).to_owned(), reason: "is away".to_owned(), rows: None };
            if !names.is_empty() {
                call.record_missing_nodes(&MissingNodes { nodes: names.iter().map(node).collect(), rows_total: None })?;
            }
            Ok(Answer::text("rows"))
        });
        let mut resource = Resource::new("test://rows", "rows", handler);
        resource.cache = Some(CacheHint { time_to_live: Duration::from_secs(5), public: true });
        let client =
            Client::for_host(&Host::from_entries(SnapshotBuilder::new().resource(resource)), Revision::V2026_07_28);
        let read = client.send_request("resources/read", json!({"uri": "test://rows"})).await.result();
        (
            read["ttlMs"].clone(),
            read["cacheScope"].clone(),
            read["_meta"]["dev.tidegate/missing_nodes"][0]["name"].clone(),
        )
    };
    assert_eq!(hint(&[]).await, (json!(5000), json!("public"), json!(null)));
    assert_eq!(hint(&["oslo"]).await, (json!(0), json!("private"), json!("oslo")));
}

#[tokio::test]
async fn lists_follow_snapshot_and_omit_hidden_tools() {
    let host = Host::from_entries(SnapshotBuilder::new().tool(tool_named("old")));
    let names = async |client: &Client| {
        let result = client.send_request("tools/list", json!({})).await.result();
        let tools = result["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let clients = Revision::ALL.map(|revision| Client::for_host(&host, revision));
    for client in &clients {
        assert_eq!(names(client).await, ["old"]);
    }
    let nowhere = Acl { transports: Some(Vec::new()), networks: None };
    let access = Access { acl: nowhere, ..Access::default() };
    let entries = SnapshotBuilder::new().tool(tool_named("new")).tool(tool_named("secret").with_access(access));
    host.service.registry().swap(entries.build());
    for client in &clients {
        assert_eq!(names(client).await, ["new"]);
        let client_result = client.send_request("tools/call", json!({"name": "secret"})).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(client_result.text(), @r#"error -32602: there is no tool "secret" {"kind":"not_found"}"#);
        }
    }
}
