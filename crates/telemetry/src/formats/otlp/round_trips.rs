//! Any messages, encoded and decoded again.

use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type, TimestampNanosecondType};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use prost::Message;
use serde_json::{Map, Value as Json, json};

use super::messages::{
    AnyValue, ArrayValue, ExportLogsServiceRequest, ExportMetricsServiceRequest, Gauge, KeyValue, KeyValueList,
    LogRecord, Metric, NumberDataPoint, Resource, ResourceLogs, ResourceMetrics, ScopeLogs, ScopeMetrics, Value,
};
use super::{OtlpEncoding, decode_logs, decode_metrics};
use crate::formats::limits::TelemetryLimits;
use crate::formats::tables::TelemetryTable;

fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(None),
        any::<String>().prop_map(|text| Some(Value::Text(text))),
        any::<bool>().prop_map(|value| Some(Value::Boolean(value))),
        any::<i64>().prop_map(|value| Some(Value::Integer(value))),
        any::<f64>().prop_map(|value| Some(Value::Double(value))),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Some(Value::Bytes(bytes))),
    ]
    .prop_map(|value| AnyValue { value });
    leaf.prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|values| AnyValue { value: Some(Value::Array(ArrayValue { values })) }),
            members(inner).prop_map(|values| AnyValue { value: Some(Value::Members(KeyValueList { values })) }),
        ]
    })
}

/// Members with different keys.
fn members(value: impl Strategy<Value = AnyValue>) -> impl Strategy<Value = Vec<KeyValue>> {
    proptest::collection::btree_map(any::<String>(), value, 0..4).prop_map(|members| {
        // In another order than that of the keys.
        members.into_iter().rev().map(|(key, value)| KeyValue { key, value: Some(value) }).collect()
    })
}

fn any_record() -> impl Strategy<Value = LogRecord> {
    (any::<i64>(), any::<u32>(), proptest::option::of(any_value()), members(any_value()), any::<[u8; 16]>()).prop_map(
        |(time, flags, body, attributes, trace_id)| LogRecord {
            time_unix_nano: time.unsigned_abs() >> 1,
            severity_number: (flags % 25) as i32,
            severity_text: flags.to_string(),
            flags,
            body,
            attributes,
            trace_id: trace_id.to_vec(),
            dropped_attributes_count: flags >> 1,
            ..LogRecord::default()
        },
    )
}

/// The value as JSON, made in another way than by the code under test.
fn expected_json(value: &AnyValue) -> Json {
    match &value.value {
        None => Json::Null,
        Some(Value::Text(text)) => json!(text),
        Some(Value::Boolean(value)) => json!(value),
        Some(Value::Integer(value)) => json!(value),
        Some(Value::Double(value)) if value.is_nan() => json!("NaN"),
        Some(Value::Double(value)) if value.is_infinite() => json!(if *value > 0.0 { "Infinity" } else { "-Infinity" }),
        Some(Value::Double(value)) => json!(value),
        Some(Value::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        Some(Value::Array(array)) => array.values.iter().map(expected_json).collect(),
        Some(Value::Members(members)) => expected_object(&members.values),
    }
}

fn expected_object(members: &[KeyValue]) -> Json {
    let value = |member: &KeyValue| member.value.as_ref().map_or(Json::Null, expected_json);
    Json::Object(members.iter().map(|member| (member.key.clone(), value(member))).collect())
}

/// The value as OTLP writes it in JSON.
fn otlp_json(value: &AnyValue) -> Json {
    match &value.value {
        None => json!({}),
        Some(Value::Text(text)) => json!({ "stringValue": text }),
        Some(Value::Boolean(value)) => json!({ "boolValue": value }),
        Some(Value::Integer(value)) => json!({ "intValue": value.to_string() }),
        Some(Value::Double(_)) => json!({ "doubleValue": expected_json(value) }),
        Some(Value::Bytes(_)) => json!({ "bytesValue": expected_json(value) }),
        Some(Value::Array(array)) => {
            json!({ "arrayValue": { "values": array.values.iter().map(otlp_json).collect::<Vec<_>>() } })
        }
        Some(Value::Members(members)) => json!({ "kvlistValue": { "values": otlp_members(&members.values) } }),
    }
}

fn otlp_members(members: &[KeyValue]) -> Json {
    members.iter().map(|member| json!({ "key": member.key, "value": member.value.as_ref().map(otlp_json) })).collect()
}

fn otlp_record(record: &LogRecord) -> Json {
    let mut object = Map::new();
    object.insert("timeUnixNano".to_owned(), json!(record.time_unix_nano.to_string()));
    object.insert("severityNumber".to_owned(), json!(record.severity_number));
    object.insert("severityText".to_owned(), json!(record.severity_text));
    object.insert("flags".to_owned(), json!(record.flags));
    object.insert("body".to_owned(), record.body.as_ref().map_or(Json::Null, otlp_json));
    object.insert("attributes".to_owned(), otlp_members(&record.attributes));
    object.insert("traceId".to_owned(), json!(hex::encode(&record.trace_id)));
    object.insert("droppedAttributesCount".to_owned(), json!(record.dropped_attributes_count));
    Json::Object(object)
}

proptest! {
    #[test]
    fn log_records_keep_their_values(
        records in proptest::collection::vec(any_record(), 1..5),
        resource in members(any_value()),
    ) {
        let scope = ScopeLogs { log_records: records.clone(), ..ScopeLogs::default() };
        let resource_message = Resource { attributes: resource.clone(), ..Resource::default() };
        let logs = ResourceLogs { resource: Some(resource_message), scope_logs: vec![scope], schema_url: String::new() };
        let body = ExportLogsServiceRequest { resource_logs: vec![logs] }.encode_to_vec();
        let decoded = decode_logs(&body, OtlpEncoding::Protobuf, &TelemetryLimits::default()).expect("it is decoded");
        prop_assert_eq!(decoded.rejected.count, 0, "{}", decoded.rejected);
        let rows = &decoded.batches[0].rows;
        let column = |name: &str| rows.column_by_name(name).expect("the column exists");
        let json = |name: &str, row: usize| -> Json {
            serde_json::from_str(column(name).as_string::<i32>().value(row)).expect("it is JSON")
        };
        prop_assert_eq!(rows.num_rows(), records.len());
        for (row, record) in records.iter().enumerate() {
            prop_assert_eq!(json("attributes", row), expected_object(&record.attributes));
            prop_assert_eq!(json("resource_attributes", row), expected_object(&resource));
            let body = column("body").as_string::<i32>();
            match record.body.as_ref().and_then(|body| body.value.as_ref()) {
                None => prop_assert!(arrow::array::Array::is_null(body, row)),
                Some(Value::Text(text)) => prop_assert_eq!(body.value(row), text),
                Some(Value::Bytes(bytes)) => prop_assert_eq!(body.value(row), STANDARD.encode(bytes)),
                Some(_) => prop_assert_eq!(json("body", row), record.body.as_ref().map_or(Json::Null, expected_json)),
            }
            let time = column("time").as_primitive::<TimestampNanosecondType>().value(row);
            prop_assert_eq!(time.unsigned_abs(), record.time_unix_nano);
            prop_assert_eq!(column("flags").as_primitive::<Int64Type>().value(row), i64::from(record.flags));
            prop_assert_eq!(column("trace_id").as_string::<i32>().value(row), hex::encode(&record.trace_id));
        }
        let records: Vec<Json> = records.iter().map(otlp_record).collect();
        let resource = json!({ "attributes": otlp_members(&resource) });
        let body = json!({ "resourceLogs": [{ "resource": resource, "scopeLogs": [{ "logRecords": records }] }] });
        let from_json = decode_logs(body.to_string().as_bytes(), OtlpEncoding::Json, &TelemetryLimits::default());
        prop_assert_eq!(&from_json.expect("it is decoded").batches[0].rows, rows);
    }

    #[test]
    fn numbers_keep_their_bits(values in proptest::collection::vec(any::<Result<u64, i64>>(), 1..20)) {
        let data_points = values.iter().map(|value| NumberDataPoint {
            as_double: value.ok().map(f64::from_bits),
            as_int: value.err(),
            ..NumberDataPoint::default()
        });
        let gauge = Some(Gauge { data_points: data_points.collect() });
        let metric = Metric { name: "m".to_owned(), gauge, ..Metric::default() };
        let scope = ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() };
        let metrics = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
        let body = ExportMetricsServiceRequest { resource_metrics: vec![metrics] }.encode_to_vec();
        let decoded = decode_metrics(&body, OtlpEncoding::Protobuf, &TelemetryLimits::default()).expect("it is decoded");
        let [batch] = &decoded.batches[..] else { panic!("there is one table") };
        prop_assert_eq!(batch.table, TelemetryTable::Gauge);
        let doubles = batch.rows.column_by_name("value").expect("the column exists").as_primitive::<Float64Type>();
        let integers = batch.rows.column_by_name("value_int").expect("the column exists").as_primitive::<Int64Type>();
        prop_assert_eq!(doubles.len(), values.len());
        for ((value, double), integer) in values.iter().zip(doubles).zip(integers) {
            prop_assert_eq!(value.err(), integer);
            if let Ok(bits) = value {
                prop_assert_eq!(double.map(f64::to_bits), Some(*bits));
            }
        }
    }
}
