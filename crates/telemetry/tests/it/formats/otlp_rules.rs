//! Records that are rejected, bounds, and answers.

use serde_json::{Value, json};
use tidegate_telemetry::formats::{
    FormatError, OtlpEncoding, OtlpSignal, TableBatches, TelemetryLimits, TelemetryTable, decode_logs, decode_metrics,
    decode_traces, success_body,
};

use super::rows::{row, table};

fn logs(records: &[Value], limits: &TelemetryLimits) -> Result<TableBatches, FormatError> {
    let body = json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": records }] }] });
    decode_logs(body.to_string().as_bytes(), OtlpEncoding::Json, limits)
}

fn spans(spans: &[Value]) -> TableBatches {
    let body = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] });
    decode_traces(body.to_string().as_bytes(), OtlpEncoding::Json, &TelemetryLimits::default()).unwrap()
}

fn metrics(metrics: &[Value]) -> TableBatches {
    let body = json!({ "resourceMetrics": [{ "scopeMetrics": [{ "metrics": metrics }] }] });
    decode_metrics(body.to_string().as_bytes(), OtlpEncoding::Json, &TelemetryLimits::default()).unwrap()
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({ "intValue": 1 }), |value, _| json!({ "arrayValue": { "values": [value] } }))
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

#[test]
fn records_that_do_not_fit_are_rejected_and_others_go_on() {
    let attributes: Vec<Value> = (0..1_001).map(|number| text_attribute(&number.to_string(), "")).collect();
    let wrong = [
        (json!({ "timeUnixNano": "9223372036854775808" }), "is after the year 2262"),
        (json!({ "traceId": "abcd" }), "trace_id has 2 bytes; 16 are right"),
        (json!({ "attributes": [text_attribute("a", "1"), text_attribute("a", "2")] }), "\"a\" occurs twice"),
        (json!({ "attributes": [{ "key": "a", "value": nested(17) }] }), "nested more than 16 levels deep"),
        (json!({ "body": nested(17) }), "nested more than 16 levels deep"),
        (json!({ "attributes": attributes }), "a set of 1001 attributes; at most 1000 are accepted"),
        (json!({ "body": { "stringValue": "x".repeat(5 << 20) } }), "bytes as a row; at most 4194304 are accepted"),
    ];
    let mut records: Vec<Value> = wrong.iter().map(|(record, _)| record.clone()).collect();
    records.push(json!({ "body": nested(16), "attributes": &attributes[..1_000] }));
    let decoded = logs(&records, &TelemetryLimits::default()).unwrap();
    assert_eq!(decoded.rejected.count, wrong.len() as u64);
    for (index, (reason, (_, expected))) in decoded.rejected.reasons.iter().zip(&wrong).enumerate() {
        let position = format!("resource 0, scope 0, log record {index}: ");
        assert!(reason.starts_with(&position) && reason.contains(expected), "{reason}");
    }
    let rows = table(&decoded, TelemetryTable::Logs);
    assert_eq!(rows.num_rows(), 1);
    assert_eq!(row(&rows, 0)["body"], json!(format!("{}1{}", "[".repeat(16), "]".repeat(16))));
}

#[test]
fn a_wrong_source_rejects_all_of_its_records() {
    let twice = json!([text_attribute("a", "1"), text_attribute("a", "2")]);
    let records = json!([{}, {}]);
    let body = json!({ "resourceLogs": [
        { "resource": { "attributes": twice }, "scopeLogs": [{ "logRecords": records }] },
        { "scopeLogs": [{ "scope": { "attributes": twice }, "logRecords": records }, { "logRecords": records }] },
    ] });
    let decoded = decode_logs(body.to_string().as_bytes(), OtlpEncoding::Json, &TelemetryLimits::default()).unwrap();
    assert_eq!((decoded.rejected.count, decoded.row_count()), (4, 2));
    assert!(decoded.rejected.reasons[0].contains("the resource: the attribute \"a\" occurs twice"));
    assert!(decoded.rejected.reasons[2].contains("the scope: the attribute \"a\" occurs twice"));
}

#[test]
fn spans_need_identifiers() {
    let trace_id = "5b8efff798038103d269b633813fc60c";
    let decoded = spans(&[
        json!({ "spanId": "eee19b7ec3c1b174" }),
        json!({ "traceId": trace_id, "spanId": "0000000000000000" }),
        json!({ "traceId": trace_id, "spanId": "eee19b7ec3c1b174", "parentSpanId": "ee" }),
        json!({ "traceId": trace_id, "spanId": "eee19b7ec3c1b174", "parentSpanId": "0000000000000000",
            "kind": 9, "startTimeUnixNano": 10, "endTimeUnixNano": 7, "status": { "code": 2 } }),
    ]);
    assert_eq!(decoded.rejected.count, 3);
    let span = row(&table(&decoded, TelemetryTable::Traces), 0);
    assert_eq!(
        (&span["parent_span_id"], &span["kind"], &span["status_code"]),
        (&Value::Null, &json!("9"), &json!("ERROR"))
    );
    assert_eq!((&span["duration_nanos"], &span["events"], &span["links"]), (&json!(-3), &json!([]), &json!([])));
}

#[test]
fn data_points_that_do_not_fit_are_rejected() {
    let histogram = |counts: Value, bounds: Value| json!({ "name": "h", "histogram": { "dataPoints": [{ "bucketCounts": counts, "explicitBounds": bounds }] } });
    let point = json!({ "asInt": 1 });
    let decoded = metrics(&[
        json!({ "name": "two", "gauge": { "dataPoints": [point] }, "sum": { "dataPoints": [point, point] } }),
        json!({ "gauge": { "dataPoints": [point] } }),
        json!({ "name": "g", "gauge": { "dataPoints": [{}] } }),
        json!({ "name": "g", "gauge": { "dataPoints": [{ "asInt": 1, "asDouble": 1.0 }] } }),
        histogram(json!([1, 2]), json!([])),
        histogram(json!([1, 2, 3]), json!([2.0, 2.0])),
        histogram(json!(["9223372036854775808"]), json!([])),
        histogram(json!([]), json!([])),
        json!({ "name": "g", "gauge": { "dataPoints": [{ "flags": 1 }] } }),
        json!({ "name": "empty" }),
    ]);
    assert_eq!(decoded.rejected.count, 9);
    assert!(decoded.rejected.reasons[0].starts_with("metric \"two\", data point 0: the metric has data of more than"));
    let gauge = row(&table(&decoded, TelemetryTable::Gauge), 0);
    assert_eq!((&gauge["value"], &gauge["value_int"], &gauge["flags"]), (&Value::Null, &Value::Null, &json!(1)));
    assert_eq!(row(&table(&decoded, TelemetryTable::Histogram), 0)["bucket_counts"], json!([]));
    assert_eq!(decoded.row_count(), 2);
}

#[test]
fn bodies_beyond_a_bound_are_refused() {
    let records = vec![json!({ "severityText": "x" }); 100];
    let limits = TelemetryLimits::default;
    for (limits, bound) in [
        (TelemetryLimits { body_bytes_max: 1_000, ..limits() }, "bytes; at most 1000 are accepted"),
        (TelemetryLimits { records_max: 99, ..limits() }, "the body has more than 99 records"),
        (TelemetryLimits { decoded_bytes_max: 5_000, ..limits() }, "of the body take more than 5000 bytes of memory"),
    ] {
        match logs(&records, &limits) {
            Err(FormatError::TooLarge(message) | FormatError::OutOfMemory(message)) => {
                assert!(message.contains(bound), "{message}");
            }
            other => panic!("{bound}: {other:?}"),
        }
    }
    assert!(logs(&records, &TelemetryLimits { records_max: 100, ..limits() }).is_ok());
}

#[test]
fn a_resource_that_many_records_repeat_is_bounded() {
    let records = vec![json!({}); 1_000];
    let resource = json!({ "attributes": [text_attribute("a", &"x".repeat(100_000))] });
    let body = json!({ "resourceLogs": [{ "resource": resource, "scopeLogs": [{ "logRecords": records }] }] });
    let limits = TelemetryLimits { decoded_bytes_max: 10 << 20, ..TelemetryLimits::default() };
    let decoded = decode_logs(body.to_string().as_bytes(), OtlpEncoding::Json, &limits);
    assert!(matches!(decoded, Err(FormatError::OutOfMemory(_))), "{decoded:?}");
}

#[test]
fn empty_requests_have_no_rows() {
    for (body, encoding) in [(&b""[..], OtlpEncoding::Protobuf), (b"{}", OtlpEncoding::Json)] {
        let decoded = decode_logs(body, encoding, &TelemetryLimits::default()).unwrap();
        assert_eq!((decoded.row_count(), decoded.rejected.count), (0, 0));
    }
}

#[test]
fn answers_have_the_encoding_of_the_request() {
    let json = |signal, rejected, message| {
        serde_json::from_slice::<Value>(&success_body(signal, OtlpEncoding::Json, rejected, message)).unwrap()
    };
    assert_eq!(json(OtlpSignal::Logs, 0, ""), json!({}));
    assert_eq!(
        json(OtlpSignal::Logs, 3, "why"),
        json!({ "partialSuccess": { "rejectedLogRecords": "3", "errorMessage": "why" } })
    );
    assert_eq!(json(OtlpSignal::Metrics, 1, "")["partialSuccess"]["rejectedDataPoints"], json!("1"));
    assert_eq!(json(OtlpSignal::Traces, 0, "hint")["partialSuccess"]["rejectedSpans"], json!("0"));
    assert_eq!(success_body(OtlpSignal::Logs, OtlpEncoding::Protobuf, 0, ""), b"");
    // Field 1 with five bytes: field 1 with 3, field 2 with two characters.
    assert_eq!(success_body(OtlpSignal::Logs, OtlpEncoding::Protobuf, 3, "ab"), b"\x0a\x06\x08\x03\x12\x02ab");
}

#[test]
fn media_types_have_encodings() {
    let encoding = OtlpEncoding::from_media_type;
    assert_eq!(encoding("application/x-protobuf"), Some(OtlpEncoding::Protobuf));
    assert_eq!(encoding("Application/JSON; charset=utf-8"), Some(OtlpEncoding::Json));
    assert_eq!(encoding("application/grpc"), None);
}
