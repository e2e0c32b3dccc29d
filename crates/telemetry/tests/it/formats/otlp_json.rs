//! OTLP in JSON.

use serde_json::{Value, json};
use tidegate_telemetry::formats::{
    FormatError, OtlpEncoding, TelemetryLimits, TelemetryTable, decode_logs, decode_metrics,
};

use super::rows::{row, table};

/// The row of one log record with these fields.
fn log(record: &str) -> Result<Value, FormatError> {
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{record}]}}]}}]}}"#);
    let decoded = decode_logs(body.as_bytes(), OtlpEncoding::Json, &TelemetryLimits::default())?;
    assert_eq!(decoded.rejected.to_string(), "", "{record}");
    Ok(row(&table(&decoded, TelemetryTable::Logs), 0))
}

fn attribute(value: &str) -> Result<Value, FormatError> {
    log(&format!(r#"{{"attributes":[{{"key":"a","value":{value}}}]}}"#)).map(|row| row["attributes"]["a"].clone())
}

#[test]
fn integers_are_numbers_or_text() {
    for time in ["1544712660300000001", "\"1544712660300000001\""] {
        let row = log(&format!(r#"{{"timeUnixNano":{time},"severityNumber":9,"flags":"1"}}"#)).unwrap();
        assert_eq!(row["time"], json!(1_544_712_660_300_000_001_i64));
        assert_eq!((&row["severity_number"], &row["flags"]), (&json!(9), &json!(1)));
    }
    for (text, value) in [
        (r#"{"intValue":"9223372036854775807"}"#, json!(i64::MAX)),
        (r#"{"intValue":-9223372036854775808}"#, json!(i64::MIN)),
        (r#"{"intValue":5.0}"#, json!(5)),
        (r#"{"intValue":1e3}"#, json!(1000)),
    ] {
        assert_eq!(attribute(text), Ok(value), "{text}");
    }
    for wrong in [
        r#"{"intValue":"9223372036854775808"}"#,
        r#"{"intValue":5.5}"#,
        r#"{"intValue":1e17}"#,
        r#"{"intValue":"5.0"}"#,
        r#"{"intValue":"+5"}"#,
        r#"{"intValue":""}"#,
        r#"{"intValue":true}"#,
    ] {
        assert!(matches!(attribute(wrong), Err(FormatError::Malformed(_))), "{wrong}");
    }
}

#[test]
fn values_have_their_types() {
    for (text, value) in [
        (r#"{"stringValue":"x\u0000\ud83d\ude00"}"#, json!("x\u{0}😀")),
        (r#"{"boolValue":true}"#, json!(true)),
        (r#"{"doubleValue":0.1}"#, json!(0.1)),
        (r#"{"doubleValue":1}"#, json!(1.0)),
        (r#"{"doubleValue":"2.5"}"#, json!(2.5)),
        (r#"{"doubleValue":"NaN"}"#, json!("NaN")),
        (r#"{"doubleValue":"-Infinity"}"#, json!("-Infinity")),
        (r#"{"bytesValue":"_-8="}"#, json!("/+8=")),
        (r#"{"bytesValue":"/+8"}"#, json!("/+8=")),
        (r#"{"arrayValue":{"values":[{"intValue":1},{},{"stringValue":"b"}]}}"#, json!([1, null, "b"])),
        (r#"{"arrayValue":{}}"#, json!([])),
        (r#"{"kvlistValue":{"values":[{"key":"z","value":{"intValue":1}},{"key":"a"}]}}"#, json!({"a": null, "z": 1})),
        ("{}", Value::Null),
        ("null", Value::Null),
        (r#"{"stringValue":null,"intValue":"7","unknownValue":[{}]}"#, json!(7)),
    ] {
        assert_eq!(attribute(text), Ok(value), "{text}");
    }
    for wrong in [
        r#"{"stringValue":"a","intValue":1}"#,
        r#"{"stringValue":1}"#,
        r#"{"doubleValue":"inf"}"#,
        r#"{"doubleValue":"1e999"}"#,
        r#"{"doubleValue":1e999}"#,
        r#"{"bytesValue":"%"}"#,
        r#"{"stringValue":"a","stringValue":"b"}"#,
        r#"{"stringValue":"\ud83d"}"#,
    ] {
        assert!(matches!(attribute(wrong), Err(FormatError::Malformed(_))), "{wrong}");
    }
}

#[test]
fn identifiers_are_hexadecimal_in_any_case() {
    let row = log(r#"{"traceId":"5B8EFFF798038103d269b633813fc60c","spanId":"EEE19B7EC3C1B174"}"#).unwrap();
    assert_eq!(row["trace_id"], json!("5b8efff798038103d269b633813fc60c"));
    assert_eq!(row["span_id"], json!("eee19b7ec3c1b174"));
    let row = log(r#"{"traceId":"","spanId":null}"#).unwrap();
    assert_eq!((&row["trace_id"], &row["span_id"]), (&Value::Null, &Value::Null));
    for wrong in [r#"{"traceId":"W47/95gDgQPSabYzgT/GDA=="}"#, r#"{"spanId":"abc"}"#, r#"{"severityNumber":"INFO"}"#] {
        assert!(matches!(log(wrong), Err(FormatError::Malformed(_))), "{wrong}");
    }
}

#[test]
fn fields_are_known_by_their_names_in_camel_case() {
    let row = log(r#"{"time_unix_nano":5,"unknown":{"a":[1,{"b":null}]},"observedTimeUnixNano":"7"}"#).unwrap();
    assert_eq!((&row["time"], &row["observed_time"]), (&json!(7), &json!(7)));
    assert_eq!((&row["body"], &row["attributes"]), (&Value::Null, &json!({})));
}

#[test]
fn bodies_are_text() {
    for (value, text) in [
        (r#"{"stringValue":"{\"a\":1}"}"#, "{\"a\":1}"),
        (r#"{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"1"}}]}}"#, "{\"a\":1}"),
        (r#"{"intValue":"9007199254740993"}"#, "9007199254740993"),
        (r#"{"boolValue":false}"#, "false"),
        (r#"{"stringValue":""}"#, ""),
    ] {
        assert_eq!(log(&format!(r#"{{"body":{value}}}"#)).unwrap()["body"], json!(text), "{value}");
    }
}

#[test]
fn metrics_in_json() {
    let body = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
        {"name":"a","gauge":{"dataPoints":[{"timeUnixNano":"5","asInt":"-9007199254740993"},{"asDouble":1,"timeUnixNano":6}]}},
        {"name":"h","histogram":{"aggregationTemporality":7,"dataPoints":[{"count":"2","sum":1.5,
            "bucketCounts":["1",1],"explicitBounds":["2.5"]}]}},
        {"name":"s","summary":{"dataPoints":[{"count":2,"sum":"NaN","quantileValues":[{"quantile":0.5,"value":"NaN"}]}]}}
    ]}]}]}"#;
    let decoded = decode_metrics(body.as_bytes(), OtlpEncoding::Json, &TelemetryLimits::default()).unwrap();
    let gauge = table(&decoded, TelemetryTable::Gauge);
    assert_eq!(row(&gauge, 0)["value_int"], json!(-9_007_199_254_740_993_i64));
    assert_eq!(row(&gauge, 0)["value"], json!(-9_007_199_254_740_992.0));
    assert_eq!((&row(&gauge, 1)["value_int"], &row(&gauge, 1)["value"]), (&Value::Null, &json!(1.0)));
    let histogram = row(&table(&decoded, TelemetryTable::Histogram), 0);
    assert_eq!((&histogram["bucket_counts"], &histogram["explicit_bounds"]), (&json!([1, 1]), &json!([2.5])));
    assert_eq!((&histogram["aggregation_temporality"], &histogram["min"]), (&json!("7"), &Value::Null));
    let summary = row(&table(&decoded, TelemetryTable::Summary), 0);
    assert_eq!((&summary["quantiles"], &summary["quantile_values"]), (&json!([0.5]), &json!(["NaN"])));
}
