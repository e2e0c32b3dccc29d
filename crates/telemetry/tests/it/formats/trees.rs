//! Spans as trees.

use proptest::prelude::*;
use serde_json::json;
use tidegate_telemetry::formats::{
    OtlpEncoding, TelemetryLimits, TraceSpan, TraceTree, TraceTreeError, decode_traces, trace_spans,
};

use super::encoders::TRACES;

fn span(span_id: &str, parent: Option<&str>, start: i64, end: i64) -> TraceSpan {
    TraceSpan {
        trace_id: "t".to_owned(),
        span_id: span_id.to_owned(),
        parent_span_id: parent.map(str::to_owned),
        name: format!("span {span_id}"),
        service_name: None,
        kind: Some("INTERNAL".to_owned()),
        status_code: Some("UNSET".to_owned()),
        start_time: Some(start),
        end_time: Some(end),
    }
}

fn build(spans: Vec<TraceSpan>) -> Result<TraceTree, TraceTreeError> {
    TraceTree::build(spans, &TelemetryLimits::default())
}

const MS: i64 = 1_000_000;

#[test]
fn a_tree_is_text() {
    let mut slow = span("b", Some("a"), 2 * MS, 6 * MS);
    slow.status_code = Some("ERROR".to_owned());
    slow.service_name = Some("shop\n".to_owned());
    let mut open = span("f", Some("a"), 9 * MS, 0);
    open.end_time = None;
    let tree = build(vec![
        span("c", Some("a"), 5 * MS, 8 * MS),
        span("e", Some("zz"), 4 * MS, 5 * MS),
        span("d", Some("b"), 3 * MS, 3 * MS + 500),
        open,
        span("a", None, 0, 10 * MS),
        slow.clone(),
        slow,
    ])
    .unwrap();
    assert_eq!(
        tree.to_text(),
        "trace t, 6 spans, 10 ms, 1 repeated row left out\n\
         span a INTERNAL 10 ms, self 4 ms\n\
         ├─ span b [shop\u{fffd}] INTERNAL 4 ms, self 3.999 ms, ERROR\n\
         │  └─ span d INTERNAL 500 ns\n\
         ├─ span c INTERNAL 3 ms\n\
         └─ span f INTERNAL (duration unknown)\n\
         span e INTERNAL 1 ms (its parent zz is missing)\n"
    );
    let nodes = tree.nodes();
    assert_eq!(nodes[1].parent, Some(0));
    assert_eq!((nodes[2].parent, nodes[2].depth), (Some(1), 2));
    assert!(nodes[5].is_orphan && nodes[5].parent.is_none());
    let json = tree.to_json();
    assert_eq!(
        (&json["span_count"], &json["repeated_spans"], &json["duration_nanos"]),
        (&json!(6), &json!(1), &json!(10 * MS))
    );
    assert_eq!(json["spans"][1]["self_nanos"], json!(4 * MS - 500));
    assert_eq!(json["spans"][4]["duration_nanos"], json!(null));
    assert_eq!(json["spans"][0]["start_time"], json!("1970-01-01T00:00:00.000000000Z"));
}

#[test]
fn self_time_counts_overlapping_children_once() {
    let self_nanos = |children: &[(i64, i64)]| {
        let mut spans = vec![span("root", None, 100, 200)];
        let names = ["a", "b", "c"];
        spans.extend(children.iter().zip(names).map(|((start, end), name)| span(name, Some("root"), *start, *end)));
        build(spans).unwrap().nodes()[0].self_nanos
    };
    assert_eq!(self_nanos(&[]), Some(100));
    assert_eq!(self_nanos(&[(110, 150), (120, 130), (140, 160)]), Some(50));
    assert_eq!(self_nanos(&[(0, 300)]), Some(0));
    assert_eq!(self_nanos(&[(0, 50), (210, 300), (150, 140)]), Some(100));
    assert_eq!(build(vec![span("a", None, 10, 5)]).unwrap().nodes()[0].self_nanos, None);
}

#[test]
fn what_is_no_tree_is_refused() {
    assert_eq!(build(vec![]), Err(TraceTreeError::Empty));
    let cycle = vec![span("r", None, 0, 1), span("a", Some("b"), 0, 1), span("b", Some("a"), 0, 1)];
    assert!(matches!(build(cycle), Err(TraceTreeError::Cycle { .. })));
    assert!(matches!(build(vec![span("a", Some("a"), 0, 1)]), Err(TraceTreeError::Cycle { .. })));
    let twice = vec![span("a", None, 0, 1), span("a", None, 0, 2)];
    assert_eq!(build(twice), Err(TraceTreeError::SameIdentifier { span_id: "a".to_owned() }));
    let mut other = span("b", None, 0, 1);
    other.trace_id = "u".to_owned();
    assert!(matches!(build(vec![span("a", None, 0, 1), other]), Err(TraceTreeError::SeveralTraces { .. })));
    let chain = |length: usize| -> Vec<TraceSpan> {
        let parent = |number: usize| number.checked_sub(1).map(|parent| parent.to_string());
        (0..length).map(|number| span(&number.to_string(), parent(number).as_deref(), 0, 1)).collect()
    };
    assert_eq!(build(chain(200)).unwrap().nodes().len(), 200);
    assert_eq!(build(chain(201)), Err(TraceTreeError::TooDeep { limit: 200 }));
    assert!(matches!(build(chain(10_001)), Err(TraceTreeError::TooManySpans { .. })));
}

#[test]
fn spans_are_read_from_rows() {
    let decoded = decode_traces(TRACES[0], OtlpEncoding::Protobuf, &TelemetryLimits::default()).unwrap();
    let batches: Vec<_> = decoded.batches.iter().map(|batch| batch.rows.clone()).collect();
    let tree = build(trace_spans(&batches).unwrap()).unwrap();
    let [root, child] = tree.nodes() else { panic!("{tree:?}") };
    assert_eq!(
        (root.span.name.as_str(), child.span.name.as_str(), child.parent),
        ("GET /checkout", "query\n", Some(0))
    );
    assert_eq!((root.span.service_name.as_deref(), child.depth), (Some("shop"), 1));
    assert!(root.duration_nanos >= child.duration_nanos);
    let without = batches[0].project(&[0, 1]).unwrap();
    assert!(trace_spans(&[without]).is_err());
}

proptest! {
    /// Each span is in the tree once, after its parent; or there is a cycle.
    #[test]
    fn every_span_is_in_the_tree_once(parents in proptest::collection::vec(0_usize..40, 1..40)) {
        let spans: Vec<TraceSpan> = parents.iter().enumerate().map(|(number, parent)| {
            // The parent 0 means none, and those beyond the number of spans are missing.
            let parent = (*parent > 0).then(|| parent.to_string());
            span(&(number + 1).to_string(), parent.as_deref(), number as i64, 100)
        }).collect();
        let reaches_root = |mut number: usize| {
            for _ in 0..=parents.len() {
                match parents.get(number) {
                    Some(0) => return true,
                    Some(parent) => number = parent - 1,
                    None => return true,
                }
            }
            false
        };
        let is_tree = (0..parents.len()).all(reaches_root);
        match build(spans.clone()) {
            Ok(tree) => {
                prop_assert!(is_tree);
                prop_assert_eq!(tree.nodes().len(), spans.len());
                for (index, node) in tree.nodes().iter().enumerate() {
                    match node.parent {
                        Some(parent) => {
                            prop_assert!(parent < index);
                            let parent = &tree.nodes()[parent];
                            prop_assert_eq!(node.depth, parent.depth + 1);
                            prop_assert_eq!(node.span.parent_span_id.as_ref(), Some(&parent.span.span_id));
                        }
                        None => prop_assert_eq!(node.is_orphan, node.span.parent_span_id.is_some()),
                    }
                }
                prop_assert_eq!(tree.to_text().lines().count(), spans.len() + 1);
            }
            Err(error) => {
                let is_cycle = matches!(error, TraceTreeError::Cycle { .. });
                prop_assert!(!is_tree && is_cycle, "{}", error);
            }
        }
    }
}
