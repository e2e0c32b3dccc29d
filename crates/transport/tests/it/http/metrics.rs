//! `/health`, `/ready` and `/metrics`; all gauges return to their initial values.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tidegate_core::{Error, ErrorKind, StoredResultStats, StoredResults};
use tidegate_mcp::Revision;
use tidegate_runtime::{
    AuditReservation, AuditStats, Auditor, Job,
    event::{Event, EventDispatcher, Subscriber},
};
use tidegate_transport::http::HttpOptions;
use tidegate_transport::{METRICS, Metrics};

use super::request::Post;
use super::{Server, wire};
use tidegate_testkit::host::Host;
use tidegate_testkit::wait::wait_until;

impl Server {
    /// The value of a series in `/metrics`; empty if the series does not exist.
    pub(super) async fn figure(&self, series: &str) -> String {
        let text = self.metrics().await;
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_default().to_owned()
    }

    pub(super) async fn metrics(&self) -> String {
        // For servers that require authentication.
        let key = [("Authorization", "Bearer key")];
        let answer = self.connect().await.ask(&wire::request("GET", "/metrics", &key, b"")).await;
        assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        answer.text().to_owned()
    }
}

#[tokio::test]
async fn health_and_readiness_are_ok() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    for (path, text) in [("/health", "ok\n"), ("/ready", "ready\n")] {
        let answer = connection.ask(&wire::request("GET", path, &[], b"")).await;
        assert_eq!((answer.head.status, answer.text()), (200, text));
    }
}

/// An auditor whose disk is full.
struct Stuck;

impl Subscriber for Stuck {
    fn on_event(&self, _: Event<'_>) {}
}

#[async_trait]
impl Auditor for Stuck {
    async fn reserve(&self) -> Result<Box<dyn AuditReservation>, Error> {
        Err(Error::new(ErrorKind::Unavailable, "the disk is full"))
    }

    fn record_unreserved(&self, _: &Job, _: &'static str) {}

    fn stats(&self) -> AuditStats {
        AuditStats { is_blocked: true, ..AuditStats::default() }
    }
}

#[tokio::test]
async fn blocked_audit_log_is_not_ready() {
    let metrics = Arc::new(Metrics::new());
    let host =
        Host::with_events(EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]).with_auditor(Arc::new(Stuck)));
    let server = Server::of(host, metrics, HttpOptions::default()).await;
    let mut connection = server.connect().await;
    for (path, message) in [("/health", (200, "ok\n")), ("/ready", (503, "the audit log cannot be written\n"))] {
        let answer = connection.ask(&wire::request("GET", path, &[], b"")).await;
        assert_eq!((answer.head.status, answer.text()), message);
    }
}

#[tokio::test]
async fn exports_the_documented_series() {
    let server = Server::start().await;
    server.session(Revision::V2025_11_25).await;
    server.ask(&Post::script(json!([["text", "twelve bytes"]]))).await;
    server.ask(&Post::script(json!([["panic"]]))).await;
    server.ask(&Post::modern("tools/call", json!({"name": "unknown\"} 1"}))).await;
    server.ask(&Post::modern("resources/read", json!({"uri": "test://plain"}))).await;
    server.ask(&Post::raw("{")).await;
    let text = server.metrics().await;
    let series: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty() && !line.contains("_bucket{"))
        .filter(|line| !line.starts_with("tidegate_http_requests_total{"))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    insta::assert_snapshot!(series.into_iter().collect::<Vec<_>>().join("\n"), @r#"
    tidegate_answer_bytes_total
    tidegate_answer_rows_total
    tidegate_call_duration_seconds_count{kind="resource",name="plain",outcome="done"}
    tidegate_call_duration_seconds_count{kind="tool",name="script",outcome="done"}
    tidegate_call_duration_seconds_count{kind="tool",name="script",outcome="internal"}
    tidegate_call_duration_seconds_sum{kind="resource",name="plain",outcome="done"}
    tidegate_call_duration_seconds_sum{kind="tool",name="script",outcome="done"}
    tidegate_call_duration_seconds_sum{kind="tool",name="script",outcome="internal"}
    tidegate_calls_refused_total{kind="tool",outcome="not_found"}
    tidegate_calls_total{kind="resource",name="plain",outcome="done",transport="http"}
    tidegate_calls_total{kind="tool",name="script",outcome="done",transport="http"}
    tidegate_calls_total{kind="tool",name="script",outcome="internal",transport="http"}
    tidegate_connections{transport="http"}
    tidegate_internal_errors_total
    tidegate_jobs_open
    tidegate_mcp_requests_total{method="initialize",transport="http"}
    tidegate_mcp_requests_total{method="resources/read",transport="http"}
    tidegate_mcp_requests_total{method="tools/call",transport="http"}
    tidegate_messages_refused_total{transport="http"}
    tidegate_registry_version
    tidegate_runtime_tasks
    tidegate_runtime_threads
    tidegate_sessions{transport="http"}
    "#);
    for metric in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, _) = metric.split_once(' ').unwrap();
        assert!(METRICS.iter().any(|listed| listed.name == name), "METRICS lacks {name}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
    let scrapes = r#"tidegate_http_requests_total{path="/metrics",status="200"}"#;
    assert!(!text.contains(scrapes), "a request counts when it is answered");
    assert_eq!(server.figure(scrapes).await, "1");
    assert_eq!(server.figure(r#"tidegate_mcp_requests_total{method="tools/call",transport="http"}"#).await, "3");
    assert!(text.contains(r#"tidegate_http_requests_total{path="/mcp",status="400"}"#), "{text}");
    assert_eq!(server.figure("tidegate_answer_bytes_total").await, "25");
    assert_eq!(server.figure("tidegate_internal_errors_total").await, "1");
    assert_eq!(server.figure("tidegate_messages_refused_total{transport=\"http\"}").await, "1");
}

/// A store with constant statistics.
struct FixedResults;

impl StoredResults for FixedResults {
    fn stats(&self) -> StoredResultStats {
        StoredResultStats {
            results: 3,
            bytes: 4096,
            running: 1,
            blocks_written: 17,
            blocks_read: 6,
            block_bytes_read: 2048,
            expired: 5,
            evicted: 2,
        }
    }
}

#[tokio::test]
async fn exports_stored_result_gauges() {
    let metrics = Arc::new(Metrics::new().with_results(Some(Arc::new(FixedResults))));
    let server = Server::of(Host::with_events(EventDispatcher::default()), metrics, HttpOptions::default()).await;
    // Counters of other components do not grow with each scrape.
    server.metrics().await;
    let text = server.metrics().await;
    let visible: BTreeSet<&str> = text.lines().filter(|line| line.starts_with("tidegate_stored_result")).collect();
    insta::assert_snapshot!(visible.into_iter().collect::<Vec<_>>().join("\n"), @r#"
    tidegate_stored_result_block_bytes_fetched_total 2048
    tidegate_stored_result_blocks_fetched_total 6
    tidegate_stored_result_blocks_total 17
    tidegate_stored_results 3
    tidegate_stored_results_bytes 4096
    tidegate_stored_results_open 1
    tidegate_stored_results_removed_total{reason="expired"} 5
    tidegate_stored_results_removed_total{reason="room"} 2
    "#);
}

#[tokio::test]
async fn gauges_return_to_zero() {
    let server = Server::start().await;
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25] {
        let session = server.session(revision).await;
        assert_eq!(server.figure("tidegate_sessions{transport=\"http\"}").await, "1");
        let mut listening = server.connect().await;
        listening.send(&session.head("GET", &[])).await;
        listening.head().await;
        let mut running = server.connect().await;
        running.send(&session.call(json!([["progress", 1], ["cancelled"]])).bytes()).await;
        running.head().await;
        let mut modern = server.connect().await;
        modern.send(&Post::script_with_progress(json!([["cancelled"]])).bytes()).await;
        modern.head().await;
        assert_eq!(server.figure("tidegate_jobs_open").await, "2");
        assert_eq!(server.figure("tidegate_connections{transport=\"http\"}").await, "4");
        drop(modern);
        server.connect().await.ask(&session.head("DELETE", &[])).await;
        drop((listening, running));
        for (series, value) in [
            ("tidegate_jobs_open", "0"),
            ("tidegate_sessions{transport=\"http\"}", "0"),
            ("tidegate_connections{transport=\"http\"}", "1"),
        ] {
            wait_until("the figure", async || server.figure(series).await == value).await;
        }
    }
}
