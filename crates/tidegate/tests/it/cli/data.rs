//! Rows that programs send to `/data`: stored, and part of the next answer.

use std::collections::BTreeSet;

use reqwest::{Client, Response};
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::{Server, wait_until};

const CONFIGURATION: &str = "
databases:
  - name: plant
    ingest: plant
    tables:
      sensors:
        columns: {time: timestamp not null, device: string, value: double}
        partition_by: [day(time)]
        evolve: add_columns
      doubled:
        transform: SELECT device, value * 2 AS value FROM incoming WHERE value > 0
      parsed:
        columns: {id: integer, value: int16}
        transform: SELECT id, CAST(value AS bigint) AS value FROM incoming
  - {name: shop, files: shop}
  - {name: all, federated: [plant, shop]}
";
/// Two readings with the id of an order as their value.
const READINGS: &str = r#"[{"time": "2026-01-01T00:00:00Z", "device": "a", "value": 1.0},
                           {"time": "2026-01-02T00:00:00Z", "device": "b", "value": 2.0}]"#;

struct DataNode {
    configured: ConfiguredFolder,
    server: Server,
}

impl DataNode {
    fn start(configuration: &str) -> Self {
        let configured = ConfiguredFolder::new(configuration);
        let server = serve(&configured);
        Self { configured, server }
    }

    /// The same node, after an end by `signal`.
    fn restart(self, signal: &str) -> Self {
        let Self { configured, server } = self;
        server.signal(signal);
        server.wait_for_exit();
        let server = serve(&configured);
        Self { configured, server }
    }

    fn url(&self, path: &str) -> String {
        self.server.url.replace("/mcp", path)
    }

    async fn post(&self, path: &str, media_type: &str, body: impl Into<reqwest::Body>) -> Response {
        let request = Client::new().post(self.url(path)).header("content-type", media_type);
        request.body(body).send().await.unwrap()
    }

    async fn post_json(&self, table: &str, body: &str) -> Value {
        let response = self.post(&format!("/data/plant/{table}"), "application/json", body.to_owned()).await;
        let status = response.status().as_u16();
        let mut answer: Value = response.json().await.unwrap();
        answer["status"] = json!(status);
        answer
    }

    /// The rows of an answer, a line each.
    async fn rows(&self, database: &str, sql: &str) -> String {
        let arguments = json!({"database": database, "sql": sql, "format": "csv"});
        let response = Client::new().post(self.url("/rest/sql")).json(&arguments).send().await.unwrap();
        let text = response.text().await.unwrap();
        text.lines().skip(1).collect::<Vec<_>>().join("\n")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_part_of_the_next_answer_and_outlast_the_process() {
    let mut node = DataNode::start(CONFIGURATION);
    let stored = node.post_json("sensors", READINGS).await;
    assert_eq!(
        (&stored["status"], &stored["rows"], &stored["rejected"]),
        (&json!(200), &json!(2), &json!(0)),
        "{stored}"
    );
    for (index, signal) in ["KILL", "TERM", "KILL"].into_iter().enumerate() {
        let rows = node.rows("plant", "SELECT device, value FROM sensors ORDER BY value").await;
        assert_eq!(rows, "a,1.0\nb,2.0", "before {index}");
        node = node.restart(signal);
    }
    let more = r#"[{"time": "2026-01-03T00:00:00Z", "device": "c", "value": 3.0, "note": "new"}]"#;
    assert_eq!(node.post_json("sensors", more).await["status"], 200);
    assert_eq!(node.rows("plant", "SELECT device, note FROM sensors ORDER BY value").await, "a,\nb,\nc,new");
    let joined = "SELECT count(*) FROM plant.sensors s JOIN shop.orders o ON o.id = s.value";
    assert_ne!(node.rows("all", joined).await, "0");
    let days = "SELECT count(*) FROM sensors WHERE time < TIMESTAMPTZ '2026-01-02'";
    assert_eq!(node.rows("plant", days).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn transform_computes_the_rows() {
    let node = DataNode::start(CONFIGURATION);
    let stored = node.post_json("doubled", r#"[{"device": "a", "value": 1.5}, {"device": "b", "value": -1}]"#).await;
    assert_eq!(stored["status"], 200, "{stored}");
    assert_eq!(node.rows("plant", "SELECT * FROM doubled").await, "a,3.0");
    let refused = node.post_json("doubled", r#"[{"other": 1}]"#).await;
    assert_eq!(refused["status"], 400, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("there is no column"), "{refused}");
    assert_eq!(node.rows("plant", "SELECT count(*) FROM doubled").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_transform_does_not_compute_are_rejected_on_request() {
    let node = DataNode::start(CONFIGURATION);
    let value = |id: i64| match id {
        7 => "x".to_owned(),
        3_000 => "70000".to_owned(),
        id => (id % 100).to_string(),
    };
    let lines = (1..=10_000).map(|id| format!("{{\"id\": {id}, \"value\": \"{}\"}}\n", value(id)));
    let body = lines.collect::<String>();
    let refused = node.post("/data/plant/parsed", "application/x-ndjson", body.clone()).await;
    assert_eq!(refused.status(), 400);
    assert_eq!(node.rows("plant", "SELECT count(*) FROM parsed").await, "0");
    let kept = node.post("/data/plant/parsed?on_reject=row", "application/x-ndjson", body).await;
    let kept: Value = kept.json().await.unwrap();
    assert_eq!((&kept["rows"], &kept["rejected"]), (&json!(9_998), &json!(2)), "{kept}");
    let stored = "SELECT count(*), count(DISTINCT id), min(id), max(id), sum(value) FROM parsed";
    assert_eq!(node.rows("plant", stored).await, "9998,9998,1,10000,494993");
    insta::assert_snapshot!(node.rows("plant", "SELECT line, reason FROM parsed__rejects ORDER BY line").await, @r#"
    7,"invalid input syntax for type bigint: ""x"""
    3000,"the rows do not fit table ""parsed""; value: the transform computes Int64, and some values have no equal Int16"
    "#);
    // What is wrong for all rows refuses the request.
    let refused = node.post("/data/plant/parsed?on_reject=row", "application/x-ndjson", "{\"id\": 1}\n").await;
    assert_eq!(refused.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stores_once_over_a_restart() {
    let mut node = DataNode::start(CONFIGURATION);
    for repeated in [false, true, true] {
        let request = Client::new().post(node.url("/data/plant/sensors")).header("content-type", "application/json");
        let request = request.header("idempotency-key", "first").body(READINGS);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!((&answer["rows"], &answer["repeated"]), (&json!(2), &json!(repeated)), "{answer}");
        node = node.restart("KILL");
    }
    assert_eq!(node.rows("plant", "SELECT count(*) FROM sensors").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_rows_are_named_and_kept_on_request() {
    let node = DataNode::start(CONFIGURATION);
    let body = "{\"time\": \"2026-01-01T00:00:00Z\", \"value\": 1}\n{\"time\": \"never\", \"value\": 2}\n";
    let refused = node.post("/data/plant/sensors", "application/x-ndjson", body).await;
    assert_eq!(refused.status(), 400);
    let text = refused.text().await.unwrap();
    assert!(text.contains("line 2, column \\\"time\\\"") && text.contains("never"), "{text}");
    assert_eq!(node.rows("plant", "SELECT count(*) FROM sensors").await, "0");
    let kept = node.post("/data/plant/sensors?on_reject=row", "application/x-ndjson", body).await;
    let kept: Value = kept.json().await.unwrap();
    assert_eq!((&kept["rows"], &kept["rejected"]), (&json!(1), &json!(1)), "{kept}");
    assert_eq!(node.rows("plant", "SELECT count(*) FROM sensors").await, "1");
    let rejects = node.rows("plant", "SELECT line, \"column\", reason FROM sensors__rejects").await;
    assert!(rejects.starts_with("2,time,") && rejects.contains("never"), "{rejects}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_created_replaced_and_dropped() {
    let node = DataNode::start(CONFIGURATION);
    let created = node.post("/data/plant/fresh", "text/csv", "a,b\n1,x\n2,y\n").await;
    assert_eq!(created.status(), 201);
    assert_eq!(node.rows("plant", "SELECT sum(a), max(b) FROM fresh").await, "3,y");
    let replaced = Client::new().put(node.url("/data/plant/fresh")).header("content-type", "text/csv");
    assert_eq!(replaced.body("a,b\n7,z\n").send().await.unwrap().status(), 200);
    assert_eq!(node.rows("plant", "SELECT a, b FROM fresh").await, "7,z");
    assert_eq!(Client::new().delete(node.url("/data/plant/fresh")).send().await.unwrap().status(), 200);
    let answer = node.rows("plant", "SELECT a FROM fresh").await;
    assert!(!answer.contains('7'), "{answer}");
    let unknown = node.post("/data/plent/sensors", "text/csv", "a\n1\n").await;
    assert_eq!(unknown.status(), 404);
    assert!(unknown.text().await.unwrap().contains("plant.sensors"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_reads_what_is_in_data_files() {
    let node = DataNode::start(CONFIGURATION);
    node.post_json("sensors", READINGS).await;
    let count = || node.configured.run(&["query", "SELECT count(*) FROM plant.sensors"]);
    // Rows that are in the log only are not visible to others.
    assert!(count().stdout.contains('0') || count().code != Some(0), "{:?}", count());
    let checked = node.configured.run(&["config", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let DataNode { configured, server } = node;
    server.signal("TERM");
    server.wait_for_exit();
    let counted = configured.run(&["query", "SELECT count(*) AS n FROM plant.sensors"]);
    assert!(counted.stdout.contains('2'), "{counted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_configuration_declares_tables_without_a_restart() {
    let node = DataNode::start(CONFIGURATION);
    node.post_json("sensors", READINGS).await;
    let declared = CONFIGURATION
        .replace("      doubled:", "      counters:\n        columns: {n: integer not null}\n      doubled:");
    node.configured.write(&declared);
    let has_table = || async { node.rows("plant", "SELECT count(*) FROM counters").await == "0" };
    wait_until(async || has_table().await).await;
    let refused = node.post_json("counters", r#"[{"n": null}]"#).await;
    assert_eq!(refused["status"], 400, "{refused}");
    assert_eq!(node.post_json("counters", r#"[{"n": 5}]"#).await["status"], 200);
    assert_eq!(node.rows("plant", "SELECT n FROM counters").await, "5");
    assert_eq!(node.rows("plant", "SELECT count(*) FROM sensors").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_have_the_types_that_postgresql_names() {
    let node = DataNode::start(
        "
databases:
  - name: plant
    ingest: plant
    tables:
      typed:
        columns: {a: bigint NOT NULL, b: smallint, c: double precision, d: 'numeric(10,2)', e: varchar, f: timestamptz,
          g: timestamp with time zone, h: uuid, i: jsonb, j: bool, k: numeric, l: bytea, m: timestamp without time zone, n: real}
",
    );
    let row = r#"[{"a": 1, "b": 2, "c": 0.5, "d": 12.5, "e": "x", "f": "2026-01-01T02:00:00+02:00", "g": null,
                   "h": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "i": {"k": 1}, "j": true, "m": "2026-01-01T00:00:00"}]"#;
    let stored = node.post_json("typed", row).await;
    assert_eq!(stored["rows"], 1, "{stored}");
    let values = node.rows("plant", "SELECT a, b, c, d, e, h, j, extract(hour FROM f) FROM typed").await;
    assert_eq!(values, "1,2,0.5,12.50,x,a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,true,0");
    for row in [r#"[{"a": null}]"#, r#"[{"a": 1, "b": 40000}]"#, r#"[{"a": 1, "d": 0.001}]"#] {
        assert_eq!(node.post_json("typed", row).await["status"], 400, "{row}");
    }
}

#[test]
fn invalid_declarations_are_named() {
    let configured = ConfiguredFolder::new(
        "
databases:
  - name: plant
    ingest: plant
    tables:
      a: {columns: {time: moment}}
      b: {partition_by: ['week(time)'], retention: 1d}
      c: {transform: SELECT max(value) FROM incoming GROUP BY device}
      d: {stamp: {tenant: nobody}, delimiter: ;}
  - {name: shop, files: shop, tables: {orders: {retention: 1d}}, create_tables: true}
  - {name: list, ingest: [a, b]}
",
    );
    insta::assert_snapshot!(configured.usage_error(&["config", "check"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_sqlite_take_rows() {
    let configured = ConfiguredFolder::new("databases: [{name: local, sqlite: local.db, ingest: [events]}]");
    let file = rusqlite::Connection::open(configured.folder().join("local.db")).unwrap();
    file.execute_batch(
        "CREATE TABLE events (id INTEGER PRIMARY KEY, name TEXT NOT NULL); CREATE TABLE other (id INTEGER);",
    )
    .unwrap();
    let node = DataNode { server: serve(&configured), configured };
    let stored = node.post("/data/local/events", "text/csv", "id,name\n1,a\n2,b\n").await;
    assert_eq!(stored.status(), 200, "{}", stored.text().await.unwrap());
    assert_eq!(node.rows("local", "SELECT count(*), max(name) FROM events").await, "2,b");
    let refused = node.post("/data/local/events", "text/csv", "id,name\n3,c\n1,d\n").await;
    assert_eq!(refused.status(), 400, "{}", refused.text().await.unwrap());
    assert_eq!(node.rows("local", "SELECT count(*) FROM events").await, "2");
    assert_eq!(node.post("/data/local/other", "text/csv", "id\n1\n").await.status(), 404);
    let metrics = node.server.url.replace("/mcp", "/metrics");
    let metrics = reqwest::get(metrics).await.unwrap().text().await.unwrap();
    let of_ingestion: BTreeSet<&str> = metrics.lines().filter(|line| line.starts_with("tidegate_ingest_")).collect();
    insta::assert_snapshot!(of_ingestion.into_iter().collect::<Vec<_>>().join("\n"));
}
