//! Receivers of telemetry: what is stored, who may store it, and what senders get as an answer.

use std::io::Write as _;
use std::path::Path;

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use super::server::Server;
use super::{ConfiguredFolder, tidegate};

const CONFIGURATION: &str = "
databases: [{name: telemetry, ingest: ./telemetry, tables: {otel_logs: {stamp: {sender: subject}}}}]
receivers: {otlp: telemetry, prometheus: telemetry, bulk: telemetry}
auth: {keys: keys.json}
roles:
  - {name: sender, ingest: ['telemetry.*']}
  - {name: gauges, ingest: ['telemetry.otel_metrics_gauge', 'telemetry.app']}
  - {name: reader, databases: [telemetry], toolsets: ['*']}
";
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";

struct Node {
    server: Server,
    configured: ConfiguredFolder,
    keys: Vec<(&'static str, String)>,
}

impl Node {
    fn start(configuration: &str) -> Self {
        let configured = ConfiguredFolder::new(configuration);
        let key = |role: &'static str| {
            let ran = configured.run(&["key", "add", role, "--role", role]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            (role, ran.stdout.trim().to_owned())
        };
        let keys = ["sender", "gauges", "reader"].map(key).into();
        let server = serve(&configured);
        Self { server, configured, keys }
    }

    /// The same node after its process was killed.
    fn killed_and_restarted(self) -> Self {
        let Self { server, configured, keys } = self;
        drop(server);
        let server = serve(&configured);
        Self { server, configured, keys }
    }

    fn key(&self, role: &str) -> &str {
        self.keys.iter().find(|(name, _)| *name == role).map(|(_, key)| key.as_str()).unwrap()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url.trim_end_matches("/mcp"))
    }

    async fn post(&self, role: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Response {
        let request = Client::new().post(self.url(path)).bearer_auth(self.key(role)).body(body.into());
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().await.unwrap()
    }

    async fn send_json(&self, role: &str, path: &str, body: &Value) -> Response {
        self.post(role, path, &[("content-type", JSON)], body.to_string()).await
    }

    /// The rows of a statement.
    async fn rows(&self, sql: &str) -> Vec<Value> {
        let request = Client::new().post(self.url("/rest/sql")).bearer_auth(self.key("reader"));
        let response =
            request.json(&json!({"sql": sql})).header("accept", "application/x-ndjson").send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{sql}");
        let text = response.text().await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The answer of a tool over REST.
    async fn call(&self, role: &str, tool: &str, arguments: &Value) -> (StatusCode, Value) {
        let request = Client::new().post(self.url(&format!("/rest/tools/{tool}/call"))).bearer_auth(self.key(role));
        let response = request.json(arguments).send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }
}

fn serve(configured: &ConfiguredFolder) -> Server {
    Server::start(tidegate().current_dir(configured.folder()).args(["serve", "--listen", "127.0.0.1:0"]))
}

fn logs(bodies: &[&str]) -> Value {
    let record = |body: &&str| json!({"timeUnixNano": "1700000000000000001", "body": {"stringValue": body}});
    let records: Vec<Value> = bodies.iter().map(record).collect();
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]});
    json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]})
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn logs_are_rows_with_the_attributes_of_their_sender_and_survive_a_kill() {
    let node = Node::start(CONFIGURATION);
    let response = node.send_json("sender", "/v1/logs", &logs(&["one", "two"])).await;
    assert_eq!((response.status(), response.text().await.unwrap().as_str()), (StatusCode::OK, "{}"));
    let compressed = gzip(logs(&["three"]).to_string().as_bytes());
    let headers = [("content-type", "application/json; charset=utf-8"), ("content-encoding", "gzip")];
    assert_eq!(node.post("sender", "/v1/logs", &headers, compressed).await.status(), StatusCode::OK);
    let node = node.killed_and_restarted();
    let rows = node.rows("SELECT body, service_name, sender FROM otel_logs ORDER BY body").await;
    let row = |body: &str| json!({"body": body, "service_name": "shop", "sender": "sender"});
    assert_eq!(rows, [row("one"), row("three"), row("two")]);
    // Equal log records may be different ones.
    assert_eq!(node.send_json("sender", "/v1/logs", &logs(&["one", "two"])).await.status(), StatusCode::OK);
    assert_eq!(node.rows("SELECT count(*) AS n FROM otel_logs").await, [json!({"n": 5})]);
    let (status, answer) = node.call("reader", "query_logs", &json!({"query": "three"})).await;
    assert!(status.is_success() && answer.to_string().contains("three"), "{answer}");
}

#[tokio::test]
async fn a_request_is_stored_as_a_whole_or_refused() {
    let node = Node::start(CONFIGURATION);
    let point = |name: &str, kind: &str| {
        let point = json!({"timeUnixNano": "1700000000000000000", "asDouble": 1.5});
        let sum = json!({"dataPoints": [point], "aggregationTemporality": 2, "isMonotonic": true});
        json!({"name": name, kind: sum})
    };
    let gauge = json!({"name": "g", "gauge": {"dataPoints": [{"timeUnixNano": "1700000000000000000", "asInt": "7"}]}});
    let metrics = |list: Vec<Value>| json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": list}]}]});
    let both = metrics(vec![gauge.clone(), point("s", "sum")]);
    let refused = node.send_json("gauges", "/v1/metrics", &both).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let status: Value = refused.json().await.unwrap();
    assert_eq!(status["code"], 7);
    assert!(status["message"].as_str().unwrap().contains("telemetry.otel_metrics_sum"), "{status}");
    let tables = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'otel_metrics%'";
    assert_eq!(node.rows(tables).await, Vec::<Value>::new());
    assert_eq!(node.send_json("gauges", "/v1/metrics", &metrics(vec![gauge])).await.status(), StatusCode::OK);
    assert_eq!(node.send_json("sender", "/v1/metrics", &both).await.status(), StatusCode::OK);
    // A repeat of the same data points, after its answer was lost.
    assert_eq!(node.send_json("sender", "/v1/metrics", &both).await.status(), StatusCode::OK);
    let gauges = node.rows("SELECT value_int AS v FROM otel_metrics_gauge").await;
    assert_eq!(gauges, [json!({"v": 7}), json!({"v": 7})]);
    assert_eq!(node.rows("SELECT value AS v FROM otel_metrics_sum").await, [json!({"v": 1.5})]);
}

#[tokio::test]
async fn sums_declare_whether_they_are_counters() {
    const MINUTE: u64 = 1_700_000_040;
    let node = Node::start(CONFIGURATION);
    let points = |values: [f64; 3]| -> Vec<Value> {
        let points = values.iter().zip([30, 90, 150]);
        points.map(|(value, after)| json!({"timeUnixNano": ((MINUTE + after) * 1_000_000_000).to_string(), "asDouble": value})).collect()
    };
    let sum = |name: &str, temporality: u8, is_monotonic: bool, values: [f64; 3]| {
        json!({"name": name, "sum": {"dataPoints": points(values), "aggregationTemporality": temporality,
            "isMonotonic": is_monotonic}})
    };
    let count = json!({"timeUnixNano": "1700000100000000000", "count": "5", "sum": 2.5, "bucketCounts": ["5"]});
    let histogram = json!({"name": "latency", "histogram": {"dataPoints": [count], "aggregationTemporality": 2}});
    let metrics = json!([
        sum("requests", 2, true, [10.0, 40.0, 100.0]),
        sum("jobs", 1, true, [6.0, 12.0, 18.0]),
        sum("queue_total", 2, false, [1.0, 5.0, 3.0]),
        sum("mixed", 1, true, [1.0, 2.0, 3.0]),
        sum("mixed", 2, true, [1.0, 3.0, 6.0]),
        histogram
    ]);
    let body = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]});
    assert_eq!(node.send_json("sender", "/v1/metrics", &body).await.status(), StatusCode::OK);

    let listed = node.call("reader", "list_metrics", &json!({"source": "otel_metrics_sum"})).await.1;
    let kinds: Vec<Value> =
        listed["metrics"].as_array().unwrap().iter().map(|metric| json!([metric["name"], metric["kind"]])).collect();
    let expected = json!([["jobs", "delta"], ["mixed", null], ["queue_total", "gauge"], ["requests", "counter"]]);
    assert_eq!(Value::Array(kinds), expected, "{listed}");
    let listed = node.call("reader", "list_metrics", &json!({"source": "otel_metrics_histogram.count"})).await.1;
    assert_eq!(listed["metrics"][0]["kind"], "counter", "{listed}");

    let query = async |metric: &str, more: Value| {
        let mut arguments = json!({"source": "otel_metrics_sum", "metric": metric, "after": MINUTE,
            "before": MINUTE + 180, "points": 3});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node.call("reader", "query_metrics", &arguments).await
    };
    let (_, requests) = query("requests", json!({})).await;
    assert_eq!(
        (&requests["computed"], &requests["series"][0]["values"]),
        (&json!("rate of requests"), &json!([null, 0.5, 1])),
        "{requests}"
    );
    let (_, jobs) = query("jobs", json!({})).await;
    assert_eq!(jobs["series"][0]["values"], json!([0.1, 0.2, 0.3]), "{jobs}");
    let (_, jobs) = query("jobs", json!({"aggregation": "increase"})).await;
    assert_eq!(jobs["series"][0]["values"], json!([6, 12, 18]), "{jobs}");
    let (_, queue) = query("queue_total", json!({})).await;
    assert_eq!(queue["series"][0]["values"], json!([1, 5, 3]), "{queue}");
    let (status, refused) = query("queue_total", json!({"aggregation": "rate"})).await;
    assert!(!status.is_success() && refused.to_string().contains("is a gauge"), "{refused}");
    let (status, refused) = query("mixed", json!({})).await;
    assert!(!status.is_success() && refused.to_string().contains("totals and increments"), "{refused}");
    let (_, increments) = query("mixed", json!({"labels": {"aggregation_temporality": "DELTA"}})).await;
    assert_eq!(increments["series"][0]["values"], json!([1.0 / 60.0, 2.0 / 60.0, 0.05]), "{increments}");
}

#[tokio::test]
async fn labels_of_a_resource_appear_once() {
    let node = Node::start(CONFIGURATION);
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let point = |country: &str, value: &str| json!({"timeUnixNano": "1700000100000000000", "asInt": value, "attributes": [attribute("country", country)]});
    let gauge = |name: &str, points: Value| json!({"name": name, "gauge": {"dataPoints": points}});
    let metrics =
        [gauge("stock", json!([point("de", "1"), point("fr", "2")])), gauge("open", json!([point("de", "3")]))];
    let resource = json!({"attributes": [attribute("service.name", "shop"), attribute("host.name", "node-1")]});
    let body = json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": metrics}]}]});
    assert_eq!(node.send_json("sender", "/v1/metrics", &body).await.status(), StatusCode::OK);

    let listed = node.call("reader", "list_metrics", &json!({"source": "otel_metrics_gauge"})).await.1;
    assert_eq!(listed["shared_labels"]["resource.host.name"], "node-1", "{listed}");
    assert_eq!(listed["metrics"][1]["labels"], json!({"country": 2}), "{listed}");
    let query = async |more: Value| {
        let mut arguments = json!({"source": "otel_metrics_gauge", "metric": "stock", "after": 1_700_000_000,
            "before": 1_700_000_200, "points": 1});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node.call("reader", "query_metrics", &arguments).await.1
    };
    let both = query(json!({})).await;
    assert_eq!(both["shared_labels"]["resource.host.name"], "node-1", "{both}");
    let expected = json!([{"labels": {"country": "fr"}, "values": [2]}, {"labels": {"country": "de"}, "values": [1]}]);
    assert_eq!(both["series"], expected, "{both}");
    // One series has all of its labels.
    let one = query(json!({"labels": {"country": "de"}})).await;
    assert_eq!(one["series"][0]["labels"]["resource.host.name"], "node-1", "{one}");
    assert!(one["shared_labels"].is_null(), "{one}");
}

#[tokio::test]
async fn refusals_have_the_form_of_the_protocol() {
    let node = Node::start(CONFIGURATION);
    let headers = [("content-type", PROTOBUF)];
    let response = node.post("sender", "/v1/traces", &headers, b"\xff\xff".to_vec()).await;
    assert_eq!(
        (response.status(), response.headers()["content-type"].to_str().unwrap()),
        (StatusCode::BAD_REQUEST, PROTOBUF)
    );
    // The code and the message of google.rpc.Status.
    assert!(response.bytes().await.unwrap().starts_with(&[0x08, 3, 0x12]));
    let response = node.send_json("reader", "/v1/logs", &logs(&["one"])).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let anonymous = Client::new().post(node.url("/v1/logs")).header("content-type", JSON).body("{}");
    let response = anonymous.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.json::<Value>().await.unwrap()["code"], 16);
    let response = node.post("sender", "/v1/logs", &[("content-type", "text/plain")], "a").await;
    assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let response = Client::new().get(node.url("/v1/logs")).bearer_auth(node.key("sender")).send().await.unwrap();
    assert_eq!(
        (response.status(), response.headers()["allow"].to_str().unwrap()),
        (StatusCode::METHOD_NOT_ALLOWED, "POST, OPTIONS")
    );
    let foreign = [("content-type", JSON), ("origin", "https://elsewhere.example")];
    assert_eq!(node.post("sender", "/v1/logs", &foreign, "{}").await.status(), StatusCode::FORBIDDEN);
    let headers = [("content-type", PROTOBUF), ("content-encoding", "snappy")];
    let response = node.post("sender", "/api/v1/write", &headers, "text").await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(response.headers()["x-prometheus-remote-write-samples-written"], "0");
    let large = gzip(&vec![b' '; (64 << 20) + 1]);
    let headers = [("content-type", JSON), ("content-encoding", "gzip")];
    assert_eq!(node.post("sender", "/v1/logs", &headers, large).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let record = json!({"traceId": "00ff", "body": {"stringValue": "x"}});
    let partial = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
    let response = node.send_json("sender", "/v1/logs", &partial).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.json::<Value>().await.unwrap()["partialSuccess"]["rejectedLogRecords"], "1");
}

#[tokio::test]
async fn samples_of_remote_write_are_stored_once() {
    let node = Node::start(CONFIGURATION);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../telemetry/tests/it/formats/fixtures");
    let bodies = [
        (PROTOBUF, "remote_write_1.snappy"),
        ("application/x-protobuf;proto=io.prometheus.write.v2.Request", "remote_write_2.snappy"),
    ];
    for (media_type, name) in bodies {
        let body = std::fs::read(fixtures.join(name)).unwrap();
        let headers = [("content-type", media_type), ("content-encoding", "snappy")];
        let first = node.post("sender", "/api/v1/write", &headers, body.clone()).await;
        let stored = node.rows("SELECT * FROM prometheus_samples").await;
        assert!(!stored.is_empty());
        let second = node.post("sender", "/api/v1/write", &headers, body).await;
        // Each body has a native histogram, which is rejected.
        assert_eq!([first.status(), second.status()], [StatusCode::BAD_REQUEST; 2]);
        assert_eq!(first.headers()["content-type"], "text/plain; charset=utf-8");
        let is_v2 = media_type.contains("v2");
        assert_eq!(written_records(&first), if is_v2 { ["2", "0", "1"].map(Some) } else { [None; 3] });
        assert_eq!(node.rows("SELECT * FROM prometheus_samples").await.len(), stored.len());
        let empty = node.post("sender", "/api/v1/write", &headers, [0_u8]).await;
        assert_eq!((empty.status(), empty.headers().get("content-type")), (StatusCode::NO_CONTENT, None));
        assert_eq!(written_records(&empty), [is_v2.then_some("0"); 3]);
    }
}

fn written_records(response: &Response) -> [Option<&str>; 3] {
    ["samples", "histograms", "exemplars"].map(|kind| {
        let value = response.headers().get(format!("x-prometheus-remote-write-{kind}-written"));
        value.map(|value| value.to_str().unwrap())
    })
}

#[tokio::test]
async fn documents_fail_one_by_one() {
    let node = Node::start(CONFIGURATION);
    let headers = [("content-type", "application/x-ndjson")];
    let body = "{\"index\":{\"_index\":\"app-2026.11.26\"}}\n{\"a\":1}\n{\"create\":{\"_index\":\"secret\"}}\n{\"a\":1}\n\
                {\"create\":{\"_index\":\"app\"}}\n{\"a\":\n";
    let response = node.post("gauges", "/_bulk", &headers, body).await;
    assert_eq!(
        (response.status(), response.headers()["x-elastic-product"].to_str().unwrap()),
        (StatusCode::OK, "Elasticsearch")
    );
    let answer: Value = response.json().await.unwrap();
    let status = |index: usize, action: &str| answer["items"][index][action]["status"].as_u64();
    assert_eq!(
        (status(0, "index"), status(1, "create"), status(2, "create")),
        (Some(201), Some(403), Some(400)),
        "{answer}"
    );
    assert_eq!(node.rows("SELECT a FROM app").await, [json!({"a": 1})]);
    let probe =
        |agent: &str| Client::new().get(node.url("/")).bearer_auth(node.key("gauges")).header("user-agent", agent);
    let info: Value = probe("Elastic-filebeat/8.17.0").send().await.unwrap().json().await.unwrap();
    assert_eq!(info["tagline"], "You Know, for Search");
    assert_eq!(probe("curl/8.0").send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn traces_are_trees_for_those_who_may_read_them() {
    let node = Node::start(CONFIGURATION);
    let span = |id: &str, parent: &str, name: &str| {
        json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": id, "parentSpanId": parent, "name": name,
            "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000012500000"})
    };
    let spans = [span("00f067aa0ba902b7", "", "root"), span("00f067aa0ba902b8", "00f067aa0ba902b7", "child")];
    let traces = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    let arguments = json!({"trace_id": "0af7651916cd43dd8448eb211c80319c"});
    assert_eq!(
        node.call("reader", "get_trace", &arguments).await.0,
        StatusCode::NOT_FOUND,
        "the table does not exist yet"
    );
    assert_eq!(node.send_json("sender", "/v1/traces", &traces).await.status(), StatusCode::OK);
    let (status, tree) = node.call("reader", "get_trace", &arguments).await;
    assert_eq!(
        (status, &tree["span_count"], &tree["spans"][1]["depth"]),
        (StatusCode::OK, &json!(2), &json!(1)),
        "{tree}"
    );
    assert_eq!(node.call("sender", "get_trace", &arguments).await.0, StatusCode::NOT_FOUND, "it may write only");
    let (status, wrong) = node.call("reader", "get_trace", &json!({"trace_id": "xyz"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
    let (status, tools) = node.call("reader", "list_tables", &json!({"database": "telemetry"})).await;
    assert!(status.is_success() && tools.to_string().contains("otel_traces"), "{tools}");
}

#[tokio::test]
async fn nothing_is_received_without_receivers() {
    let node =
        Node::start(&CONFIGURATION.replace("receivers: {otlp: telemetry, prometheus: telemetry, bulk: telemetry}", ""));
    assert_eq!(node.send_json("sender", "/v1/logs", &logs(&["one"])).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(node.post("sender", "/_bulk", &[], "{}\n").await.status(), StatusCode::NOT_FOUND);
    let probe =
        Client::new().get(node.url("/")).bearer_auth(node.key("sender")).header("user-agent", "Elastic-filebeat/8");
    assert_eq!(probe.send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[test]
fn databases_of_receivers_are_checked() {
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}, {name: telemetry, ingest: ./telemetry}]\n\
         receivers: {otlp: telemetri, prometheus: shop, bulk: telemetry}\n",
    );
    let ran = configured.run(&["config", "check"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let text = format!("{}{}", ran.stdout, ran.stderr);
    assert!(text.contains("there is no database \"telemetri\"; nearest: telemetry"), "{text}");
    assert!(
        text.contains("the database \"shop\" has no ingest folder; databases with an ingest folder are telemetry"),
        "{text}"
    );
}
