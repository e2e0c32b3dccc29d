//! What a tenant sees of the databases of another: nothing; and what each of its callers may have.

use serde_json::{Value, json};

use super::{Node, claims};

const CONFIGURATION: &str = r"
databases:
  - {name: open, files: shop}
  - {name: shop, files: shop, tenants: [north]}
  - {name: both, federated: [open, shop]}
tools:
  - {name: shop_orders, description: O, database: shop, sql: SELECT id FROM orders ORDER BY id}
resources:
  - {uri: 'reports://shop', name: shop_report, database: shop, sql: SELECT id FROM orders ORDER BY id}
roles:
  - {name: clerk, toolsets: ['*'], databases: ['*'], claims: {groups: clerks}}
  - {name: guest, toolsets: ['*'], claims: {groups: guests}, limits: {requests_per_second: 0.001, burst: 2}}
limits: {usage_file: usage.json, principal: {rows_per_day: 4}}
auth:
  tokens:
    issuer: https://login.example.com
    audience: tidegate
    algorithms: [RS256]
    tenant_claim: tenant
";

async fn call_text(node: &Node, token: &str, name: &str, arguments: Value) -> String {
    let (_, _, answer) = node.request(token, "tools/call", json!({"name": name, "arguments": arguments})).await;
    let text = answer["result"]["content"][0]["text"].as_str();
    text.or(answer["error"]["message"].as_str()).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_databases_are_hidden_from_others() {
    let node = Node::with_signer(CONFIGURATION, "jwks: keys.jwks");
    let token = |tenant: Value| node.issuer.token(&claims(json!({"groups": "clerks", "tenant": tenant})));
    let north = token(json!("north"));
    assert!(node.tools(&north).await.contains(&"shop_orders".to_owned()));
    assert_eq!(call_text(&node, &north, "shop_orders", json!({})).await, r#"[{"id":1},{"id":2},{"id":3}]"#);
    for stranger in [token(json!("south")), token(Value::Null)] {
        assert!(!node.tools(&stranger).await.contains(&"shop_orders".to_owned()));
        let absent = call_text(&node, &stranger, "shop_orders", json!({})).await;
        assert_eq!(absent, "there is no tool \"shop_orders\"");
        for name in ["shop", "both"] {
            let sql = json!({"database": name, "sql": "SELECT 1 AS one"});
            assert_eq!(call_text(&node, &stranger, "sql", sql).await, format!("there is no database {name:?}"));
            let (_, _, answer) =
                node.request(&stranger, "resources/read", json!({"uri": format!("tidegate://databases/{name}")})).await;
            assert!(answer.get("error").is_some(), "{answer}");
        }
        let (_, _, answer) = node.request(&stranger, "resources/list", json!({})).await;
        assert!(!answer.to_string().contains("shop_report") && !answer.to_string().contains("both"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn role_rates_and_daily_quotas_apply() {
    let node = Node::with_signer(CONFIGURATION, "jwks: keys.jwks");
    let guest = node.issuer.token(&claims(json!({"groups": "guests"})));
    for _ in 0..2 {
        node.tools(&guest).await;
    }
    let (_, _, answer) = node.request(&guest, "tools/list", json!({})).await;
    assert_eq!(answer["error"]["data"]["kind"], "rate_limited", "{answer}");
    let clerk = node.issuer.token(&claims(json!({"groups": "clerks", "tenant": "north", "sub": "bob"})));
    assert_eq!(call_text(&node, &clerk, "shop_orders", json!({})).await, r#"[{"id":1},{"id":2},{"id":3}]"#);
    let over = call_text(&node, &clerk, "sql", json!({"database": "open", "sql": "SELECT id FROM orders"})).await;
    assert!(!over.contains("\"id\":3"), "{over}");
    let refused = call_text(&node, &clerk, "shop_orders", json!({})).await;
    assert!(refused.starts_with("your daily limit of 4 rows is used up"), "{refused}");
}
