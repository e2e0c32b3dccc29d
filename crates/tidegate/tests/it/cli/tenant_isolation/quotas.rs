//! What one tenant takes is not taken from another.

use reqwest::StatusCode;
use serde_json::json;

use super::Node;
use super::tenant_client::TenantClient;
use crate::cli::results::ENDLESS_QUERY;

/// What stands behind it belongs to `limits`.
const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}]
tools: [{name: three, description: T, sql: SELECT id FROM orders ORDER BY id}]
roles: [{name: clerk, toolsets: ['*'], databases: [shop], claims: {groups: clerks}}]
limits: {usage_file: usage.json, ";

const THREE: &str = r#"[{"id":1},{"id":2},{"id":3}]"#;

fn node(limits: &str) -> Node {
    Node::start(&format!("{CONFIGURATION}{limits}}}\n"))
}

/// What a call of the tool `three` is answered with.
async fn three(caller: &TenantClient) -> String {
    let answer = caller.call("three", json!({})).await;
    let text = answer["content"][0]["text"].as_str().or(answer["message"].as_str());
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn daily_quota_is_per_tenant() {
    for level in ["tenant", "principal"] {
        let node = node(&format!("{level}: {{rows_per_day: 3}}"));
        let ann = node.client("ann", Some("north"));
        assert_eq!(three(&ann).await, THREE, "{level}");
        let over = three(&ann).await;
        assert!(over.contains("daily limit of 3 rows is used up"), "{level}: {over}");
        let colleague = three(&node.client("bob", Some("north"))).await;
        assert_eq!(colleague == THREE, level == "principal", "{level}: {colleague}");
        for tenant in [Some("south"), None] {
            assert_eq!(three(&node.client("ann", tenant)).await, THREE, "{level}: {tenant:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn daily_quota_survives_restart() {
    let node = node("tenant: {rows_per_day: 3}");
    assert_eq!(three(&node.client("ann", Some("north"))).await, THREE);
    let node = node.restart();
    let over = three(&node.client("bob", Some("north"))).await;
    assert!(over.starts_with("your tenant's daily limit of "), "{over}");
    assert_eq!(three(&node.client("ann", Some("south"))).await, THREE);
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limit_is_per_tenant() {
    let node = node("tenant: {requests_per_second: 0.001, burst: 2}");
    let [ann, bob, stranger] =
        [("ann", "north"), ("bob", "north"), ("ann", "south")].map(|(name, tenant)| node.client(name, Some(tenant)));
    for caller in [&ann, &bob] {
        assert_eq!(caller.status("tools/list").await, StatusCode::OK);
    }
    for caller in [&ann, &bob] {
        assert_eq!(caller.status("tools/list").await, StatusCode::TOO_MANY_REQUESTS);
    }
    for _ in 0..2 {
        assert_eq!(stranger.status("tools/list").await, StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn running_call_limit_is_per_tenant() {
    let node = node("tenant: {running_calls: 1, waiting_calls: 0}");
    let ann = node.client("ann", Some("north"));
    // It has begun, and nobody reads it to its end.
    let answer = ann.start_streaming(ENDLESS_QUERY).await;
    let refused = three(&node.client("bob", Some("north"))).await;
    assert!(refused.starts_with("more than 1 of your tenant's calls are open"), "{refused}");
    for _ in 0..2 {
        assert_eq!(three(&node.client("ann", Some("south"))).await, THREE);
    }
    drop(answer);
}
