//! Tables that take rows, as parts of a node: policies, listeners, pages, audit, faults of bodies and of the disk.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use reqwest::{Client, Response};
use rmcp::model::{CallToolRequestParams, ServerNotification, SubscriptionFilter};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::rmcp_client::{CLIENT_TRANSPORTS, connect, serve};
use super::server::{CHANGE_TIMEOUT, Server, wait_until};
use super::{ConfiguredFolder, postgres};

const CONFIGURATION: &str = "
databases: [{name: plant, ingest: plant, tables: {sensors: {columns: {n: int64 not null, device: string}}}}]
results: {folder: spool, keep_free: 0B}
";
const NDJSON: &str = "application/x-ndjson";

async fn post(server: &Server, path: &str, body: impl Into<reqwest::Body>) -> Response {
    let request = Client::new().post(server.url.replace("/mcp", path)).header("content-type", NDJSON);
    request.body(body).send().await.unwrap()
}

/// The rows of a statement over `database`, a line each.
async fn rows(server: &Server, database: &str, sql: &str) -> String {
    let arguments = json!({"database": database, "sql": sql, "format": "csv"});
    let response = Client::new().post(server.url.replace("/mcp", "/rest/sql")).json(&arguments).send().await.unwrap();
    response.text().await.unwrap().lines().skip(1).collect::<Vec<_>>().join("\n")
}

fn numbered(range: std::ops::Range<u32>) -> String {
    range.map(|n| format!("{{\"n\": {n}, \"device\": \"device {n}\"}}\n")).collect()
}

#[test]
fn declared_tables_exist_before_their_first_row() {
    let configured = ConfiguredFolder::new(
        "
databases: [{name: plant, ingest: plant, tables: {events: {columns: {time: timestamp not null, message: string}}}}]
logs: [{name: app, table: plant.events}]
",
    );
    let ran = configured.run(&["config", "check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = configured.run(&["call", "sql", "sql=SELECT count(*) AS n FROM events"]);
    assert_eq!(ran.stdout.trim_end(), r#"[{"n":0}]"#, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_hold_for_rows_in_the_log_and_in_files_and_for_rejected_rows() {
    let configured = ConfiguredFolder::new(
        "
databases:
  - name: plant
    ingest: plant
    tables: {sensors: {columns: {owner: string, n: int64, secret: string}, stamp: {owner: subject}}}
    policies:
      - {table: sensors, rows: 'owner = :subject', columns: {secret: null}, except_roles: [keeper]}
      - {table: sensors__rejects, rows: 'owner = :subject', columns: {text: deny}, except_roles: [keeper]}
roles:
  - {name: device, toolsets: ['*'], databases: [plant], ingest: [plant.sensors]}
  - {name: keeper, toolsets: ['*'], databases: [plant], ingest: [plant.sensors], access: [operator]}
auth: {proxy: {networks: [127.0.0.1], user_header: x-user, roles_header: x-roles}}
",
    );
    let server = serve(&configured);
    let request = |user: &str, role: &str, path: &str| {
        let request = Client::new().post(server.url.replace("/mcp", path));
        request.header("x-user", user).header("x-roles", role)
    };
    let select = async |user: &str, role: &str, sql: &str| {
        let request = request(user, role, "/rest/sql").json(&json!({"sql": sql, "format": "csv"}));
        request.send().await.unwrap().text().await.unwrap().replace("\r\n", "\n")
    };
    for (user, n) in [("ann", 1), ("bob", 2)] {
        let body = format!("{{\"owner\": \"keeper\", \"n\": {n}, \"secret\": \"s{n}\"}}\n{{\"n\": \"bad {n}\"}}\n");
        let request = request(user, "device", "/data/plant/sensors?on_reject=row").header("content-type", NDJSON);
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    }
    for place in ["log", "files"] {
        let own = select("ann", "device", "SELECT owner, n, secret FROM sensors ORDER BY n").await;
        assert_eq!(own, "owner,n,secret\nann,1,\n", "{place}");
        let all = select("eve", "keeper", "SELECT owner, n, secret FROM sensors ORDER BY n").await;
        assert_eq!(all, "owner,n,secret\nann,1,s1\nbob,2,s2\n", "{place}");
        let own = select("bob", "device", "SELECT owner, line FROM sensors__rejects").await;
        assert_eq!(own, "owner,line\nbob,2\n", "{place}");
        let denied = select("bob", "device", "SELECT text FROM sensors__rejects").await;
        assert!(!denied.contains("bad"), "{place}: {denied}");
        let all = select("eve", "keeper", "SELECT text FROM sensors__rejects").await;
        assert!(all.contains("bad 1") && all.contains("bad 2"), "{place}: {all}");
        let request = request("eve", "keeper", "/rest/tools/maintain_ingest/call");
        let flushed = request.json(&json!({"action": "flush"})).send().await.unwrap();
        assert_eq!(flushed.status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_draw_on_the_memory_of_the_node() {
    let configured = ConfiguredFolder::new(&format!("{CONFIGURATION}limits: {{memory: 4MB}}\n"));
    let server = serve(&configured);
    let row = |bytes: usize| format!("{{\"n\": 1, \"device\": \"{}\"}}\n", "x".repeat(bytes));
    let refused = post(&server, "/data/plant/sensors", row(1_500_000)).await;
    assert_eq!(refused.status(), 413);
    let text = refused.text().await.unwrap();
    assert!(text.contains("limits.memory"), "{text}");
    assert_eq!(post(&server, "/data/plant/sensors", row(100)).await.status(), 200);
    assert_eq!(rows(&server, "plant", "SELECT count(*) FROM sensors").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_of_a_table_learn_that_it_grew() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    assert_eq!(post(&server, "/data/plant/sensors", numbered(0..1)).await.status(), 200);
    let client = connect((), CLIENT_TRANSPORTS[0], &server, &configured).await;
    let resources = client.list_all_resources().await.unwrap();
    let table = resources.iter().find(|resource| resource.uri.ends_with("/sensors")).unwrap().uri.clone();
    let mut changes =
        client.listen(SubscriptionFilter::builder().resource_subscription(&*table).build()).await.unwrap();
    assert_eq!(post(&server, "/data/plant/sensors", numbered(1..2)).await.status(), 200);
    let change = tokio::time::timeout(CHANGE_TIMEOUT, changes.next()).await.unwrap().unwrap();
    let Some(ServerNotification::ResourceUpdatedNotification(updated)) = change else {
        panic!("another notification: {change:?}");
    };
    assert_eq!(updated.params.uri, table);
    changes.cancel().await.unwrap();
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_an_answer_stay_on_their_snapshot() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    assert_eq!(post(&server, "/data/plant/sensors", numbered(0..5_000)).await.status(), 200);
    let client = connect((), CLIENT_TRANSPORTS[0], &server, &configured).await;
    let page = async |cursor: Option<String>| {
        let mut arguments =
            json!({"database": "plant", "sql": "SELECT n FROM sensors ORDER BY n", "max_rows": 100_000});
        if let Some(cursor) = cursor {
            arguments["cursor"] = cursor.into();
        }
        let arguments = arguments.as_object().unwrap().clone();
        let answer = client.call_tool(CallToolRequestParams::new("sql").with_arguments(arguments)).await.unwrap();
        let answer = serde_json::to_value(&answer).unwrap();
        let rows: Vec<Value> = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
        let cursor = answer["_meta"]["dev.tidegate/cursor"].as_str().map(str::to_owned);
        (rows.into_iter().map(|row| row["n"].as_u64().unwrap()).collect::<Vec<_>>(), cursor)
    };
    let (mut numbers, mut cursor) = page(None).await;
    assert!(cursor.is_some(), "the answer has one page");
    assert_eq!(post(&server, "/data/plant/sensors", numbered(5_000..6_000)).await.status(), 200);
    let replaced = Client::new().put(server.url.replace("/mcp", "/data/plant/sensors")).header("content-type", NDJSON);
    assert_eq!(replaced.body(numbered(7_000..7_001)).send().await.unwrap().status(), 200);
    while let Some(next) = cursor {
        let (more, following) = page(Some(next)).await;
        numbers.extend(more);
        cursor = following;
    }
    assert_eq!(numbers, (0..5_000).collect::<Vec<u64>>());
    assert_eq!(rows(&server, "plant", "SELECT n FROM sensors").await, "7000");
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_line_among_100_000_is_named_and_refuses_all_or_only_itself() {
    const BROKEN: u32 = 70_001;
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    let body = format!("{}{{\"n\": 1, \"device\": \n{}", numbered(1..BROKEN), numbered(BROKEN + 1..100_001));
    let refused = post(&server, "/data/plant/sensors", body.clone()).await;
    assert_eq!(refused.status(), 400);
    let text = refused.text().await.unwrap();
    assert!(text.contains("line 70001") && text.contains("nothing was stored"), "{text}");
    assert_eq!(rows(&server, "plant", "SELECT count(*) FROM sensors").await, "0");
    let kept: Value = post(&server, "/data/plant/sensors?on_reject=row", body).await.json().await.unwrap();
    assert_eq!((&kept["rows"], &kept["rejected"]), (&json!(99_999), &json!(1)), "{kept}");
    assert_eq!(kept["rejections"][0]["line"], BROKEN, "{kept}");
    assert_eq!(rows(&server, "plant", "SELECT count(*), count(DISTINCT n) FROM sensors").await, "99999,99999");
    assert_eq!(rows(&server, "plant", "SELECT line FROM sensors__rejects").await, "70001");
    // One of the requests was refused, and one kept its rejected row.
    assert_eq!((counted_rows(&server, "stored").await, counted_rows(&server, "rejected").await), (99_999, 2));
}

/// The rows with this outcome, as the metrics have them.
async fn counted_rows(server: &Server, outcome: &str) -> u64 {
    let metrics = Client::new().get(server.url.replace("/mcp", "/metrics")).send().await.unwrap().text().await.unwrap();
    let name = format!("tidegate_ingest_rows_total{{database=\"plant\",outcome=\"{outcome}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
    value.unwrap_or_else(|| panic!("{name}: {metrics}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_receivers_leave_out_are_counted_as_rejected() {
    let configured =
        ConfiguredFolder::new(&format!("{CONFIGURATION}receivers: {{otlp: plant, prometheus: plant, bulk: plant}}\n"));
    let server = serve(&configured);
    let record = json!({"traceId": "00ff", "body": {"stringValue": "its trace has a wrong length"}});
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
    let sent = Client::new().post(server.url.replace("/mcp", "/v1/logs")).json(&logs).send().await.unwrap();
    assert_eq!((sent.status().as_u16(), counted_rows(&server, "rejected").await), (200, 1));
    let documents =
        "{\"index\":{\"_index\":\"sensors\"}}\n{\"n\":\"x\"}\n{\"index\":{\"_index\":\"sensors\"}}\n{\"n\":1}\n";
    assert_eq!(post(&server, "/_bulk", documents).await.status(), 200);
    assert_eq!((counted_rows(&server, "stored").await, counted_rows(&server, "rejected").await), (1, 2));
    // Its native histogram has no table.
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../telemetry/tests/it/formats/fixtures");
    let request = Client::new().post(server.url.replace("/mcp", "/api/v1/write")).header("content-encoding", "snappy");
    let request = request.header("content-type", "application/x-protobuf;proto=io.prometheus.write.v2.Request");
    let sent = request.body(std::fs::read(fixtures.join("remote_write_2.snappy")).unwrap()).send().await.unwrap();
    assert_eq!(sent.status(), 400);
    assert_eq!(counted_rows(&server, "rejected").await, 3, "{}", sent.text().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_line_of_a_write_names_table_rows_bytes_and_key() {
    let configured =
        ConfiguredFolder::new(&format!("{CONFIGURATION}receivers: {{otlp: plant}}\naudit: {{file: audit.jsonl}}\n"));
    let server = serve(&configured);
    let body = numbered(0..3);
    let request = Client::new().post(server.url.replace("/mcp", "/data/plant/sensors")).header("content-type", NDJSON);
    let response = request.header("idempotency-key", "the-first").body(body.clone()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let point = json!({"timeUnixNano": "5", "asInt": "7"});
    let gauge = json!({"name": "level", "gauge": {"dataPoints": [point]}});
    let metrics = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [gauge]}]}]});
    let sent = Client::new().post(server.url.replace("/mcp", "/v1/metrics")).json(&metrics).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    let refused = Client::new().post(server.url.replace("/mcp", "/api/v1/write")).body("").send().await.unwrap();
    assert_eq!(refused.status(), 404);
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    let log = std::fs::read_to_string(configured.folder().join("audit.jsonl")).unwrap();
    let line_of = |tool: &str| -> Value {
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut of_tool = lines.filter(|line| line["target"]["name"] == tool);
        of_tool.next().unwrap_or_else(|| panic!("{tool}: {log}"))
    };
    let line = line_of("append_rows");
    assert_eq!((&line["rows"], &line["outcome"]), (&json!(3), &json!("done")), "{line}");
    assert!(line["bytes"].as_u64().unwrap() >= body.len() as u64, "{line}");
    let statement = &line["statements"][0];
    assert_eq!((&statement["database"], &statement["tables"]), (&json!("plant"), &json!(["sensors"])), "{line}");
    assert_eq!(statement["fingerprint"], "append_rows of ndjson, key the-first", "{line}");
    let line = line_of("receive_otlp");
    assert_eq!(
        (&line["rows"], &line["statements"][0]["tables"]),
        (&json!(1), &json!(["otel_metrics_gauge"])),
        "{line}"
    );
    let fingerprint = line["statements"][0]["fingerprint"].as_str().unwrap();
    assert!(fingerprint.starts_with("receive_otlp, key telemetry "), "{line}");
    assert_eq!(line_of("receive_prometheus")["outcome"], "not_found", "{log}");
}

/// A file system of 6 MiB in memory.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` if the tests may not mount file systems, which `scripts/test` reports.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(folder.path()).output();
        mount.is_ok_and(|output| output.status.success()).then(|| Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_answered_with_retry_after_while_readers_go_on() {
    let Some(disk) = SmallDisk::mount() else { return };
    let folder = disk.0.path().join("plant");
    let configured =
        ConfiguredFolder::new(&CONFIGURATION.replace("ingest: plant", &format!("ingest: '{}'", folder.display())));
    let server = serve(&configured);
    let mut stored = 0;
    let refused = loop {
        let response = post(&server, "/data/plant/sensors", numbered(stored..stored + 10_000)).await;
        if response.status() != 200 {
            break response;
        }
        stored += 10_000;
    };
    assert_eq!(refused.status(), 503);
    let seconds: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(Duration::from_secs(seconds) > Duration::ZERO);
    let text = refused.text().await.unwrap();
    assert!(text.contains("nothing was stored"), "{text}");
    assert_eq!(rows(&server, "plant", "SELECT count(*) FROM sensors").await, stored.to_string());
}

/// Nobody reloads or restarts the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_a_full_disk_kept_closed_opens_when_there_is_space() {
    let Some(disk) = SmallDisk::mount() else { return };
    let filler = disk.0.path().join("filler");
    assert!(std::fs::write(&filler, vec![0; 8 << 20]).is_err(), "the disk is full");
    let folder = disk.0.path().join("plant");
    let configured =
        ConfiguredFolder::new(&CONFIGURATION.replace("ingest: plant", &format!("ingest: '{}'", folder.display())));
    let server = serve(&configured);
    let refused = post(&server, "/data/plant/sensors", numbered(0..1)).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "60");
    let text = refused.text().await.unwrap();
    assert!(text.contains("is closed: ") && text.contains("; a server opens it when that has passed"), "{text}");
    std::fs::remove_file(&filler).unwrap();
    wait_until(async || post(&server, "/data/plant/sensors", numbered(0..1)).await.status().is_success()).await;
    assert_eq!(rows(&server, "plant", "SELECT count(*) FROM sensors").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_postgresql_take_rows() {
    let target = postgres::shop("ingested_tables");
    let database = format!("ingested_tables_{}", std::process::id());
    postgres::psql(&database, "CREATE TABLE events (id bigint PRIMARY KEY, name text NOT NULL)");
    postgres::psql(&database, "CREATE TABLE other (id bigint)");
    let configured =
        ConfiguredFolder::new(&format!("databases: [{{name: shop, postgres: '{target}', ingest: [events]}}]\n"));
    let server = serve(&configured);
    let line = |id: u32| format!("{{\"id\": {id}, \"name\": \"event {id}\"}}\n");
    let keyed = async |key: &str, body: String| -> Value {
        let request =
            Client::new().post(server.url.replace("/mcp", "/data/shop/events")).header("content-type", NDJSON);
        request.header("idempotency-key", key).body(body).send().await.unwrap().json().await.unwrap()
    };
    for repeated in [false, true] {
        let answer = keyed("first", [line(1), line(2)].concat()).await;
        assert_eq!((&answer["rows"], &answer["repeated"]), (&json!(2), &json!(repeated)), "{answer}");
    }
    assert_eq!(rows(&server, "shop", "SELECT count(*), max(name) FROM events").await, "2,event 2");
    // The primary key refuses one row, and with it the write.
    let refused = post(&server, "/data/shop/events", [line(3), line(1)].concat()).await;
    assert_eq!(refused.status(), 400, "{}", refused.text().await.unwrap());
    assert_eq!(rows(&server, "shop", "SELECT count(*) FROM events").await, "2");
    assert_eq!(post(&server, "/data/shop/other", line(1)).await.status(), 404);
}
