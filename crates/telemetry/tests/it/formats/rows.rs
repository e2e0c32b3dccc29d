//! Cells of record batches as JSON.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampMillisecondType, TimestampNanosecondType,
};
use serde_json::{Value, json};
use tidegate_telemetry::formats::{TableBatches, TelemetryTable};

/// The rows of one table.
pub(crate) fn table(batches: &TableBatches, table: TelemetryTable) -> RecordBatch {
    let mut found = batches.batches.iter().filter(|batch| batch.table == table);
    let batch = found.next().unwrap_or_else(|| panic!("{table:?} has no rows; rejected: {}", batches.rejected));
    assert!(found.next().is_none(), "{table:?} has one batch");
    assert_eq!(batch.rows.schema(), table.schema());
    batch.rows.clone()
}

/// A row as an object. Columns of JSON are parsed, times are their numbers.
pub(crate) fn row(batch: &RecordBatch, row: usize) -> Value {
    let schema = batch.schema();
    let members = schema.fields().iter().zip(batch.columns()).map(|(field, array)| {
        let value = cell(array, row);
        let is_json = field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.json");
        let value = match value {
            Value::String(text) if is_json => serde_json::from_str(&text).expect("a column of JSON has JSON"),
            value => value,
        };
        (field.name().clone(), value)
    });
    Value::Object(members.collect())
}

pub(crate) fn rows(batch: &RecordBatch) -> Vec<Value> {
    (0..batch.num_rows()).map(|index| row(batch, index)).collect()
}

fn cell(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int32 => json!(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            json!(array.as_primitive::<TimestampNanosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            json!(array.as_primitive::<TimestampMillisecondType>().value(row))
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|index| cell(&items, index)).collect()
        }
        other => panic!("no column has the type {other}"),
    }
}

fn double(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

/// Whether two values are equal; a number with a fraction is equal to an integer of the same size.
pub(crate) fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| is_equal(value, other)))
        }
        _ => one == other,
    }
}
