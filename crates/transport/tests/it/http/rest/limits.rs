//! Requests over REST are counted once each, and rejected with 429 over the limit.

use std::sync::Arc;

use serde_json::json;
use tidegate_core::{LevelLimits, Limits, RateLimit};
use tidegate_runtime::event::{EventDispatcher, Subscriber};
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;

use super::super::Server;
use super::fixture::{get, problem, script};
use tidegate_testkit::host::Host;

#[tokio::test]
async fn rate_limit_counts_each_request_once() {
    let of_principal = LevelLimits { rate: RateLimit::per_second(0.000_1, 4), ..LevelLimits::default() };
    let metrics = Arc::new(Metrics::new());
    let events = EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]);
    let host = Host::with_entries(events, |entries| {
        entries.limits(Limits { per_principal: of_principal, ..Limits::default() })
    });
    let server = Server::of(host, metrics, HttpOptions::default()).await;
    let text = || script(json!([["text", "a"]]), &[]);
    assert_eq!(server.rest(&text()).await.head.status, 200);
    assert_eq!(server.rest(&get("/rest/tools")).await.head.status, 200);
    assert_eq!(server.rest(&get("/rest/openapi.json")).await.head.status, 200);
    assert_eq!(server.rest(&get("/results/00000000-0000-0000-0000-000000000000")).await.head.status, 404);
    for request in [text(), get("/rest/tools"), get("/results/00000000-0000-0000-0000-000000000000")] {
        let message = problem(&server.rest(&request).await);
        assert!(message.starts_with("429 rate_limited: too many requests from you; try again in "), "{message}");
    }
    let series = "tidegate_limits_reached_total{level=\"principal\",measure=\"requests\"}";
    assert_eq!(server.figure(series).await, "3");
}
