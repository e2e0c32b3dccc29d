//! Rows that tenants send: to `/data`, and to the receivers of telemetry. Each has the tenant of its token, whatever the
//! body says, and counts toward the limits of that tenant.

use std::path::Path;

use serde_json::{Value, json};

use super::Node;
use super::tenant_client::TenantClient;

const CONFIGURATION: &str = "
databases:
  - name: plant
    ingest: plant
    tables:
      sensors: {columns: {tenant: string, n: int64}, stamp: {tenant: tenant}}
      events: {columns: {tenant: string, n: int64}, stamp: {tenant: tenant}}
      otel_logs: {stamp: {tenant: tenant}}
      prometheus_samples: {stamp: {tenant: tenant}}
    policies:
      - {table: sensors, rows: 'tenant = :tenant'}
      - {table: sensors__rejects, rows: 'tenant = :tenant'}
      - {table: events, rows: 'tenant = :tenant'}
      - {table: otel_logs, rows: 'tenant = :tenant'}
      - {table: prometheus_samples, rows: 'tenant = :tenant'}
  - {name: private, ingest: private, tenants: [north], tables: {sensors: {columns: {n: int64}}}}
receivers: {otlp: plant, prometheus: plant, bulk: plant}
roles:
  - {name: clerk, toolsets: ['*'], databases: [plant, private], ingest: ['plant.*', 'private.*'], claims: {groups: clerks}}
";
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const TABLES: [&str; 5] = ["sensors", "sensors__rejects", "events", "otel_logs", "prometheus_samples"];

/// The path, the headers and the body of a request.
type Request = (&'static str, Vec<(&'static str, &'static str)>, Vec<u8>);

/// Requests that store rows in all of [`TABLES`], with a number to recognise them and another tenant in their bodies.
fn requests(number: u32, other: &str) -> [Request; 5] {
    let row = json!([{"tenant": other, "n": number}]).to_string();
    let misfit = json!([{"tenant": other, "n": format!("no number {number}")}]).to_string();
    let attribute = json!({"key": "tenant", "value": {"stringValue": other}});
    let record = json!({"body": {"stringValue": number.to_string()}, "attributes": [attribute]});
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).to_string();
    let document = format!("{{\"index\":{{\"_index\":\"events\"}}}}\n{{\"tenant\":\"{other}\",\"n\":{number}}}\n");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../telemetry/tests/it/formats/fixtures");
    let samples = std::fs::read(fixtures.join("remote_write_1.snappy")).unwrap();
    [
        ("/data/plant/sensors", JSON.to_vec(), row.into_bytes()),
        ("/data/plant/sensors?on_reject=row", JSON.to_vec(), misfit.into_bytes()),
        ("/v1/logs", JSON.to_vec(), logs.into_bytes()),
        ("/_bulk", vec![("content-type", "application/x-ndjson")], document.into_bytes()),
        ("/api/v1/write", vec![("content-type", "application/x-protobuf"), ("content-encoding", "snappy")], samples),
    ]
}

/// The rows of a statement over `plant`.
async fn rows(caller: &TenantClient, sql: &str) -> Value {
    caller.call_rows("sql", json!({"database": "plant", "sql": sql})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_have_the_tenant_of_the_token_and_no_other_tenant_sees_them() {
    let node = Node::start(CONFIGURATION);
    // Both have the same name, and send the same samples.
    let [north, south] = ["north", "south"].map(|tenant| (tenant, node.client("ann", Some(tenant))));
    for (number, (tenant, caller), other) in [(1, &north, "south"), (2, &south, "north")] {
        for (path, headers, body) in requests(number, other) {
            let (status, text) = caller.send(path, &headers, body).await;
            // Of the samples, a native histogram is left out.
            let is_stored = status < 300 || text.contains("native histograms are not stored");
            assert!(is_stored && !text.contains("\"errors\":true"), "{tenant}: {path}: {status} {text}");
        }
    }
    for (tenant, caller) in [&north, &south] {
        for table in TABLES {
            let seen = rows(caller, &format!("SELECT DISTINCT tenant FROM {table}")).await;
            assert_eq!(seen, json!([{"tenant": tenant}]), "{table} for {tenant}");
        }
        let number = if *tenant == "north" { 1 } else { 2 };
        assert_eq!(rows(caller, "SELECT n FROM sensors").await, json!([{"n": number}]));
        assert_eq!(rows(caller, "SELECT n FROM events").await, json!([{"n": number}]));
        assert_eq!(rows(caller, "SELECT body FROM otel_logs").await, json!([{"body": number.to_string()}]));
        let rejected = rows(caller, "SELECT text FROM sensors__rejects").await;
        assert!(rejected[0]["text"].as_str().unwrap().contains(&format!("no number {number}")), "{rejected}");
    }
    let without = node.client("ann", None);
    for (path, headers, body) in requests(3, "north") {
        let (status, text) = without.send(path, &headers, body).await;
        assert_eq!(status, 403, "{path}: {text}");
    }
    assert_eq!(rows(&north.1, "SELECT count(*) AS n FROM sensors").await, json!([{"n": 1}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_tenant_takes_no_rows_and_is_like_an_absent_one() {
    let node = Node::start(CONFIGURATION);
    let row = || b"[{\"n\": 1}]".to_vec();
    let north = node.client("ann", Some("north"));
    assert_eq!(north.send("/data/private/sensors", JSON, row()).await.0, 200);
    for stranger in node.clients_of_other_tenants() {
        let refused = stranger.send("/data/private/sensors", JSON, row()).await;
        let (status, absent) = stranger.send("/data/privatx/sensors", JSON, row()).await;
        assert_eq!((status, refused), (404, (404, absent.replace("privatx", "private"))));
    }
    let count = json!({"database": "private", "sql": "SELECT count(*) AS n FROM sensors"});
    assert_eq!(north.call_rows("sql", count).await, json!([{"n": 1}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_sent_count_toward_the_limits_of_their_tenant() {
    let limited = |limits: &str| format!("{CONFIGURATION}limits: {{usage_file: usage.json, tenant: {{{limits}}}}}\n");
    for limits in ["rows_per_day: 3", "bytes_per_day: 200B"] {
        let node = Node::start(&limited(limits));
        let [ann, bob, stranger] = [("ann", "north"), ("bob", "north"), ("ann", "south")]
            .map(|(name, tenant)| node.client(name, Some(tenant)));
        // A write that exceeds the rest is refused as a whole.
        let many: Vec<Value> = (0..100).map(|n| json!({"n": n})).collect();
        let (status, text) = ann.send("/data/plant/sensors", JSON, json!(many).to_string().into_bytes()).await;
        assert_eq!(status, 429, "{limits}: {text}");
        for (path, headers, body) in requests(1, "south") {
            let (status, text) = bob.send(path, &headers, body).await;
            assert_eq!(status, 429, "{limits}: {path}: {text}");
        }
        let (path, headers, body) = requests(2, "north")[0].clone();
        assert_eq!(stranger.send(path, &headers, body).await.0, 200, "{limits}");
        assert_eq!(rows(&stranger, "SELECT n FROM sensors").await, json!([{"n": 2}]), "{limits}");
        drop(node);
    }
    let node = Node::start(&limited("requests_per_second: 0.001, burst: 1"));
    let [ann, stranger] = ["north", "south"].map(|tenant| node.client("ann", Some(tenant)));
    for (caller, expected) in [(&ann, 200), (&ann, 429), (&stranger, 200), (&stranger, 429)] {
        let (path, headers, body) = requests(1, "east")[0].clone();
        assert_eq!(caller.send(path, &headers, body).await.0, expected);
    }
}
