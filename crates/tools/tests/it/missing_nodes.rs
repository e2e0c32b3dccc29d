//! Every tool, resource and prompt that reads rows says that some are missing.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampNanosecondArray};
use serde_json::{Value, json};
use tidegate_core::{AllowedNames, CallTarget, Content, Format, MissingNode, MissingNodes};
use tidegate_runtime::{AnswerMeta, Call, Registry, ReplyPart, SnapshotBuilder, event::EventDispatcher};
use tidegate_tools::{
    LogSource, LogSources, MetricSource, MetricSourceKind, MetricSources, MetricTable, TablePresence, TraceSource,
    register, register_log_tools, register_metric_tools, register_traces,
};

use crate::fake::{call, network, services};

const NOTE: &str =
    "This answer is partial: it lacks the rows of 1 node, about 40 % of all rows: oslo (did not answer within 20 s).";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn text(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn times() -> ArrayRef {
    let start = 1_780_000_000_000_000_000_i64;
    Arc::new(TimestampNanosecondArray::from(vec![start, start + 1_000_000_000]).with_timezone("UTC"))
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true))).unwrap()
}

/// The tools over a network with logs, samples and spans, of which the node `oslo` does not answer.
fn registry() -> Arc<Registry> {
    let node = MissingNode { name: "oslo".to_owned(), reason: "did not answer within 20 s".to_owned(), rows: Some(2) };
    let missing = MissingNodes { nodes: vec![node], rows_total: Some(5) };
    let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let tables = vec![
        ("events", table(vec![("time", times()), ("message", text(&["started", "stopped"]))])),
        ("samples", table(vec![("time", times()), ("metric", text(&["load", "load"])), ("value", values)])),
        (
            "otel_traces",
            table(vec![
                ("trace_id", text(&[TRACE, TRACE])),
                ("span_id", text(&["b7ad6b7169203331", "c7ad6b7169203332"])),
                ("parent_span_id", text(&["", "b7ad6b7169203331"])),
                ("name", text(&["GET /", "read"])),
                ("service_name", text(&["shop", "shop"])),
                ("kind", text(&["server", "client"])),
                ("status_code", text(&["ok", "ok"])),
                ("start_time", times()),
                ("end_time", times()),
            ]),
        ),
    ];
    let services = services([network(tables, missing)]);
    let (database, everything) = ("sites".to_owned(), AllowedNames::Everything);
    let logs = LogSources::new([LogSource {
        name: "app".to_owned(),
        database: database.clone(),
        table: "events".to_owned(),
        ..LogSource::default()
    }]);
    let kind = MetricSourceKind::Table(Box::new(MetricTable {
        database: database.clone(),
        table: "samples".to_owned(),
        ..MetricTable::default()
    }));
    let metrics = MetricSources::new([MetricSource { name: "plant".to_owned(), access: Vec::new(), kind }]);
    let builder = register(SnapshotBuilder::new(), &services);
    let builder = register_log_tools(builder, &services, &logs, &everything);
    let builder = register_metric_tools(builder, &services, &metrics, &everything);
    let traces = TraceSource { database, presence: TablePresence::default() };
    let builder = register_traces(builder, &services, traces, &everything);
    let registry = Registry::new(builder.build(), EventDispatcher::default());
    services.attach(&registry);
    registry
}

/// What a caller received.
struct Received {
    texts: Vec<String>,
    body: Vec<u8>,
    structured: Option<Value>,
    metadata: AnswerMeta,
}

async fn receive(registry: &Arc<Registry>, call: Call) -> Received {
    let mut reply = registry.call(call).unwrap();
    let (mut texts, mut body, mut structured) = (vec![String::new()], Vec::new(), None);
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Text(piece) => texts.last_mut().unwrap().push_str(&piece),
            ReplyPart::EndOfText => texts.push(String::new()),
            ReplyPart::Item(Content::Text { text, .. }) | ReplyPart::PromptMessage(_, Content::Text { text, .. }) => {
                texts.extend([text, String::new()]);
            }
            ReplyPart::Bytes(bytes) => body.extend_from_slice(&bytes),
            ReplyPart::Structured(json) => structured = serde_json::from_str(json.get()).ok(),
            ReplyPart::End(Ok(metadata)) => {
                texts.retain(|text| !text.is_empty());
                return Received { texts, body, structured, metadata };
            }
            ReplyPart::End(Err(error)) => panic!("{error}"),
            _ => {}
        }
    }
    panic!("a reply has an end")
}

fn tool(name: &str, arguments: Value) -> Call {
    call(CallTarget::Tool(name.to_owned()), arguments)
}

#[tokio::test]
async fn answers_with_rows_end_with_the_note() {
    let registry = registry();
    let calls = [
        tool("sql", json!({"sql": "SELECT * FROM events"})),
        tool("query", json!({"table": "events"})),
        tool("query", json!({"table": "events", "extract": "message", "format": "markdown"})),
        tool("get_schema", json!({"table": "events", "samples": 2})),
        tool("list_logs_fields", json!({})),
        tool("list_logs_sources", json!({})),
        call(CallTarget::Resource("tidegate://databases/sites/tables/events".to_owned()), Value::Null),
        call(CallTarget::Prompt("summarise_table".to_owned()), json!({"table": "events"})),
    ];
    for call in calls {
        let name = call.target.name().to_owned();
        let received = receive(&registry, call).await;
        assert_eq!(received.texts.last().map(String::as_str), Some(NOTE), "{name}: {:?}", received.texts);
        assert_eq!(received.texts.iter().filter(|text| text.contains(NOTE)).count(), 1, "{name}");
        assert_eq!(received.metadata.missing_nodes.unwrap().names(), "oslo", "{name}");
    }
}

#[tokio::test]
async fn answers_of_log_and_metric_tools_have_the_nodes_as_members() {
    let registry = registry();
    let calls = [
        ("query_logs", json!({})),
        ("list_logs_fields_values", json!({"fields": ["message"]})),
        ("list_metrics", json!({})),
        ("query_metrics", json!({"metric": "load", "after": "2026-05-01", "before": "2026-07-01"})),
        ("compare_metrics", json!({"after": "2026-05-28", "before": "2026-05-30", "baseline_after": "2026-05-01"})),
    ];
    for (name, arguments) in calls {
        let received = receive(&registry, tool(name, arguments.clone())).await;
        assert_eq!(received.texts.len(), 1, "{name}: the object says it: {:?}", received.texts);
        let mut rest = tool(name, arguments);
        rest.format = Some(Format::Json);
        for json in [received.texts[0].as_bytes(), &receive(&registry, rest).await.body] {
            let json: Value = serde_json::from_slice(json).unwrap();
            assert_eq!((&json["partial"], &json["reason"]), (&json!(true), &json!(NOTE)), "{name}");
            assert_eq!(
                (&json["missing_nodes"], &json["missing_rows_share"]),
                (&json!([{"name": "oslo", "reason": "did not answer within 20 s", "rows": 2}]), &json!(0.4)),
                "{name}"
            );
        }
        assert!(received.metadata.missing_nodes.is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_trace_may_lack_the_spans_of_a_node() {
    let registry = registry();
    let received = receive(&registry, tool("get_trace", json!({"trace_id": TRACE}))).await;
    assert_eq!(received.texts.last().map(String::as_str), Some(NOTE));
    assert_eq!(received.structured.unwrap()["missing_nodes"][0]["name"], "oslo");
    let mut rest = tool("get_trace", json!({"trace_id": TRACE}));
    rest.format = Some(Format::Json);
    let body: Value = serde_json::from_slice(&receive(&registry, rest).await.body).unwrap();
    assert_eq!(body["partial"], true);
}
