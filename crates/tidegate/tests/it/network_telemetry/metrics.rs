//! The answers of the metric tools are those of one database with all rows, wherever the rows are.

use std::sync::Arc;

use arrow::array::Int32Array;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tidegate_core::Error;

use super::fixture::{Answer, BY_NODE, NETWORK, NETWORK_MACHINES, TelemetryNetwork, WHOLE, WHOLE_MACHINES};
use super::samples::{LOAD_NORTH, LOAD_SOUTH, REQUESTS, SampleRow, rows, samples_on, split_samples, splits};
use super::tables::{TestTable, floats, integers, table_rows, texts, times};

const AGGREGATIONS: [&str; 10] = ["average", "min", "max", "sum", "median", "p95", "rate", "increase", "last", "count"];
const METRICS: [&str; 3] = ["requests_total", "load", "pressure"];
/// All samples; a part with samples before it; less than most gaps.
const WINDOWS: [(&str, &str); 3] = [
    ("2026-03-01T12:00:00Z", "2026-03-01T14:00:00Z"),
    ("2026-03-01T12:12:30Z", "2026-03-01T12:40:00Z"),
    ("2026-03-01T12:10:00Z", "2026-03-01T12:10:20Z"),
];

/// Arguments of `query_metrics` without a source and an aggregation.
fn questions() -> impl Strategy<Value = Value> {
    let by = prop::option::of(prop::sample::subsequence(vec!["site", "host"], 0..=2));
    let over_series = prop::option::of(prop::sample::select(vec!["sum", "average", "min", "max", "p90"]));
    let conditions = prop::sample::select(vec![
        json!({}),
        json!({"site": "north"}),
        json!({"site": null}),
        json!({"host": {"not": null}}),
        json!({"host": ["a", "c"]}),
        json!({"site": {"matches": "[ns]o.*"}}),
    ]);
    let (metric, window) = (prop::sample::select(METRICS.to_vec()), prop::sample::select(WINDOWS.to_vec()));
    let parts = (metric, window, 1..13_i64, by, over_series, conditions, prop::sample::select(vec![2, 20]));
    parts.prop_map(|(metric, (after, before), points, by, over_series, labels, series)| {
        let mut question = json!({
            "metric": metric, "after": after, "before": before, "points": points, "labels": labels, "series": series
        });
        if let Some(by) = by {
            question["by"] = json!(by);
        }
        if let Some(over_series) = over_series {
            question["label_aggregation"] = json!(over_series);
        }
        question
    })
}

/// Whether both are equal, except for the last digits of floats, which depend on the order of additions: `tolerance` is
/// relative.
fn is_close(left: &Value, right: &Value, tolerance: f64) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) if left.is_f64() || right.is_f64() => {
            let (left, right) = (left.as_f64().unwrap(), right.as_f64().unwrap());
            (left - right).abs() <= tolerance * left.abs().max(right.abs())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_close(left, right, tolerance))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_in_right = |(name, value): (&String, &Value)| {
                right.get(name).is_some_and(|other| is_close(value, other, tolerance))
            };
            left.len() == right.len() && left.iter().all(is_in_right)
        }
        _ => left == right,
    }
}

/// The relative difference that `tool` may show: a comparison rounds to four digits, and 255.25 may round to 255.2 or
/// 255.3.
fn tolerance(tool: &str) -> f64 {
    if tool == "compare_metrics" { 1.1e-3 } else { 1e-9 }
}

/// The source `united` has the answer or the error of the source `whole`.
async fn check_same(network: &TelemetryNetwork, tool: &str, [whole, united]: [&str; 2], arguments: &Value) {
    let whole = network.call_source(tool, whole, arguments).await;
    let united = network.call_source(tool, united, arguments).await;
    match (whole, united) {
        (Ok(whole), Ok(united)) => {
            let (whole, united) = (whole.json, united.json);
            assert!(is_close(&whole, &united, tolerance(tool)), "{tool} {arguments}\nwhole: {whole}\nunited: {united}");
        }
        (whole, united) => {
            let text = |answer: Result<Answer, Error>| match answer {
                Ok(answer) => answer.json.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(text(whole), text(united), "{tool} {arguments}");
        }
    }
}

/// Lists and comparisons; the last ones are about times without samples, and about windows that are no windows.
fn other_questions() -> Vec<(&'static str, Value)> {
    let (baseline, after, before) = ("2026-03-01T12:00:00Z", "2026-03-01T12:15:00Z", "2026-03-01T12:40:00Z");
    let empty = json!({"after": "2020-01-01", "before": "2020-01-02"});
    let reversed = json!({"after": before, "before": after});
    vec![
        ("list_metrics", json!({})),
        ("list_metrics", json!({"pattern": "lo*"})),
        ("list_metrics", json!({"labels": {"site": "north"}})),
        ("list_metrics", json!({"after": after, "before": before})),
        ("compare_metrics", json!({"after": after, "before": before, "baseline_after": baseline})),
        ("compare_metrics", json!({"after": after, "before": before, "labels": {"host": "a"}, "limit": 2})),
        ("list_metrics", empty.clone()),
        ("compare_metrics", empty.clone()),
        ("query_metrics", json!({"metric": "load", "after": "2020-01-01", "before": "2020-01-02"})),
        ("list_metrics", reversed.clone()),
        ("compare_metrics", reversed),
        ("query_metrics", json!({"metric": "load", "after": before, "before": after})),
    ]
}

#[test]
fn answers_about_metrics_do_not_depend_on_the_nodes() {
    let config = Config {
        cases: Config::default().cases.div_ceil(64),
        max_shrink_iters: 20,
        failure_persistence: None,
        ..Config::default()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let samples = prop_oneof![rows(), rows().prop_shuffle()];
    let questions = prop::collection::vec(questions(), AGGREGATIONS.len());
    TestRunner::new(config)
        .run(&(samples, 2..4_usize, splits(), questions), |(samples, nodes, split, questions)| {
            let network = TelemetryNetwork::new(&[split_samples(&samples, nodes, split)]);
            runtime.block_on(async {
                for (mut question, aggregation) in questions.into_iter().zip(AGGREGATIONS) {
                    question["aggregation"] = json!(aggregation);
                    check_same(&network, "query_metrics", [WHOLE, NETWORK], &question).await;
                }
                for (tool, arguments) in other_questions() {
                    check_same(&network, tool, [WHOLE, NETWORK], &arguments).await;
                }
            });
            Ok(())
        })
        .unwrap();
}

/// A table with a column for each metric. One node lacks a column, and has smaller integers.
fn machines() -> TestTable {
    let bergen = table_rows([
        ("time", times([Some(0), Some(10)])),
        ("site", texts([Some("north"), Some("south")])),
        ("power", Arc::new(Int32Array::from(vec![Some(5), Some(7)]))),
    ]);
    let milan = table_rows([
        ("time", times([Some(20), Some(30)])),
        ("site", texts([Some("south"), None])),
        ("power", integers([None, Some(9)])),
        ("speed", floats([Some(1.5), Some(2.5)])),
    ]);
    let whole = table_rows([
        ("time", times([Some(0), Some(10), Some(20), Some(30)])),
        ("site", texts([Some("north"), Some("south"), Some("south"), None])),
        ("power", integers([Some(5), Some(7), None, Some(9)])),
        ("speed", floats([None, None, Some(1.5), Some(2.5)])),
    ]);
    TestTable { name: "machines", whole, parts: vec![bergen, milan] }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_all_nodes_are_metrics() {
    let network = TelemetryNetwork::new(&[machines()]);
    let sources = [WHOLE_MACHINES, NETWORK_MACHINES];
    let listed = network.answer("list_metrics", NETWORK_MACHINES, json!({})).await;
    let names: Vec<&Value> = listed["metrics"].as_array().unwrap().iter().map(|metric| &metric["name"]).collect();
    assert_eq!(names, ["power", "speed"]);
    check_same(&network, "list_metrics", sources, &json!({})).await;
    let (after, before) = ("2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z");
    for metric in ["power", "speed"] {
        for aggregation in ["average", "max", "last", "count"] {
            let question = json!({
                "metric": metric, "aggregation": aggregation, "after": after, "before": before, "points": 6
            });
            check_same(&network, "query_metrics", sources, &question).await;
        }
    }
    let windows = json!({"after": "2026-03-01T12:00:15Z", "before": before, "baseline_after": after});
    check_same(&network, "compare_metrics", sources, &windows).await;
}

/// The column `_node` is a text like every other. So a series whose samples are on two nodes is two series.
#[tokio::test(flavor = "multi_thread")]
async fn the_node_is_a_label_unless_labels_are_declared() {
    let sample = SampleRow::new;
    let bergen = vec![
        sample(LOAD_NORTH, 0, 1.0),
        sample(LOAD_NORTH, 10, 2.0),
        sample(REQUESTS, 0, 5.0),
        sample(REQUESTS, 10, 15.0),
    ];
    let milan = vec![
        sample(LOAD_SOUTH, 0, 10.0),
        sample(LOAD_SOUTH, 10, 20.0),
        sample(REQUESTS, 20, 30.0),
        sample(REQUESTS, 30, 50.0),
    ];
    let network = TelemetryNetwork::new(&[samples_on(&[bergen, milan])]);
    let listed = network.answer("list_metrics", BY_NODE, json!({})).await;
    let summaries: Vec<Value> = listed["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|metric| json!([metric["name"], metric["series"], metric["labels"]]))
        .collect();
    let expected = [
        json!(["load", 2, {"_node": 2, "host": 2, "site": 2}]),
        json!(["requests_total", 2, {"_node": 2, "host": 1, "site": 1}]),
    ];
    assert_eq!(summaries, expected);
    let series = async |source: &str, mut question: Value| {
        let window = [("after", "2026-03-01T12:00:00Z"), ("before", "2026-03-01T12:01:00Z")];
        window.into_iter().for_each(|(name, time)| question[name] = json!(time));
        question["points"] = json!(1);
        network.answer("query_metrics", source, question).await["series"].clone()
    };
    let load = json!([
        {"labels": {"_node": "milan", "host": "b", "site": "south"}, "values": [30]},
        {"labels": {"_node": "bergen", "host": "a", "site": "north"}, "values": [3]}
    ]);
    assert_eq!(series(BY_NODE, json!({"metric": "load", "aggregation": "sum"})).await, load);
    let of_milan = json!({"metric": "load", "aggregation": "sum", "labels": {"_node": "milan"}});
    assert_eq!(series(BY_NODE, of_milan).await, json!([load[0]]));
    let growth = json!({"metric": "requests_total", "aggregation": "increase"});
    let by_node = series(BY_NODE, growth.clone()).await;
    assert_eq!((&by_node[0]["values"], &by_node[1]["values"]), (&json!([20]), &json!([10])));
    let declared = json!([{"labels": {"host": "a", "site": "north"}, "values": [45]}]);
    assert_eq!(series(NETWORK, growth).await, declared);
}

/// Rows may be in any order, so the samples before the window may follow those of the window.
#[tokio::test(flavor = "multi_thread")]
async fn the_base_of_a_counter_may_follow_its_window() {
    let sample = |index: i64| SampleRow::new(REQUESTS, index * 10, (index * index) as f64);
    // Thirty samples from 12:20, then the twenty before them.
    let of_bergen: Vec<SampleRow> = (120..150).chain(100..120).map(sample).collect();
    let of_milan = vec![SampleRow::new(LOAD_SOUTH, 0, 1.0)];
    let network = TelemetryNetwork::new(&[samples_on(&[of_bergen, of_milan])]);
    let question = json!({
        "metric": "requests_total", "aggregation": "increase", "points": 1,
        "after": "2026-03-01T12:20:00Z", "before": "2026-03-01T12:30:00Z"
    });
    let whole = network.answer("query_metrics", WHOLE, question.clone()).await;
    assert_eq!(whole["series"][0]["values"], json!([149 * 149 - 119 * 119]));
    check_same(&network, "query_metrics", [WHOLE, NETWORK], &question).await;
}
