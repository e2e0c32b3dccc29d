//! Endpoints that take rows: `/data`, and the receivers of telemetry. They exist over HTTP only, whatever the transport of MCP.
//!
//! A right to write does not include a right to read, and each receiver needs the right to the tables that it fills. Rows that a role may
//! not send to a table are answered as if there were no such table.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Matrix, MatrixNode, ROLES};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";
/// Methods, a table, and a name of the same length that no table has and no role may write to.
const DATA: [(&str, &str, &str); 3] =
    [("POST", "readings", "readingz"), ("PUT", "readings", "readingz"), ("DELETE", "dropped", "droppez")];

/// The trace that the server has. A process of a role has a folder of its own, without traces.
pub(super) const TRACE: &str = "0102030405060708090a0b0c0d0e0f10";

/// Stores a span, as `get_trace` exists with its table.
pub(super) async fn store_trace(matrix_node: &MatrixNode) {
    let body = (JSON, spans("step").to_string().into_bytes());
    let (status, text) = matrix_node.send(ROLES[0], &Method::POST, "/v1/traces", body).await;
    assert_eq!(status, 200, "{text}");
}

/// Sends rows to each endpoint, and marks those that store them.
pub(super) async fn try_endpoints(matrix_node: &MatrixNode, matrix: &mut Matrix, role: usize) {
    let rows = || (JSON, b"[{\"id\": 1}]".to_vec());
    for (method, table, absent) in DATA {
        // A table that was dropped is there again.
        let (status, text) = matrix_node.send(ROLES[0], &Method::POST, "/data/plant/dropped", rows()).await;
        assert!([200, 201].contains(&status), "{status} {text}");
        let label = format!("door {method} /data/plant/{table}");
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let had = matrix_node.send(ROLES[role], &method, &format!("/data/plant/{table}"), rows()).await;
        let is_had = [200, 201].contains(&had.0);
        matrix.add_mark(&label, role, if is_had { '+' } else { '-' });
        if !is_had {
            let path = format!("/data/plant/{absent}");
            let (status, text) = matrix_node.send(ROLES[role], &method, &path, rows()).await;
            if had != (status, text.replace(absent, table)) {
                let at = format!("{label} for {}", ROLES[role]);
                matrix.violations.push(format!("{at}: refused with {had:?}, and an absent one with {status} {text}"));
            }
        }
    }
    for (path, body) in telemetry() {
        let (status, text) = matrix_node.send(ROLES[role], &Method::POST, path, body).await;
        let is_stored = match path {
            "/_bulk" => {
                let answer: Value = serde_json::from_str(&text).unwrap_or_default();
                answer["items"][0]["index"]["status"] == 201
            }
            // It has a histogram too, which is rejected.
            "/api/v1/write" => status == 400 && text.contains("native histograms are not stored"),
            _ => status == 200,
        };
        let is_refused = path == "/_bulk" || [403, 404].contains(&status);
        assert!(is_stored || is_refused, "{path} for {}: {status} {text}", ROLES[role]);
        matrix.add_mark(&format!("door POST {path}"), role, if is_stored { '+' } else { '-' });
    }
}

/// A trace of one span with that name.
pub(super) fn spans(name: &str) -> Value {
    let span = json!({
        "traceId": TRACE, "spanId": "0102030405060708", "name": name, "startTimeUnixNano": "5", "endTimeUnixNano": "6",
    });
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
}

/// A body of which each receiver stores something.
pub(super) fn telemetry() -> [(&'static str, (&'static str, Vec<u8>)); 5] {
    let record = json!({"timeUnixNano": "5", "body": {"stringValue": "text"}});
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
    let metric = json!({"name": "level", "gauge": {"dataPoints": [{"timeUnixNano": "5", "asInt": "7"}]}});
    let metrics = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]});
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../telemetry/tests/it/formats/fixtures");
    let samples = std::fs::read(fixtures.join("remote_write_2.snappy")).unwrap();
    let media_type = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
    let bulk = b"{\"index\":{\"_index\":\"events\"}}\n{\"a\":1}\n".to_vec();
    [
        ("/v1/logs", (JSON, logs.to_string().into_bytes())),
        ("/v1/metrics", (JSON, metrics.to_string().into_bytes())),
        ("/v1/traces", (JSON, spans("step").to_string().into_bytes())),
        ("/api/v1/write", (media_type, samples)),
        ("/_bulk", (NDJSON, bulk)),
    ]
}
