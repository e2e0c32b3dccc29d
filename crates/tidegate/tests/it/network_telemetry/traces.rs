//! The spans of a trace on two nodes are one tree.

use arrow::array::RecordBatch;
use serde_json::{Value, json};

use super::fixture::{NETWORK, TelemetryNetwork, WHOLE};
use super::tables::{TestTable, table_rows, texts, times};

/// A trace on both nodes, and one on `milan` only.
pub(super) const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub(super) const TRACE_ON_MILAN: &str = "1af7651916cd43dd8448eb211c80319d";

#[derive(Clone, Copy)]
struct Span {
    trace_id: &'static str,
    span_id: &'static str,
    parent: Option<&'static str>,
    name: &'static str,
    /// Start and end, in seconds.
    times: (i64, i64),
}

const fn span(span_id: &'static str, parent: Option<&'static str>, name: &'static str, times: (i64, i64)) -> Span {
    Span { trace_id: TRACE, span_id, parent, name, times }
}

const ROOT: Span = span("a7ad6b7169203331", None, "GET /checkout", (0, 9));
const RESERVE: Span = span("b7ad6b7169203332", Some("a7ad6b7169203331"), "reserve", (1, 4));
const SELECT: Span = span("c7ad6b7169203333", Some("b7ad6b7169203332"), "SELECT", (2, 3));
const PAY: Span = span("d7ad6b7169203334", Some("a7ad6b7169203331"), "pay", (5, 8));
const OTHER: Span = Span { trace_id: TRACE_ON_MILAN, ..span("e7ad6b7169203335", None, "GET /", (0, 1)) };

fn batch(spans: &[Span]) -> RecordBatch {
    let same = |value: &'static str| texts(spans.iter().map(|_| Some(value)));
    table_rows([
        ("trace_id", texts(spans.iter().map(|span| Some(span.trace_id)))),
        ("span_id", texts(spans.iter().map(|span| Some(span.span_id)))),
        ("parent_span_id", texts(spans.iter().map(|span| span.parent))),
        ("name", texts(spans.iter().map(|span| Some(span.name)))),
        ("service_name", same("shop")),
        ("kind", same("INTERNAL")),
        ("status_code", same("OK")),
        ("start_time", times(spans.iter().map(|span| Some(span.times.0)))),
        ("end_time", times(spans.iter().map(|span| Some(span.times.1)))),
    ])
}

/// One span is on both nodes, as after a repeated delivery.
pub(super) fn traces() -> TestTable {
    let (bergen, milan) = ([ROOT, SELECT, PAY], [RESERVE, PAY, OTHER]);
    let whole = batch(&[bergen, milan].concat());
    TestTable { name: "otel_traces", whole, parts: vec![batch(&bergen), batch(&milan)] }
}

/// The name, the depth, and whether the parent is missing, of each span of a tree.
pub(super) fn outline(tree: &Value) -> Vec<Value> {
    let spans = tree["spans"].as_array().unwrap().iter();
    spans.map(|span| json!([span["name"], span["depth"], span["is_orphan"]])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_on_two_nodes_are_one_tree() {
    let network = TelemetryNetwork::new(&[traces()]);
    let tree = async |database: &str| {
        network.call("get_trace", json!({"trace_id": TRACE, "database": database})).await.unwrap()
    };
    let (whole, united) = (tree(WHOLE).await, tree(NETWORK).await);
    assert_eq!((&whole.json, &whole.texts), (&united.json, &united.texts));
    let expected = [
        json!(["GET /checkout", 0, false]),
        json!(["reserve", 1, false]),
        json!(["SELECT", 2, false]),
        json!(["pay", 1, false]),
    ];
    assert_eq!(outline(&united.json), expected);
    assert_eq!((&united.json["span_count"], &united.json["repeated_spans"]), (&json!(4), &json!(1)));
}
