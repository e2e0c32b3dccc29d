//! Answers without the rows of some nodes name them in a header, whatever their form.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate_core::{Budget, Content, MissingNode, MissingNodes};
use tidegate_runtime::{
    Answer, AnswerMeta, BodyMetadata, CacheHint, Handler, Tool,
    event::{EventDispatcher, Subscriber},
    handler_fn,
};
use tidegate_testkit::host::Host;
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;

use super::super::Server;
use super::fixture::{post, request};

const LONG_BYTES: usize = 2_000_000;

fn missing(names: &[&str]) -> MissingNodes {
    let node = |name: &&str| MissingNode { name: (*name).to_owned(), reason: "is away".to_owned(), rows: None };
    MissingNodes { nodes: names.iter().map(node).collect(), rows_total: None }
}

fn body_handler(names: &'static [&'static str], bytes: usize) -> Arc<dyn Handler> {
    handler_fn(move |call| async move {
        if !names.is_empty() {
            call.record_missing_nodes(&missing(names))?;
        }
        Ok(Answer::written(move |reply| async move {
            reply.begin_body(BodyMetadata::new("text/csv", Budget::default())).await?;
            for _ in 0..bytes / 1_000 {
                reply.send_bytes(vec![b'x'; 1_000].into()).await?;
            }
            Ok(AnswerMeta::default())
        }))
    })
}

fn content_handler(content: fn() -> Content) -> Arc<dyn Handler> {
    handler_fn(move |call| async move {
        call.record_missing_nodes(&missing(&["oslo"]))?;
        Ok(Answer::content(vec![content()]))
    })
}

/// A tool whose answers clients may cache.
fn tool(name: &str, handler: Arc<dyn Handler>) -> Tool {
    let mut tool = Tool::new(name, "", handler).with_input_schema(json!({"type": "object"})).unwrap();
    tool.cache = Some(CacheHint { time_to_live: Duration::from_secs(60), public: true });
    tool
}

async fn start() -> Server {
    let metrics = Arc::new(Metrics::new());
    let events = EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]);
    let host = Host::with_entries(events, |entries| {
        entries
            .tool(tool("whole", body_handler(&[], 1_000)))
            .tool(tool("short", body_handler(&["oslo", "rome"], 1_000)))
            .tool(tool("long", body_handler(&["oslo", "rome"], LONG_BYTES)))
            .tool(tool("odd", body_handler(&["münchen", "a, b", "100%", "new\nline"], 0)))
            .tool(tool("text", content_handler(|| Content::text("rows"))))
    });
    Server::of(host, metrics, HttpOptions::default()).await
}

#[tokio::test]
async fn the_header_names_the_nodes_and_nothing_may_be_cached() {
    let server = start().await;
    let mut lines = String::new();
    for name in ["whole", "short", "long", "odd", "text"] {
        let answer = server.rest(&post(&format!("/rest/tools/{name}/call"), &json!({}))).await;
        let header = |name: &str| answer.header(name).unwrap_or("-");
        lines.push_str(&format!("{name}: {} | {}\n", header("tidegate-partial"), header("cache-control")));
    }
    insta::assert_snapshot!(lines, @"
    whole: - | public, max-age=60
    short: oslo, rome | no-store
    long: oslo, rome | no-store
    odd: m%C3%BCnchen, a%2C%20b, 100%25, new%0Aline | no-store
    text: oslo | no-store
    ");
}

#[tokio::test]
async fn content_ends_with_a_note() {
    let accept = [("Accept", "application/json"), ("Content-Type", "application/json")];
    let answer = start().await.rest(&request("POST", "/rest/tools/text/call", &accept, "{}")).await;
    insta::assert_snapshot!(answer.text(), @r#"{"content":[{"type":"text","text":"rows"},{"type":"text","text":"This answer is partial: it lacks the rows of 1 node: oslo (is away)."}]}"#);
    assert_eq!(answer.header("tidegate-partial"), Some("oslo"));
}

#[tokio::test]
async fn the_header_comes_before_a_long_body() {
    let server = start().await;
    let mut connection = server.connect().await;
    connection.send(&post("/rest/tools/long/call", &json!({}))).await;
    let head = connection.head().await;
    assert!(head.is_chunked(), "the answer is not complete yet");
    assert_eq!(head.header("tidegate-partial"), Some("oslo, rome"));
    let mut bytes = 0;
    while let Some(chunk) = connection.chunk().await {
        bytes += chunk.len();
    }
    assert_eq!(bytes, LONG_BYTES);
}
