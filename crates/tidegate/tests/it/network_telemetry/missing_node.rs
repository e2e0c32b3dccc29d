//! A node is away: a network that allows partial answers names it, another one fails with its name.

use serde_json::{Value, json};
use tidegate_core::ErrorKind;

use super::fixture::{BY_NODE, NETWORK, PARTIAL, TelemetryNetwork};
use super::logs::{events, source};
use super::samples::{LOAD_NORTH, LOAD_SOUTH, PRESSURE, REQUESTS, SampleRow, samples_on};
use super::traces::{TRACE, TRACE_ON_MILAN, outline, traces};

/// How the node is named in texts.
const NAMED: &str = "milan (connection refused)";

/// Two nodes, of which `milan` is away. It has the only samples of the pressure.
fn network() -> TelemetryNetwork {
    let sample = SampleRow::new;
    let bergen = vec![sample(LOAD_NORTH, 0, 1.0), sample(LOAD_NORTH, 30, 2.0), sample(REQUESTS, 10, 5.0)];
    let milan = vec![sample(LOAD_SOUTH, 0, 10.0), sample(REQUESTS, 20, 30.0), sample(PRESSURE, 0, 1.0)];
    let network = TelemetryNetwork::new(&[samples_on(&[bergen, milan]), traces(), events()]);
    network.set_away("milan");
    network
}

fn query(metric: &str) -> Value {
    let (after, before) = ("2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z");
    json!({"metric": metric, "aggregation": "sum", "after": after, "before": before, "points": 1})
}

/// Calls of tools that read one source.
fn questions() -> [(&'static str, Value); 4] {
    let (baseline, after, before) = ("2026-03-01T12:00:00Z", "2026-03-01T12:00:20Z", "2026-03-01T12:01:00Z");
    [
        ("list_metrics", json!({})),
        ("query_metrics", query("load")),
        ("compare_metrics", json!({"after": after, "before": before, "baseline_after": baseline})),
        ("list_logs_fields", json!({})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_answer_names_the_node() {
    let network = network();
    for (tool, arguments) in questions() {
        let answer = network.call_source(tool, PARTIAL, &arguments).await.unwrap();
        assert_eq!(answer.metadata.missing_nodes.unwrap().names(), "milan", "{tool}");
        assert!(answer.texts.last().unwrap().contains(NAMED), "{tool}: {:?}", answer.texts);
        // The answers of the metric tools are objects.
        if answer.json.is_object() {
            assert_eq!(answer.json["partial"], true, "{tool}");
            assert_eq!(answer.json["missing_nodes"].as_array().unwrap().len(), 1, "{tool}");
        }
    }
    let load = network.answer("query_metrics", PARTIAL, query("load")).await;
    assert_eq!(load["series"], json!([{"labels": {"host": "a", "site": "north"}, "values": [3]}]));
    // Its unit is that of the node that answers.
    assert_eq!(load["unit"], "W");
    let listed = network.answer("list_metrics", PARTIAL, json!({})).await;
    assert_eq!(listed["matched"], 2);
    let fields = network.answer("list_logs_fields", PARTIAL, json!({})).await;
    let values =
        |name: &str| fields.as_array().unwrap().iter().find(|field| field["field"] == name).unwrap()["values"].clone();
    // The columns of the node stay known.
    assert_eq!((values("_node"), values("region")), (json!(1), json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_trace_marks_spans_without_their_parent() {
    let network = network();
    let arguments = json!({"trace_id": TRACE, "database": PARTIAL});
    let answer = network.call("get_trace", arguments).await.unwrap();
    let expected = [json!(["GET /checkout", 0, false]), json!(["pay", 1, false]), json!(["SELECT", 0, true])];
    assert_eq!(outline(&answer.json), expected);
    assert_eq!((&answer.json["partial"], &answer.json["missing_nodes"][0]["name"]), (&json!(true), &json!("milan")));
    assert!(answer.metadata.missing_nodes.is_some());
    assert!(answer.texts.last().unwrap().contains(NAMED), "{:?}", answer.texts);
}

/// What is missing may be on the node that is away.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_about_missing_rows_names_the_node() {
    let network = network();
    let arguments = json!({"trace_id": TRACE_ON_MILAN, "database": PARTIAL});
    let error = network.call("get_trace", arguments).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains(NAMED), "{error}");
    let error = network.call_source("query_metrics", PARTIAL, &query("pressure")).await.err().unwrap();
    assert!(error.to_string().contains("there is no metric \"pressure\""), "{error}");
    assert!(error.to_string().contains(NAMED), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_partial_answers_calls_fail_with_the_name_of_the_node() {
    let network = network();
    let trace = ("get_trace", json!({"trace_id": TRACE, "database": NETWORK}));
    let of_sources = questions().map(|(tool, mut arguments)| {
        arguments["source"] = json!(NETWORK);
        (tool, arguments)
    });
    for (tool, arguments) in of_sources.into_iter().chain([trace]) {
        let error = network.call(tool, arguments).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{tool}: {error}");
        assert!(error.message().contains(NAMED), "{tool}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_log_sources_has_the_error_of_each_source() {
    let network = network();
    let answer = network.call("list_logs_sources", json!({})).await.unwrap();
    let (failed, partial) = (source(&answer.json, NETWORK), source(&answer.json, PARTIAL));
    assert!(failed["error"].as_str().unwrap().contains(NAMED), "{failed}");
    assert_eq!((&failed["first"], &partial["error"]), (&Value::Null, &Value::Null));
    // The last entry of the node that answers.
    assert_eq!(partial["last"], "2026-03-01T12:00:20Z");
    assert!(answer.metadata.missing_nodes.is_some());
    assert!(answer.texts.last().unwrap().contains(NAMED), "{:?}", answer.texts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_on_the_node_leaves_the_other_nodes_out() {
    let network = network();
    let mut question = query("load");
    question["labels"] = json!({"_node": "bergen"});
    let answer = network.call_source("query_metrics", BY_NODE, &question).await.unwrap();
    assert_eq!(answer.json["series"][0]["values"], json!([3]));
    assert_eq!(answer.metadata.missing_nodes, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_fails_if_no_node_answers() {
    let network = network();
    network.set_away("bergen");
    for (tool, arguments) in questions() {
        let answer = network.call_source(tool, PARTIAL, &arguments).await;
        let error = answer.map(|answer| answer.json).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{tool}: {error}");
        assert!(error.message().contains(NAMED), "{tool}: {error}");
    }
}
