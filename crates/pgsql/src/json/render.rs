//! Values of SQL as JSON: `to_json`, `to_jsonb` and what builds objects and arrays of values.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};

use super::document::format_jsonb;
use super::reader::parse;
use super::scalar::{JsonScalar, read_scalar};
use super::text::{write_string, write_value};
use super::value::JsonValue;
use crate::json_type::{JsonKind, json_kind};

/// Writes the value of `row` as `kind`.
pub(super) fn write(array: &ArrayRef, row: usize, kind: JsonKind, out: &mut String) -> Result<()> {
    match kind {
        JsonKind::Json => write_json(array, row, ",", out),
        JsonKind::Jsonb => {
            if json_kind(array.data_type()) == Some(JsonKind::Jsonb) && array.is_valid(row) {
                out.push_str(array.as_struct().column(0).as_string::<i32>().value(row));
            } else {
                write_value(&render_value(array, row)?, out);
            }
            Ok(())
        }
    }
}

/// Writes the value of `row` as `kind`.
pub(super) fn render_text(array: &ArrayRef, row: usize, kind: JsonKind) -> Result<String> {
    let mut out = String::new();
    write(array, row, kind, &mut out)?;
    Ok(out)
}

fn json_text(array: &ArrayRef, row: usize) -> &str {
    array.as_struct().column(0).as_string::<i32>().value(row)
}

/// Returns the values of a list.
pub(super) fn elements(array: &ArrayRef, row: usize) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().value(row)),
        _ => None,
    }
}

/// Converts the value of `row` to a document of `jsonb`.
pub(super) fn render_value(array: &ArrayRef, row: usize) -> Result<JsonValue> {
    if array.is_null(row) {
        return Ok(JsonValue::Null);
    }
    if json_kind(array.data_type()).is_some() {
        return parse(json_text(array, row));
    }
    if let Some(items) = elements(array, row) {
        return Ok(JsonValue::Array((0..items.len()).map(|item| render_value(&items, item)).collect::<Result<_>>()?));
    }
    match array.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let pairs = columns.map(|(column, field)| Ok((field.name().clone(), render_value(column, row)?)));
            Ok(JsonValue::object(pairs.collect::<Result<_>>()?))
        }
        DataType::Map(..) => {
            let entries: ArrayRef = Arc::new(array.as_map().value(row));
            let columns = entries.as_struct().columns();
            let pair = |entry| Ok((key_text(&columns[0], entry)?, render_value(&columns[1], entry)?));
            Ok(JsonValue::object((0..entries.len()).map(pair).collect::<Result<_>>()?))
        }
        DataType::Dictionary(_, values) => render_value(&cast(&array.slice(row, 1), values)?, 0),
        _ => Ok(match read_scalar(array, row)? {
            JsonScalar::Null => JsonValue::Null,
            JsonScalar::Bool(value) => JsonValue::Bool(value),
            JsonScalar::Number(number) => JsonValue::Number(super::number::canonicalize(&number)?),
            JsonScalar::Text(text) => JsonValue::Text(text),
        }),
    }
}

/// Writes the value of `row` as PostgreSQL's functions of `json` do: without spaces, members in their order.
/// Writes `separator` between elements and members, but not within them.
pub(super) fn write_json(array: &ArrayRef, row: usize, separator: &str, out: &mut String) -> Result<()> {
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    if json_kind(array.data_type()).is_some() {
        out.push_str(json_text(array, row));
        return Ok(());
    }
    if let Some(items) = elements(array, row) {
        out.push('[');
        for item in 0..items.len() {
            if item > 0 {
                out.push_str(separator);
            }
            write_json(&items, item, ",", out)?;
        }
        out.push(']');
        return Ok(());
    }
    match array.data_type() {
        DataType::Struct(fields) => {
            out.push('{');
            for (position, (column, field)) in array.as_struct().columns().iter().zip(fields).enumerate() {
                if position > 0 {
                    out.push_str(separator);
                }
                write_string(field.name(), out);
                out.push(':');
                write_json(column, row, ",", out)?;
            }
            out.push('}');
        }
        DataType::Map(..) => out.push_str(&format_jsonb(&render_value(array, row)?)),
        DataType::Dictionary(_, values) => write_json(&cast(&array.slice(row, 1), values)?, 0, separator, out)?,
        _ => match read_scalar(array, row)? {
            JsonScalar::Null => out.push_str("null"),
            JsonScalar::Bool(value) => out.push_str(if value { "true" } else { "false" }),
            JsonScalar::Number(number) => out.push_str(&number),
            JsonScalar::Text(text) => write_string(&text, out),
        },
    }
    Ok(())
}

/// Converts the value of `row` to the key of an object.
pub(crate) fn key_text(array: &ArrayRef, row: usize) -> Result<String> {
    match array.data_type() {
        DataType::Dictionary(_, values) => key_text(&cast(&array.slice(row, 1), values)?, 0),
        DataType::Struct(_) | DataType::Map(..) | DataType::List(_) | DataType::LargeList(_) => {
            exec_err!("key value must be scalar, not array, composite, or json")
        }
        DataType::Timestamp(..) => match read_scalar(array, row)? {
            // The text of a timestamp has a space where JSON has a T, and a shorter zone.
            JsonScalar::Text(text) => Ok(text.replacen('T', " ", 1).replacen("+00:00", "+00", 1)),
            _ => exec_err!("key must not be null"),
        },
        _ => match read_scalar(array, row)? {
            JsonScalar::Null => exec_err!("key must not be null"),
            JsonScalar::Bool(value) => Ok(value.to_string()),
            JsonScalar::Number(text) | JsonScalar::Text(text) => Ok(text),
        },
    }
}
