//! The functions `to_json`, `json_build_object`, `json_build_array` and `json_object`, and those of `jsonb`.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{build_values, check_count, format_jsonb, json_and_jsonb, kind_from_flag, kind_type};
use super::render::{key_text, render_text, render_value, write, write_json};
use super::text::write_string;
use super::value::JsonValue;
use crate::function::{ColumnarFunction, FunctionCall, check_bytes, keep_types};
use crate::json_type::{JsonKind, json_kind};
use crate::list::{TextPairs, text_lists, text_pairs};

pub(super) fn functions() -> Vec<ScalarUDF> {
    let mut functions = vec![
        ColumnarFunction::new("array_to_json", keep_types, array_type, convert_lines),
        ColumnarFunction::new("row_to_json", keep_types, row_type, convert_lines),
    ];
    functions.extend(json_and_jsonb!("to_json", "to_jsonb", keep_types, single_argument_type, convert));
    functions.extend(json_and_jsonb!("json_build_array", "jsonb_build_array", keep_types, kind_type, build_array));
    functions.extend(json_and_jsonb!("json_build_object", "jsonb_build_object", keep_types, object_type, build_object));
    functions.extend(json_and_jsonb!("json_object", "jsonb_object", object_types, kind_type, object));
    functions
}

/// Returns the functions that convert the array of an aggregate's values to its result.
pub(super) fn collect_functions() -> Vec<ScalarUDF> {
    let arrays = json_and_jsonb!("json_collected*", "jsonb_collected*", keep_types, kind_type, collect_array);
    let objects =
        json_and_jsonb!("json_collected_object*", "jsonb_collected_object*", keep_types, kind_type, collect_object);
    arrays.into_iter().chain(objects).collect()
}

fn single_argument_type<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind_from_flag::<IS_BINARY>();
    check_count(&format!("to_{}", kind.name()), fields, 1, 1)?;
    Ok(kind.data_type())
}

fn array_type(fields: &[FieldRef]) -> Result<DataType> {
    check_count("array_to_json", fields, 1, 2)?;
    match fields[0].data_type() {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Null => {
            Ok(JsonKind::Json.data_type())
        }
        _ => plan_err!("array_to_json takes an array; for other values write to_json(value)"),
    }
}

fn row_type(fields: &[FieldRef]) -> Result<DataType> {
    check_count("row_to_json", fields, 1, 2)?;
    match fields[0].data_type() {
        row @ DataType::Struct(_) if json_kind(row).is_none() => Ok(JsonKind::Json.data_type()),
        _ => plan_err!("row_to_json takes a row; for other values write json_build_object('name', column, …)"),
    }
}

fn object_type<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind_from_flag::<IS_BINARY>();
    if fields.len().is_multiple_of(2) {
        return Ok(kind.data_type());
    }
    let name = kind.name();
    plan_err!(
        "argument list must have even number of elements: {name}_build_object() takes alternating keys and values"
    )
}

fn convert<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let kind = kind_from_flag::<IS_BINARY>();
    build_values(call, Some(kind), |row| array.is_valid(row).then(|| render_text(&array, row, kind)).transpose())
}

/// Converts an array or a row. Each element or member is on its own line if the second argument is true.
fn convert_lines(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let lines = match call.args.len() {
        2 => Some(cast(&call.array(1)?, &DataType::Boolean)?),
        _ => None,
    };
    let lines = lines.as_ref().map(|lines| lines.as_boolean());
    build_values(call, Some(JsonKind::Json), |row| {
        if array.is_null(row) || lines.is_some_and(|lines| lines.is_null(row)) {
            return Ok(None);
        }
        let mut out = String::new();
        let separator = if lines.is_some_and(|lines| lines.value(row)) { ",\n " } else { "," };
        write_json(&array, row, separator, &mut out)?;
        Ok(Some(out))
    })
}

fn build_array<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let columns = call.arrays()?;
    let kind = kind_from_flag::<IS_BINARY>();
    build_values(call, Some(kind), |row| {
        let mut out = String::from("[");
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                out.push_str(", ");
            }
            write(column, row, kind, &mut out)?;
        }
        out.push(']');
        Ok(Some(out))
    })
}

fn build_object<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let columns = call.arrays()?;
    let key = |position: usize, row: usize| {
        let column = &columns[position];
        if column.is_null(row) || *column.data_type() == DataType::Null {
            let message = if IS_BINARY { "key must not be null" } else { "cannot be null" };
            return exec_err!("argument {}: {message}", position + 1);
        }
        key_text(column, row)
    };
    if IS_BINARY {
        return build_values(call, Some(JsonKind::Jsonb), |row| {
            let pair = |position| Ok((key(position, row)?, render_value(&columns[position + 1], row)?));
            let pairs = (0..columns.len()).step_by(2).map(pair).collect::<Result<Vec<_>>>()?;
            Ok(Some(format_jsonb(&JsonValue::object(pairs))))
        });
    }
    build_values(call, Some(JsonKind::Json), |row| {
        let mut out = String::from("{");
        for position in (0..columns.len()).step_by(2) {
            write_key(&key(position, row)?, position, &mut out);
            write(&columns[position + 1], row, JsonKind::Json, &mut out)?;
        }
        out.push('}');
        Ok(Some(out))
    })
}

/// Writes the key of the member with the number `index`, and the separators around it.
fn write_key(key: &str, index: usize, out: &mut String) {
    if index > 0 {
        out.push_str(", ");
    }
    write_string(key, out);
    out.push_str(" : ");
}

fn object_types(types: &[DataType]) -> Result<Vec<DataType>> {
    if !(1..=2).contains(&types.len()) {
        return plan_err!("json_object takes one or two arrays of text");
    }
    fn text(data_type: &DataType) -> DataType {
        match data_type {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                DataType::new_list(text(item.data_type()), true)
            }
            _ => DataType::Utf8,
        }
    }
    Ok(types.iter().map(text).collect())
}

fn keys_and_values(call: &FunctionCall<'_>) -> Result<Vec<Option<TextPairs>>> {
    let (keys, values) = (text_lists(&call.array(0)?)?, text_lists(&call.array(1)?)?);
    let pairs = keys.into_iter().zip(values).map(|lists| {
        let (Some(keys), Some(values)) = lists else { return Ok(None) };
        if keys.len() != values.len() {
            return exec_err!("mismatched array dimensions");
        }
        Ok(Some(keys.into_iter().zip(values).collect()))
    });
    pairs.collect()
}

/// Computes `json_object(pairs)` and `json_object(keys, values)`.
fn object<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let mut pairs = if call.args.len() == 1 { text_pairs(&call.array(0)?)? } else { keys_and_values(call)? };
    build_values(call, Some(kind_from_flag::<IS_BINARY>()), |row| {
        let Some(pairs) = pairs[row].take() else { return Ok(None) };
        let pair = |(key, value): (Option<String>, Option<String>)| {
            let key = key.ok_or_else(|| exec_datafusion_err!("null value not allowed for object key"))?;
            Ok((key, value.map_or(JsonValue::Null, JsonValue::Text)))
        };
        object_text(pairs.into_iter().map(pair).collect::<Result<_>>()?, IS_BINARY).map(Some)
    })
}

fn object_text(pairs: Vec<(String, JsonValue)>, is_binary: bool) -> Result<String> {
    if is_binary {
        return Ok(format_jsonb(&JsonValue::object(pairs)));
    }
    let mut out = String::from("{");
    for (position, (key, value)) in pairs.iter().enumerate() {
        write_key(key, position, &mut out);
        super::text::write_value(value, &mut out);
    }
    out.push('}');
    Ok(out)
}

fn collect_array<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let kind = kind_from_flag::<IS_BINARY>();
    let lists = call.array(0)?;
    let lists = lists.as_list::<i32>();
    // Each row or array begins a new line.
    let item = lists.value_type();
    let is_nested = json_kind(&item).is_none()
        && matches!(
            item,
            DataType::Struct(_) | DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)
        );
    let separator = if is_nested && kind == JsonKind::Json { ", \n " } else { ", " };
    build_values(call, Some(kind), |row| {
        if lists.is_null(row) {
            return Ok(None);
        }
        let items = lists.value(row);
        let mut out = String::from("[");
        for item in 0..items.len() {
            if item > 0 {
                out.push_str(separator);
            }
            write(&items, item, kind, &mut out)?;
            check_bytes(out.len())?;
        }
        out.push(']');
        Ok(Some(out))
    })
}

fn collect_object<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let kind = kind_from_flag::<IS_BINARY>();
    let lists = call.array(0)?;
    let lists = lists.as_list::<i32>();
    build_values(call, Some(kind), |row| {
        if lists.is_null(row) {
            return Ok(None);
        }
        let items = lists.value(row);
        let columns = items.as_struct().columns();
        let key = |item: usize| {
            if columns[0].is_null(item) {
                return exec_err!("field name must not be null");
            }
            key_text(&columns[0], item)
        };
        if kind == JsonKind::Jsonb {
            let pair = |item| Ok((key(item)?, render_value(&columns[1], item)?));
            return Ok(Some(format_jsonb(&JsonValue::object((0..items.len()).map(pair).collect::<Result<_>>()?))));
        }
        let mut out = String::from("{ ");
        for item in 0..items.len() {
            write_key(&key(item)?, item, &mut out);
            write(&columns[1], item, kind, &mut out)?;
            check_bytes(out.len())?;
        }
        out.push_str(" }");
        Ok(Some(out))
    })
}
