//! The fields of logs are those of all nodes, and a source covers the entries of all nodes.

use serde_json::{Value, json};

use super::fixture::{NETWORK, TelemetryNetwork, WHOLE};
use super::tables::{TestTable, integers, table_rows, texts, times};

/// The table `events`. One node has no column `region`, and one entry has no time.
pub(super) fn events() -> TestTable {
    let bergen = table_rows([
        ("time", times([Some(0), Some(10), Some(20)])),
        ("level", texts([Some("info"), Some("warn"), None])),
        ("message", texts([Some("started"), Some("slow"), Some("timeout")])),
        ("code", integers([Some(7), None, Some(7)])),
    ]);
    let milan = table_rows([
        ("time", times([Some(5), Some(15), Some(25), Some(35), None])),
        ("level", texts([Some("info"), Some("info"), Some("warn"), Some("info"), Some("info")])),
        ("message", texts(["started", "timeout", "stopped", "timeout", "untimed"].map(Some))),
        ("code", integers([Some(8), Some(7), Some(9), None, Some(7)])),
        ("region", texts([Some("eu"), Some("eu"), Some("us"), None, None])),
    ]);
    let whole = table_rows([
        ("time", times([Some(0), Some(10), Some(20), Some(5), Some(15), Some(25), Some(35), None])),
        (
            "level",
            texts([
                Some("info"),
                Some("warn"),
                None,
                Some("info"),
                Some("info"),
                Some("warn"),
                Some("info"),
                Some("info"),
            ]),
        ),
        (
            "message",
            texts(["started", "slow", "timeout", "started", "timeout", "stopped", "timeout", "untimed"].map(Some)),
        ),
        ("code", integers([Some(7), None, Some(7), Some(8), Some(7), Some(9), None, Some(7)])),
        ("region", texts([None, None, None, Some("eu"), Some("eu"), Some("us"), None, None])),
    ]);
    TestTable { name: "events", whole, parts: vec![bergen, milan] }
}

/// The source called `name` in an answer of `list_logs_sources`.
pub(super) fn source<'a>(sources: &'a Value, name: &str) -> &'a Value {
    sources.as_array().unwrap().iter().find(|source| source["name"] == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_logs_are_those_of_all_nodes() {
    let network = TelemetryNetwork::new(&[events()]);
    let whole = network.answer("list_logs_fields", WHOLE, json!({})).await;
    let united = network.answer("list_logs_fields", NETWORK, json!({})).await;
    let mut expected = whole.as_array().unwrap().clone();
    let names: Vec<&Value> = expected.iter().map(|field| &field["field"]).collect();
    assert_eq!(names, ["time", "level", "message", "code", "region"]);
    // Most entries are on this node.
    expected.push(json!({
        "field": "_node", "type": "text", "role": null, "search": "scan", "values": 2, "example": "milan"
    }));
    assert_eq!(united, Value::from(expected));
}

/// A null is no value, also if fewer entries have it than two of the values.
#[tokio::test(flavor = "multi_thread")]
async fn a_null_is_no_distinct_value_of_a_field() {
    let network = TelemetryNetwork::new(&[events()]);
    for database in [WHOLE, NETWORK] {
        let fields = network.answer("list_logs_fields", database, json!({})).await;
        let values: Vec<Value> =
            fields.as_array().unwrap().iter().map(|field| json!([field["field"], field["values"]])).collect();
        for expected in [json!(["level", 2]), json!(["code", 3]), json!(["region", 2])] {
            assert!(values.contains(&expected), "{database}: {expected} is not among {values:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_covers_the_entries_of_all_nodes() {
    let network = TelemetryNetwork::new(&[events()]);
    let sources = network.call("list_logs_sources", json!({})).await.unwrap().json;
    let (whole, united) = (source(&sources, WHOLE), source(&sources, NETWORK));
    for source in [whole, united] {
        assert_eq!(source["first"], "2026-03-01T12:00:00Z", "{source}");
        assert_eq!(source["last"], "2026-03-01T12:00:35Z", "{source}");
    }
    assert_eq!(whole["rows"], united["rows"]);
    assert_eq!((&united["kind"], &united["table"]), (&json!("network"), &json!("network.events")));
    // The name of the node is a further field.
    assert_eq!(whole["roles"], "time time, message message, severity level, 2 further fields");
    assert_eq!(united["roles"], "time time, message message, severity level, 3 further fields");
    // Nodes do not report the size of their tables.
    assert_eq!(united["bytes"], Value::Null);
}
