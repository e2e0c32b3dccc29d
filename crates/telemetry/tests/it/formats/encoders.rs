//! Bodies that other implementations wrote.

use serde_json::{Value, json};
use tidegate_telemetry::formats::{
    FormatError, OtlpEncoding, RemoteWriteVersion, TableBatches, TelemetryLimits, TelemetryTable, decode_logs,
    decode_metrics, decode_remote_write, decode_traces,
};

use super::rows::{is_equal, row, rows, table};

type Decode = fn(&[u8], OtlpEncoding, &TelemetryLimits) -> Result<TableBatches, FormatError>;

pub(crate) const LOGS: [&[u8]; 2] = [include_bytes!("fixtures/logs.pb"), include_bytes!("fixtures/logs.json")];
pub(crate) const TRACES: [&[u8]; 2] = [include_bytes!("fixtures/traces.pb"), include_bytes!("fixtures/traces.json")];
pub(crate) const METRICS: [&[u8]; 2] = [include_bytes!("fixtures/metrics.pb"), include_bytes!("fixtures/metrics.json")];
pub(crate) const REMOTE_WRITE: [(&[u8], RemoteWriteVersion); 2] = [
    (include_bytes!("fixtures/remote_write_1.snappy"), RemoteWriteVersion::V1),
    (include_bytes!("fixtures/remote_write_2.snappy"), RemoteWriteVersion::V2),
];
pub(crate) const OTLP: [(Decode, [&[u8]; 2]); 3] =
    [(decode_logs, LOGS), (decode_traces, TRACES), (decode_metrics, METRICS)];
const EXPECTED: [&str; 3] = [
    include_str!("fixtures/logs.expected.json"),
    include_str!("fixtures/traces.expected.json"),
    include_str!("fixtures/metrics.expected.json"),
];

/// The table of an expected row, and its number within that table.
fn position(expected: &[Value], index: usize, default: TelemetryTable) -> (TelemetryTable, usize) {
    let name = |row: &Value| row["table"].as_str().unwrap_or(default.name()).to_owned();
    let own = name(&expected[index]);
    let table = TelemetryTable::ALL.into_iter().find(|table| table.name() == own).expect("the table exists");
    (table, expected[..index].iter().filter(|row| name(row) == own).count())
}

#[test]
fn bodies_of_the_python_sdk_have_their_values() {
    let defaults = [TelemetryTable::Logs, TelemetryTable::Traces, TelemetryTable::Gauge];
    for (((decode, bodies), expected), default) in OTLP.into_iter().zip(EXPECTED).zip(defaults) {
        let expected: Vec<Value> = serde_json::from_str(expected).unwrap();
        for (body, encoding) in bodies.into_iter().zip([OtlpEncoding::Protobuf, OtlpEncoding::Json]) {
            let decoded = decode(body, encoding, &TelemetryLimits::default()).unwrap();
            assert_eq!(decoded.rejected.to_string(), "");
            assert_eq!(decoded.row_count(), expected.len());
            for (index, expected_row) in expected.iter().enumerate() {
                let (name, position) = position(&expected, index, default);
                let actual = row(&table(&decoded, name), position);
                for (column, value) in expected_row.as_object().unwrap().iter().filter(|(column, _)| *column != "table")
                {
                    assert!(is_equal(&actual[column], value), "{name:?} {column}: {} != {value}", actual[column]);
                }
            }
        }
    }
}

#[test]
fn both_encodings_give_the_same_rows() {
    for (decode, [protobuf, json]) in OTLP {
        let protobuf = decode(protobuf, OtlpEncoding::Protobuf, &TelemetryLimits::default()).unwrap();
        let json = decode(json, OtlpEncoding::Json, &TelemetryLimits::default()).unwrap();
        assert_eq!(protobuf.batches.len(), json.batches.len());
        for (one, other) in protobuf.batches.iter().zip(&json.batches) {
            assert_eq!((one.table, &one.rows), (other.table, &other.rows));
        }
    }
}

#[test]
fn events_links_and_exemplars_are_json() {
    let decoded = decode_traces(TRACES[0], OtlpEncoding::Protobuf, &TelemetryLimits::default()).unwrap();
    let spans = rows(&table(&decoded, TelemetryTable::Traces));
    let [child, root] = &spans[..] else { panic!("{spans:?}") };
    let event = &root["events"][0];
    assert_eq!((&event["name"], &event["attributes"]), (&json!("started \"now\""), &json!({ "step": 1 })));
    let time = event["time"].as_str().unwrap();
    assert_eq!(time.len(), "2026-01-01T00:00:00.000000000Z".len(), "{time}");
    let link = &child["links"][0];
    assert_eq!((&link["trace_id"], &link["span_id"]), (&root["trace_id"], &root["span_id"]));
    assert_eq!(link["attributes"], json!({ "x": 1.5 }));
    assert_eq!(child["parent_span_id"], root["span_id"]);
}

#[test]
fn remote_write_of_other_encoders_has_its_values() {
    let expected = json!({ "instance": "a:9090", "job": "api \"1\"" });
    for (body, version) in REMOTE_WRITE {
        let decoded = decode_remote_write(body, version, &TelemetryLimits::default()).unwrap();
        let samples = rows(&table(&decoded.tables, TelemetryTable::PrometheusSamples));
        for sample in &samples {
            assert_eq!((&sample["metric"], &sample["labels"]), (&json!("http_requests_total"), &expected));
        }
        let values: Vec<&Value> = samples.iter().map(|sample| &sample["value"]).collect();
        let times: Vec<i64> = samples.iter().map(|sample| sample["time"].as_i64().unwrap()).collect();
        match version {
            RemoteWriteVersion::V1 => {
                assert_eq!(values, [&json!(1.5), &json!("NaN"), &Value::Null]);
                assert_eq!(times, [1_700_000_000_000, 1_700_000_015_001, 1_700_000_030_000]);
                assert_eq!((&samples[0]["type"], decoded.ignored_metadata), (&Value::Null, 1));
            }
            RemoteWriteVersion::V2 => {
                assert_eq!(values, [&json!(1.5), &Value::Null]);
                assert_eq!(times, [1_700_000_000_000, 1_700_000_015_001]);
                assert_eq!(samples[0]["start_time"], json!(1_699_999_999_999_i64));
                assert_eq!(samples[1]["start_time"], Value::Null);
                let described = [&samples[0]["type"], &samples[0]["unit"], &samples[0]["help"]];
                assert_eq!(described, [&json!("counter"), &json!("requests"), &json!("Requests.")]);
            }
        }
        let exemplars = rows(&table(&decoded.tables, TelemetryTable::PrometheusExemplars));
        assert_eq!(exemplars[0]["exemplar_labels"], json!({ "trace_id": "abc" }));
        assert_eq!((&exemplars[0]["value"], &exemplars[0]["time"]), (&json!(0.25), &json!(1_700_000_000_500_i64)));
        assert_eq!(decoded.tables.rejected.count, 1);
        assert!(decoded.tables.rejected.reasons[0].contains("native histograms are not stored"));
    }
}
