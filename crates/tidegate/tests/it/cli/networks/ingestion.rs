//! Rows for a network: they arrive at the server that unites the nodes, and are stored by the nodes that hold them.

mod ways_in;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tidegate_core::Principal;
use tidegate_network::{FlightSqlDatabase, FlightSqlOptions, NodeCredential};
use tidegate_query::{Database as _, NodeDatabase as _, NodeWrite};

use super::sign;
use super::site_network::{ISSUER, KeyPair, NODES, NodeData, SiteNode, UnitingServer};

const INGEST: NodeData = NodeData {
    database: "ingest: plant, tables: {readings: {columns: {site: string, machine: string, degrees: int32, tenant: string}, \
               stamp: {tenant: tenant}}}",
    roles: &[("writer", ", ingest: [plant.readings]"), ("clerk", "")],
};
const BY_NODE: &str = "SELECT _node, site, count(*) AS n, sum(degrees) AS total FROM readings GROUP BY _node, site \
                       ORDER BY _node, site NULLS FIRST";

/// Oslo and Rome declare their rows; Cork has all others.
struct Network {
    key: KeyPair,
    nodes: Vec<SiteNode>,
    server: UnitingServer,
}

impl Network {
    fn start() -> Self {
        Self::start_with("")
    }

    /// A network whose server has `further` keys in its configuration.
    fn start_with(further: &str) -> Self {
        let key = KeyPair::generate();
        let nodes: Vec<SiteNode> =
            NODES.map(|name| SiteNode::start_with(name, &key.public, INGEST)).into_iter().collect();
        let holds = [", holds: {site: [oslo, bergen]}", ", holds: {site: rome}", ""];
        let entries =
            NODES.iter().zip(&nodes).zip(holds).map(|((name, node), holds)| {
                format!("{{name: {name}, url: '{}', database: plant{holds}}}", node.flight)
            });
        let configuration = format!(
            "server: {{listen: '127.0.0.1:0'}}\n\
             databases:\n  - name: sites\n    ingest: [readings, absent]\n    \
             network: {{nodes: [{}], timeout: 60s, trust: {{issuer: '{ISSUER}', key: '${{file:uniting-key.pem}}'}}}}\n\
             roles:\n  - {{name: writer, toolsets: ['*'], databases: [sites], ingest: [sites.readings, sites.absent]}}\n  \
             - {{name: clerk, toolsets: ['*'], databases: [sites], ingest: [sites.readings]}}\n  \
             - {{name: reader, toolsets: ['*'], databases: [sites]}}\n\
             auth: {{keys: keys.json}}\n{further}",
            entries.collect::<Vec<_>>().join(", ")
        );
        let callers = [
            ("ann", "writer", Some("north")),
            ("bob", "writer", Some("south")),
            ("cyd", "clerk", Some("north")),
            ("dan", "reader", Some("north")),
        ];
        Self { server: UnitingServer::start_with(&key, &configuration, &callers), nodes, key }
    }

    async fn send(&self, caller: &str, body: String, key: Option<&str>) -> (StatusCode, Value) {
        self.request(Method::POST, "readings", caller, body, key).await
    }

    /// Sends NDJSON to a path below `/data/sites/`.
    async fn request(
        &self,
        method: Method,
        path: &str,
        caller: &str,
        body: String,
        key: Option<&str>,
    ) -> (StatusCode, Value) {
        let url = self.server.url().replace("/mcp", &format!("/data/sites/{path}"));
        let request = Client::new().request(method, url).bearer_auth(self.server.key(caller));
        let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
        let answer = request.header("content-type", "application/x-ndjson").body(body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    /// Rows by node and site, as Ann sees them.
    async fn stored(&self) -> Value {
        self.server.rows("ann", "sites", BY_NODE).await
    }
}

fn row(site: &str, degrees: i32) -> String {
    json!({"site": site, "machine": "press", "degrees": degrees}).to_string() + "\n"
}

/// Sites of many rows, in a fixed order that looks random.
fn many_rows(count: i32) -> (String, Value) {
    let sites = ["oslo", "rome", "bergen", "paris"];
    let (mut body, mut sums) = (String::new(), BTreeMap::new());
    for number in 0..count {
        let site = sites.get((number.wrapping_mul(7919) % 1013) as usize % 5).copied();
        writeln!(body, "{}", json!({"site": site, "machine": "press", "degrees": number})).unwrap();
        let node = match site {
            Some("oslo" | "bergen") => "oslo",
            Some("rome") => "rome",
            _ => "cork",
        };
        let (rows, sum): &mut (i32, i32) = sums.entry((node, site)).or_default();
        (*rows, *sum) = (*rows + 1, *sum + number);
    }
    let rows = sums
        .into_iter()
        .map(|((node, site), (rows, sum))| json!({"_node": node, "site": site, "n": rows, "total": sum}));
    (body, rows.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_stored_by_the_nodes_that_hold_them() {
    let network = Network::start();
    let (body, expected) = many_rows(20_000);
    let (status, answer) = network.send("ann", body.clone(), Some("first")).await;
    assert_eq!((status, &answer["rows"]), (StatusCode::OK, &json!(20_000)), "{answer}");
    assert_eq!(network.stored().await, expected);
    // A repeat stores nothing; another caller's key is another one.
    let (status, answer) = network.send("ann", body, Some("first")).await;
    assert_eq!((status, &answer["rows"]), (StatusCode::OK, &json!(20_000)), "{answer}");
    assert_eq!(network.stored().await, expected);
    let (status, _) = network.send("bob", row("oslo", 1) + &row("rome", 2), Some("first")).await;
    assert_eq!(status, StatusCode::OK);
    // The nodes stamp the tenant of the caller, whatever the rows have.
    let forged = json!({"site": "oslo", "degrees": 5, "tenant": "south"}).to_string();
    let (status, answer) = network.send("ann", forged, None).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let tenants = "SELECT tenant, count(*) AS n FROM readings GROUP BY tenant ORDER BY tenant";
    let expected = json!([{"tenant": "north", "n": 20_001}, {"tenant": "south", "n": 2}]);
    assert_eq!(network.server.rows("ann", "sites", tenants).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_append_rows_and_name_nodes() {
    let network = Network::start();
    let append = async |rows: Value| {
        network.server.call("ann", "append_rows", json!({"database": "sites", "table": "readings", "rows": rows})).await
    };
    let stored = append(json!([{"site": "oslo", "degrees": 1}, {"site": "bergen", "degrees": 2}])).await;
    assert!(!stored.is_error && stored.text.contains("\"rows\":2"), "{stored:?}");
    let stored = append(json!([{"site": "paris", "degrees": 3, "_node": "cork"}])).await;
    assert!(!stored.is_error, "{stored:?}");
    let rows = json!([
        {"_node": "cork", "site": "paris", "n": 1, "total": 3},
        {"_node": "oslo", "site": "bergen", "n": 1, "total": 2},
        {"_node": "oslo", "site": "oslo", "n": 1, "total": 1},
    ]);
    assert_eq!(network.stored().await, rows);
    let refused = [
        (json!([{"site": "oslo", "_node": "paris"}]), "no node \"paris\""),
        (json!([{"site": "paris", "_node": "oslo"}]), "site = paris"),
        (json!([{"site": "oslo"}, {"site": "rome"}]), "several nodes"),
        (json!([{"site": "oslo", "unknown": 1}]), "unknown"),
        (json!([{"site": "oslo", "degrees": "warm"}]), "degrees"),
        (json!([{"site": "oslo", "degrees": 3_000_000_000_i64}]), "degrees"),
    ];
    for (rows, reason) in refused {
        let answer = append(rows).await;
        assert!(answer.is_error && answer.text.contains(reason), "{reason}: {answer:?}");
    }
    assert_eq!(network.stored().await, rows, "nothing else was stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_apply_at_the_network_and_at_the_nodes() {
    let network = Network::start();
    // Dan may not write; Cyd may by this server, and not by the nodes.
    let (status, answer) = network.send("dan", row("oslo", 1), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
    let (status, answer) = network.send("cyd", row("oslo", 1), None).await;
    assert!(!status.is_success() && answer.to_string().contains("oslo"), "{status} {answer}");
    for (method, path, reason) in [
        (Method::PUT, "readings", "cannot be replaced"),
        (Method::DELETE, "readings", "drop them there"),
        (Method::POST, "readings?on_reject=row", "on_reject=all"),
        (Method::POST, "absent", "there is no table"),
        (Method::POST, "other", "takes rows from you"),
    ] {
        let (status, answer) = network.request(method.clone(), path, "ann", row("oslo", 1), None).await;
        assert!(status.is_client_error() && answer.to_string().contains(reason), "{method} {path}: {status} {answer}");
    }
    assert_eq!(network.stored().await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_stores_nothing() {
    let network = Network::start();
    let url = reqwest::Url::parse(network.server.url()).unwrap();
    let mut connection = TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).unwrap();
    let (body, _) = many_rows(30_000);
    write!(
        connection,
        "POST /data/sites/readings HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nidempotency-key: a\r\n\
         content-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n{body}",
        network.server.key("ann"),
        body.len() + 1,
    )
    .unwrap();
    // All rows have arrived, but not the end of the body.
    connection.shutdown(std::net::Shutdown::Both).unwrap();
    drop(connection);
    let (status, answer) = network.send("ann", row("oslo", 1) + &row("rome", 2), Some("b")).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let rows = "SELECT count(*) AS n FROM readings";
    assert_eq!(network.server.rows("ann", "sites", rows).await, json!([{"n": 2}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_after_the_failure_of_a_node_stores_each_row_once() {
    let mut network = Network::start();
    assert_eq!(network.send("ann", row("oslo", 1), None).await.0, StatusCode::OK);
    network.nodes[1].kill();
    let body = row("oslo", 10) + &row("rome", 20) + &row("paris", 30);
    let (status, answer) = network.send("ann", body.clone(), Some("k")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    assert!(answer.to_string().contains("rome"), "{answer}");
    // Rows for other nodes do not need it.
    let (status, answer) = network.send("ann", row("oslo", 2), None).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    network.nodes[1].start_again();
    let rows = json!([
        {"_node": "cork", "site": "paris", "n": 1, "total": 30},
        {"_node": "oslo", "site": "oslo", "n": 3, "total": 13},
        {"_node": "rome", "site": "rome", "n": 1, "total": 20},
    ]);
    for _ in 0..2 {
        let (status, answer) = network.send("ann", body.clone(), Some("k")).await;
        assert_eq!((status, &answer["rows"]), (StatusCode::OK, &json!(3)), "{answer}");
        assert_eq!(network.stored().await, rows);
    }
}

/// A stream that is reset has no end, although libraries report one.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_writes_store_nothing() {
    let network = Network::start();
    let claims = json!({
        "iss": ISSUER, "aud": "oslo", "sub": "ann", "exp": 4_000_000_000_u64, "roles": ["writer"], "tenant": "north",
    });
    let options = FlightSqlOptions {
        database: Some("plant".to_owned()),
        credential: NodeCredential::Token(sign(&network.key, &claims)),
        ..FlightSqlOptions::new(vec![network.nodes[0].flight.clone()])
    };
    let node = FlightSqlDatabase::new("oslo", options).unwrap();
    let sites: ArrayRef = Arc::new(StringArray::from(vec!["oslo"; 100]));
    let rows = RecordBatch::try_from_iter([("site", sites)]).unwrap();
    let caller = Principal::process_user();
    for number in 0..200 {
        let write = NodeWrite { table: "readings".to_owned(), schema: rows.schema(), key: None };
        let mut writer = node.begin_write(write, &caller).await.unwrap();
        for _ in 0..1 + number % 4 {
            writer.write(0, rows.clone()).await.unwrap();
        }
        drop(writer);
    }
    // Whatever was sent before is decided by then.
    let (status, answer) = network.send("ann", row("oslo", 1), None).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let counted = "SELECT count(*) AS n FROM readings";
    assert_eq!(network.server.rows("ann", "sites", counted).await, json!([{"n": 1}]));
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_rows_under_the_same_key_are_a_conflict() {
    let network = Network::start();
    assert_eq!(network.send("ann", row("oslo", 1), Some("k")).await.0, StatusCode::OK);
    let (status, answer) = network.send("ann", row("oslo", 1) + &row("oslo", 2), Some("k")).await;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("oslo"), "{answer}");
    let expected = json!([{"_node": "oslo", "site": "oslo", "n": 1, "total": 1}]);
    assert_eq!(network.stored().await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_were_never_reached_are_unavailable() {
    let mut network = Network::start();
    network.nodes.iter_mut().for_each(SiteNode::kill);
    let (status, answer) = network.send("ann", row("oslo", 1), None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
}
