//! Attributes of the caller as parameters of a declared statement. No caller can choose them.

use serde_json::{Value, json};

use super::{Node, claims};

const CONFIGURATION: &str = r#"
databases:
  - {name: shop, files: shop}
  - {name: app, sqlite: app.db}
built_in: []
tools:
  - name: own_orders
    description: O
    database: shop
    sql: SELECT id FROM orders WHERE customer = :caller.claims.profile.customer ORDER BY id
  - name: group_orders
    description: O
    database: shop
    sql: SELECT id FROM orders WHERE customer = ANY(:caller.claims.customers) AND id > :least ORDER BY id
    input: {least: {type: integer, default: 0}}
  - name: who
    description: W
    database: shop
    sql: SELECT :caller.subject AS subject, :caller.tenant AS tenant, :caller.claims."odd name"::bigint AS odd
  - name: notes
    description: N
    database: app
    sql: SELECT text FROM notes WHERE owner = :caller.subject AND number IN (:caller.claims.numbers)
resources:
  - {uri: 'shop://own', name: own, database: shop, sql: 'SELECT :caller.subject AS subject', format: csv}
roles:
  - {name: clerk, toolsets: ['*'], claims: {groups: clerks}}
auth:
  tokens:
    issuer: https://login.example.com
    audience: tidegate
    algorithms: [RS256]
    tenant_claim: tenant
"#;

async fn call(node: &Node, changes: Value, name: &str, arguments: Value) -> String {
    let mut changes = changes;
    changes["groups"] = json!("clerks");
    let token = node.issuer.token(&claims(changes));
    let (_, _, answer) = node.request(&token, "tools/call", json!({"name": name, "arguments": arguments})).await;
    let text = answer["result"]["content"][0]["text"].as_str().or(answer["error"]["message"].as_str());
    text.map_or_else(|| answer.to_string(), str::to_owned)
}

fn start() -> Node {
    Node::with_signer_and_files(CONFIGURATION, "jwks: keys.jwks", |folder| {
        let notes = "CREATE TABLE notes (owner TEXT, number INTEGER, text TEXT);
                     INSERT INTO notes VALUES ('ada', 1, 'one'), ('ada', 2, 'two'), ('bob', 1, 'hidden')";
        rusqlite::Connection::open(folder.join("app.db")).unwrap().execute_batch(notes).unwrap();
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_those_of_the_token() {
    let node = start();
    let own =
        async |customer: &str| call(&node, json!({"profile": {"customer": customer}}), "own_orders", json!({})).await;
    assert_eq!(own("Ann").await, r#"[{"id":1},{"id":3}]"#);
    assert_eq!(own("Bob").await, r#"[{"id":2}]"#);
    assert_eq!(own("x' OR '1'='1").await, "[]");
    let groups = json!({"customers": ["Ann", "Bob"]});
    assert_eq!(call(&node, groups, "group_orders", json!({"least": 1})).await, r#"[{"id":2},{"id":3}]"#);
    assert_eq!(call(&node, json!({"customers": "Bob"}), "group_orders", json!({})).await, r#"[{"id":2}]"#);
    let who = json!({"tenant": "north", "odd name": 42});
    assert_eq!(call(&node, who, "who", json!({})).await, r#"[{"subject":"ada","tenant":"north","odd":42}]"#);
    assert_eq!(call(&node, json!({"numbers": [2, 3]}), "notes", json!({})).await, r#"[{"text":"two"}]"#);
    let token = node.issuer.token(&claims(json!({"groups": "clerks", "sub": "bob"})));
    let (_, _, answer) = node.request(&token, "resources/read", json!({"uri": "shop://own"})).await;
    assert_eq!(answer["result"]["contents"][0]["text"], "subject\r\nbob\r\n", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_attributes_are_refused_and_cannot_be_passed() {
    let node = start();
    for changes in [json!({}), json!({"profile": {}}), json!({"profile": null}), json!({"profile": "Ann"})] {
        let text = call(&node, changes, "own_orders", json!({})).await;
        assert!(text.contains("needs the claim profile.customer of the caller, and you have none"), "{text}");
    }
    let text = call(&node, json!({"profile": {"customer": {"a": 1}}}), "own_orders", json!({})).await;
    assert!(text.contains("the claim profile.customer of the caller cannot be used: an object"), "{text}");
    let text = call(&node, json!({"customers": []}), "group_orders", json!({})).await;
    assert!(text.contains("needs the claim customers"), "{text}");
    let text = call(&node, json!({"odd name": 1}), "who", json!({})).await;
    assert!(text.contains("needs the tenant of the caller"), "{text}");
    for name in ["caller.claims.profile.customer", "caller", "profile.customer"] {
        let text = call(&node, json!({"profile": {"customer": "Bob"}}), "own_orders", json!({name: "Ann"})).await;
        assert!(text.contains(name) && !text.contains("\"id\":1"), "{text}");
    }
}

#[test]
fn unknown_attributes_are_reported() {
    let wrong = super::ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}]\ntools:\n  - {name: a, description: A, sql: 'SELECT :caller.roles AS r'}\n",
    );
    let text = wrong.usage_error(&["config", "check"]);
    assert!(text.contains("tools[0].sql: the SQL uses :caller.roles, which is no attribute of the caller"), "{text}");
}
