//! JSON: an array of objects, or a sequence of objects. The columns come from the first of them.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufRead;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
use serde_json::{Map, Value};

use super::super::file_kind::Compression;
use super::super::json_array::ArrayElements;
use super::super::limits::FileLimits;
use super::super::text_reader::{ReadBudget, TextDecoding, open_text, peek_first_byte, read_error_reason};
use super::super::type_widening::{CoercionMode, wider};
use super::{ContentFormat, FileProfile, text_column};

pub(super) fn probe_json(
    file: File,
    compression: Compression,
    rows_max: usize,
    limits: &FileLimits,
) -> Result<FileProfile, String> {
    let mut text = open_text(file, compression, TextDecoding::default(), ReadBudget::new(limits.row_bytes_max))?;
    match peek_first_byte(&mut text).map_err(|error| read_error_reason(&error, compression))? {
        Some(b'[') => probe_objects(ArrayElements::open(text), compression, rows_max, limits),
        Some(b'{') => probe_objects(text, compression, rows_max, limits),
        Some(_) => Err("it contains neither an array of objects nor objects".to_owned()),
        None => Err("the file is empty".to_owned()),
    }
}

fn probe_objects(
    text: impl BufRead,
    compression: Compression,
    rows_max: usize,
    limits: &FileLimits,
) -> Result<FileProfile, String> {
    let mut objects = serde_json::Deserializer::from_reader(text).into_iter::<Value>();
    let mut columns = JsonColumns::default();
    let mut rows = 0;
    for value in objects.by_ref().take(rows_max) {
        match value.map_err(|error| json_error_reason(&error, rows + 1, compression))? {
            Value::Object(object) => columns.learn(object)?,
            _ => return Err(format!("row {} is not an object", rows + 1)),
        }
        rows += 1;
        if columns.fields.len() > limits.columns_max {
            return Err(format!("its objects have more than {} different keys", limits.columns_max));
        }
    }
    if columns.fields.is_empty() {
        return Err("it contains no object with a key, so there are no columns".to_owned());
    }
    let row_bytes = (objects.byte_offset() / rows.max(1)) as u64;
    Ok(FileProfile {
        rows: (rows < rows_max).then_some(rows as u64),
        row_bytes: Some(row_bytes),
        ..FileProfile::new(ContentFormat::Json, Arc::new(Schema::new(columns.fields)))
    })
}

fn json_error_reason(error: &serde_json::Error, row: usize, compression: Compression) -> String {
    match error.io_error_kind() {
        Some(kind) => {
            let text = error.to_string();
            let plain = text.split(" at line ").next().unwrap_or(&text);
            read_error_reason(&std::io::Error::new(kind, plain), compression)
        }
        None => format!("row {row} is not valid JSON: {error}"),
    }
}

/// The columns, in the order in which their names first appear.
#[derive(Default)]
struct JsonColumns {
    fields: Vec<Field>,
    positions: HashMap<String, usize>,
}

impl JsonColumns {
    fn learn(&mut self, object: Map<String, Value>) -> Result<(), String> {
        for (name, value) in object {
            let mixed =
                || format!("the values of {name:?} are objects or arrays in some rows and something else in others");
            let data_type = json_data_type(&value).ok_or_else(mixed)?;
            match self.positions.get(&name) {
                Some(&position) => {
                    let field = &mut self.fields[position];
                    let both = wider(field.data_type(), &data_type, CoercionMode::ToText).ok_or_else(mixed)?;
                    field.set_data_type(both);
                }
                None => {
                    self.fields.push(text_column(&name, data_type));
                    self.positions.insert(name, self.fields.len() - 1);
                }
            }
        }
        Ok(())
    }
}

/// The type of a value; `None` for an array whose elements have no common type.
fn json_data_type(value: &Value) -> Option<DataType> {
    Some(match value {
        Value::Null => DataType::Null,
        Value::Bool(_) => DataType::Boolean,
        Value::Number(number) if number.is_i64() => DataType::Int64,
        // A float would lose digits.
        Value::Number(number) if number.is_u64() => DataType::Utf8,
        Value::Number(_) => DataType::Float64,
        Value::String(_) => DataType::Utf8,
        Value::Array(items) => {
            let mut item_type = DataType::Null;
            for item in items {
                item_type = wider(&item_type, &json_data_type(item)?, CoercionMode::ToText)?;
            }
            DataType::List(Arc::new(Field::new_list_field(item_type, true)))
        }
        Value::Object(object) => {
            let fields: Option<Fields> =
                object.iter().map(|(name, value)| Some(text_column(name, json_data_type(value)?))).collect();
            DataType::Struct(fields?)
        }
    })
}
