//! Networks of nodes over Flight SQL: three servers with the data, and one that unites them and signs for its callers.

mod broken_configurations;
mod flight_databases;
mod flight_limits;
mod flight_server;
mod ingestion;
mod leaving_callers;
mod node_functions;
mod site_network;
mod two_tenants;

use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::run_in;
use super::tokens::message;
use site_network::{ISSUER, KeyPair, NODES, SiteNode, UnitingServer, call};

const BY_NODE: &str = "SELECT _node, count(*) AS n, sum(degrees) AS total FROM readings GROUP BY _node ORDER BY _node";

fn start_nodes(key: &KeyPair) -> Vec<SiteNode> {
    NODES.map(|name| SiteNode::start(name, &key.public)).into_iter().collect()
}

/// Each caller has the rows of its tenant, on each node and in each form of a statement.
#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_separate_on_all_nodes() {
    let key = KeyPair::generate();
    let nodes = start_nodes(&key);
    let server = UnitingServer::start(&key, &nodes);
    let row = |node: &str, n: u64, total: u64| json!({"_node": node, "n": n, "total": total});
    let north = json!([row("cork", 1, 4), row("oslo", 2, 3), row("rome", 1, 3)]);
    let south = json!([row("cork", 1, 40), row("oslo", 1, 10), row("rome", 2, 50)]);
    // Repeated, because an answer could be kept for another caller.
    for _ in 0..2 {
        for database in ["sites", "whole"] {
            assert_eq!(server.rows("ann", database, BY_NODE).await, north);
            assert_eq!(server.rows("bob", database, BY_NODE).await, south);
            assert_eq!(server.rows("eve", database, BY_NODE).await, json!([]), "a caller without a tenant");
        }
    }
    for sql in [
        "SELECT DISTINCT tenant FROM readings",
        "SELECT tenant FROM readings GROUP BY tenant HAVING count(*) > 0",
        "SELECT max(tenant) AS tenant FROM readings",
        "SELECT a.tenant FROM readings a JOIN readings b ON a.degrees = b.degrees ORDER BY a.degrees DESC LIMIT 1",
        "SELECT tenant FROM readings WHERE tenant = 'south' OR tenant = 'north' LIMIT 1",
    ] {
        assert_eq!(server.rows("ann", "sites", sql).await, json!([{"tenant": "north"}]), "{sql}");
        assert_eq!(server.rows("bob", "sites", sql).await, json!([{"tenant": "south"}]), "{sql}");
    }
    let others = "SELECT count(*) AS n FROM readings WHERE tenant = 'south'";
    assert_eq!(server.rows("ann", "sites", others).await, json!([{"n": 0}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_nodes_and_identities_gain_nothing() {
    let key = KeyPair::generate();
    let nodes = start_nodes(&key);
    let server = UnitingServer::start(&key, &nodes);
    // Rome's rows claim to be of other nodes.
    let forged = "SELECT count(*) AS n FROM readings WHERE _node = 'oslo'";
    assert_eq!(server.rows("ann", "sites", forged).await, json!([{"n": 2}]));
    let rome = "SELECT DISTINCT _node FROM readings WHERE degrees = 3";
    assert_eq!(server.rows("ann", "sites", rome).await, json!([{"_node": "rome"}]));
    // The right token of a caller at Oslo, and what is wrong elsewhere or signed by others.
    let claims = |audience: &str, tenant: &str| {
        let expiry = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 60;
        json!({"iss": ISSUER, "aud": audience, "sub": "ann", "exp": expiry, "roles": ["reader"], "tenant": tenant})
    };
    let sql = json!({"sql": "SELECT count(*) AS n FROM readings"});
    let right = sign(&key, &claims("oslo", "north"));
    assert_eq!(call(&nodes[0].http, &right, "sql", sql.clone()).await.text, r#"[{"n":2}]"#);
    let replayed = call(&nodes[1].http, &right, "sql", sql.clone()).await;
    let forged = sign(&KeyPair::generate(), &claims("oslo", "south"));
    let forged = call(&nodes[0].http, &forged, "sql", sql.clone()).await;
    let nameless = call(&nodes[0].http, "nonsense", "sql", sql).await;
    for refused in [replayed, forged, nameless] {
        assert!(refused.is_error && !refused.text.contains("\"n\""), "{refused:?}");
    }
    // A caller cannot add to its identity by arguments.
    for arguments in [json!({"sql": BY_NODE, "tenant": "south"}), json!({"sql": BY_NODE, "principal": "bob"})] {
        let mut arguments = arguments;
        arguments["database"] = "sites".into();
        let refused = server.call("ann", "sql", arguments).await;
        assert!(refused.is_error, "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_trust_gives_nothing_and_is_named() {
    let (key, other) = (KeyPair::generate(), KeyPair::generate());
    let trusted = |name: &str| if name == "rome" { &other.public } else { &key.public };
    let nodes: Vec<SiteNode> = NODES.map(|name| SiteNode::start(name, trusted(name))).into_iter().collect();
    let server = UnitingServer::start(&key, &nodes);
    let whole = server.call("bob", "sql", json!({"database": "whole", "sql": BY_NODE})).await;
    assert!(whole.is_error && whole.text.contains("rome") && !whole.text.contains("\"total\""), "{whole:?}");
    let partial = server.call("bob", "sql", json!({"database": "sites", "sql": BY_NODE})).await;
    assert!(!partial.is_error, "{partial:?}");
    let rows = r#"[{"_node":"cork","n":1,"total":40},{"_node":"oslo","n":1,"total":10}]"#;
    assert!(partial.text.starts_with(rows) && partial.text.contains("partial"), "{partial:?}");
    assert_eq!(partial.meta["dev.tidegate/partial"], true);
    assert_eq!(partial.meta["dev.tidegate/missing_nodes"][0]["name"], "rome");
    let tested = server.call("bob", "test_network", json!({"database": "sites"})).await;
    let tested: Vec<Value> = serde_json::from_str(&tested.text).unwrap();
    let results: Vec<_> = tested.iter().map(|row| (row["node"].as_str(), row["result"].as_str())).collect();
    assert_eq!(
        results,
        [(Some("oslo"), Some("ok")), (Some("rome"), Some("failed")), (Some("cork"), Some("ok"))],
        "{tested:?}"
    );
    assert_eq!(tested[0]["subject"], "bob");
    assert!(tested[1]["problem"].as_str().unwrap().contains("auth.tokens"), "{tested:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_named_until_it_is_back() {
    let key = KeyPair::generate();
    let mut nodes = start_nodes(&key);
    let server = UnitingServer::start(&key, &nodes);
    let total = "SELECT sum(degrees) AS total FROM readings";
    assert_eq!(server.rows("bob", "whole", total).await, json!([{"total": 100}]));
    nodes[1].kill();
    let whole = server.call("bob", "sql", json!({"database": "whole", "sql": total})).await;
    assert!(whole.is_error && whole.text.contains("rome") && !whole.text.contains("total"), "{whole:?}");
    // Its rows are excluded, so that it is not needed.
    let others = format!("{total} WHERE _node <> 'rome'");
    assert_eq!(server.rows("bob", "whole", &others).await, json!([{"total": 50}]));
    for format in ["mcp", "csv", "json", "markdown"] {
        let arguments = json!({"database": "sites", "sql": total, "format": format});
        let partial = server.call("bob", "sql", arguments).await;
        assert!(!partial.is_error && partial.text.contains("50"), "{partial:?}");
        assert!(partial.text.contains("partial") && partial.text.contains("rome"), "{format}: {partial:?}");
        assert_eq!(partial.meta["dev.tidegate/missing_nodes"][0]["name"], "rome", "{format}: {partial:?}");
    }
    let listed = server.call("bob", "list_nodes", json!({"database": "sites"})).await;
    let listed: Vec<Value> = serde_json::from_str(&listed.text).unwrap();
    let states: Vec<_> = listed.iter().map(|row| row["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["ok", "unreachable", "ok"], "{listed:?}");
    nodes[1].start_again();
    server.wait_for("bob", "whole", total, |answer| answer.text == r#"[{"total":100}]"#).await;
    // Each network has connections of its own, and tries a node that failed again after some seconds.
    server.wait_for("bob", "sites", total, |answer| answer.text == r#"[{"total":100}]"#).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_show_a_network_only_to_its_callers() {
    let key = KeyPair::generate();
    let nodes = start_nodes(&key);
    let server = UnitingServer::start(&key, &nodes);
    let located = server.call("ann", "locate", json!({"database": "sites", "table": "readings"})).await;
    let located: Vec<Value> = serde_json::from_str(&located.text).unwrap();
    let names: Vec<_> = located.iter().map(|row| row["node"].as_str().unwrap()).collect();
    assert_eq!(names, NODES, "{located:?}");
    let tested = server.call("ann", "test_network", json!({})).await;
    let tested: Vec<Value> = serde_json::from_str(&tested.text).unwrap();
    assert_eq!(tested.len(), 6, "two networks");
    assert!(tested.iter().all(|row| row["result"] == "ok" && row["subject"] == "ann"), "{tested:?}");
    for tool in ["list_nodes", "test_network", "locate"] {
        let refused = server.call("joe", tool, json!({"table": "readings"})).await;
        assert!(refused.is_error && refused.text.starts_with(&format!("there is no tool {tool:?}")), "{refused:?}");
    }
}

#[test]
fn doctor_and_check_name_what_is_wrong_with_each_node() {
    let key = KeyPair::generate();
    let nodes: Vec<SiteNode> =
        vec![SiteNode::start("oslo", &key.public), SiteNode::start("rome", &KeyPair::generate().public)];
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("uniting-key.pem"), &key.private).unwrap();
    let gone = "{name: cork, url: 'grpc://127.0.0.1:1', database: plant}";
    let configuration = site_network::configuration(&nodes).replace("}], partial", &format!("}}, {gone}], partial"));
    std::fs::write(folder.path().join("tidegate.yaml"), configuration).unwrap();
    let checked = run_in(folder.path(), &["config", "check"]);
    let text = format!("{}{}", checked.stdout, checked.stderr);
    assert_eq!(checked.code, Some(0), "{text}");
    for part in
        ["node oslo of sites", "node rome of sites", "refuses this server", "node cork of sites", "does not answer"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let diagnosed = run_in(folder.path(), &["doctor"]);
    for line in ["ok     node oslo of sites", "WRONG  node rome of sites", "WRONG  node cork of sites"] {
        assert!(diagnosed.stdout.lines().any(|printed| printed.starts_with(line)), "{line}: {diagnosed:?}");
    }
}

/// A token with `claims`. What signs here is not the library that the servers use.
fn sign(key: &KeyPair, claims: &Value) -> String {
    let lines = key.private.lines().filter(|line| !line.starts_with("-----"));
    let der = STANDARD.decode(lines.collect::<String>()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).unwrap();
    let message = message(&json!({"alg": "EdDSA", "typ": "JWT"}), claims);
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes())))
}
