//! A server whose tools return their input, and requests to it.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::Budget;
use tidegate_runtime::{
    Answer, AnswerMeta, BodyMetadata, SnapshotBuilder, Tool,
    event::{EventDispatcher, Subscriber},
    handler_fn,
};
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;

use super::super::Server;
use super::super::wire;
use tidegate_testkit::host::Host;

/// The tools with their own paths.
const BUILT_IN: [&str; 7] = ["query", "sql", "list_databases", "list_tables", "get_schema", "list_jobs", "cancel_job"];

/// A server with the tool `script` and the tools with their own paths, which return their input.
pub(super) async fn start() -> Server {
    with(HttpOptions::default()).await
}

pub(super) async fn with(options: HttpOptions) -> Server {
    let metrics = Arc::new(Metrics::new());
    let host = Host::with_entries(EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]), built_in);
    Server::of(host, metrics, options).await
}

fn built_in(entries: SnapshotBuilder) -> SnapshotBuilder {
    BUILT_IN.into_iter().fold(entries, |entries, name| entries.tool(echo(name)))
}

/// A tool that returns its name, the format and its arguments.
pub(in crate::http) fn echo(name: &'static str) -> Tool {
    let handler = handler_fn(move |call| async move {
        let format = call.format().unwrap();
        let requested = json!({"tool": name, "arguments": call.arguments(), "format": format.name()});
        Ok(Answer::written(move |reply| async move {
            reply.begin_body(BodyMetadata::new(format.media_type(), Budget::default())).await?;
            reply.send_bytes(requested.to_string().into()).await?;
            Ok(AnswerMeta::default())
        }))
    });
    Tool::new(name, "Says what it was asked.", handler).with_input_schema(json!({"type": "object"})).unwrap()
}

/// A request of any method.
pub(in crate::http) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    wire::request(method, path, headers, body.as_bytes())
}

pub(in crate::http) fn get(path: &str) -> Vec<u8> {
    request("GET", path, &[], "")
}

/// A POST of JSON.
pub(super) fn post(path: &str, body: &Value) -> Vec<u8> {
    request("POST", path, &[("Content-Type", "application/json")], &body.to_string())
}

/// A call of the tool `script`, with further headers.
pub(super) fn script(steps: Value, headers: &[(&str, &str)]) -> Vec<u8> {
    let headers: Vec<_> = [("Content-Type", "application/json")].iter().chain(headers).copied().collect();
    request("POST", "/rest/tools/script/call", &headers, &json!({ "steps": steps }).to_string())
}

impl Server {
    /// One request on its own connection.
    pub(in crate::http) async fn rest(&self, request: &[u8]) -> wire::Answer {
        self.connect().await.ask(request).await
    }
}

/// `status type body`.
pub(super) fn summary(answer: &wire::Answer) -> String {
    let media_type = answer.header("content-type").unwrap_or("-");
    format!("{} {media_type} {}", answer.head.status, answer.text())
}

/// `status name: detail` of a problem.
pub(in crate::http) fn problem(answer: &wire::Answer) -> String {
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{}", answer.text());
    let problem: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(problem["status"], answer.head.status);
    assert!(problem["title"].is_string());
    let name = problem["type"].as_str().unwrap().strip_prefix("tag:tidegate.dev,2026:problem/").unwrap();
    format!("{} {name}: {}", answer.head.status, problem["detail"].as_str().unwrap())
}
