//! Writes rows as JSON and CSV, exactly.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

fn object(batch: &RecordBatch, row: usize) -> String {
    let schema = batch.schema();
    let members =
        schema.fields().iter().zip(batch.columns()).filter(|(_, column)| row.is_multiple_of(2) || column.is_valid(row));
    let members = members.map(|(field, column)| format!("{}:{}", quoted(field.name()), json_value(column, row)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

pub(crate) fn ndjson_body(batch: &RecordBatch) -> String {
    (0..batch.num_rows()).map(|row| object(batch, row) + "\n").collect()
}

pub(crate) fn json_body(batch: &RecordBatch) -> String {
    let rows: Vec<String> = (0..batch.num_rows()).map(|row| object(batch, row)).collect();
    format!("[{}]", rows.join(",\n "))
}

pub(crate) fn csv_body(batch: &RecordBatch) -> String {
    let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    let row = |row: usize| {
        let fields = batch.columns().iter().map(|column| csv_field(column, row));
        fields.collect::<Vec<_>>().join(",") + "\r\n"
    };
    names.join(",") + "\n" + &(0..batch.num_rows()).map(row).collect::<String>()
}

fn csv_field(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return String::new();
    }
    let json = json_value(array, row);
    // A text has no quotes of JSON.
    let text = serde_json::from_str::<String>(&json).unwrap_or(json);
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn json_value(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    let items = |items: ArrayRef| (0..items.len()).map(|item| json_value(&items, item)).collect::<Vec<_>>();
    match array.data_type() {
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row), |value| format!("{value:?}")),
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            float(f64::from(value), |_| format!("{value:?}"))
        }
        DataType::Binary => quoted(&STANDARD.encode(array.as_binary::<i32>().value(row))),
        DataType::FixedSizeBinary(_) => quoted(&STANDARD.encode(array.as_fixed_size_binary().value(row))),
        DataType::List(_) => format!("[{}]", items(array.as_list::<i32>().value(row)).join(",")),
        DataType::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns());
            let members = members.map(|(field, array)| format!("{}:{}", quoted(field.name()), json_value(array, row)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (items(entries.column(0).clone()), items(entries.column(1).clone()));
            let entries: Vec<String> = keys.iter().zip(values).map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", entries.join(","))
        }
        data_type => {
            let text = ArrayFormatter::try_new(array, &FormatOptions::default()).unwrap().value(row).to_string();
            let is_bare = data_type.is_integer() || data_type.is_decimal() || *data_type == DataType::Boolean;
            if is_bare { text } else { quoted(&text) }
        }
    }
}

fn float(value: f64, text: impl Fn(f64) -> String) -> String {
    match value {
        value if value.is_nan() => "\"NaN\"".to_owned(),
        f64::INFINITY => "\"Infinity\"".to_owned(),
        f64::NEG_INFINITY => "\"-Infinity\"".to_owned(),
        value => text(value),
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
