//! `to_json`, `json_build_object`, `json_build_array`, `json_object` and their `jsonb` siblings.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{build_values, check_count, format_jsonb, into_array, kind_from_flag};
use super::render::{key_text, render_text, render_value, write, write_json};
use super::text::write_string;
use super::value::JsonValue;
use crate::function::{BoundedTexts, ColumnarFunction, FunctionCall, check_bytes, keep_types};
use crate::json_type::{JsonKind, json_kind};
use crate::list::{TextPairs, text_lists, text_pairs};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new(
            "to_json",
            keep_types,
            |fields| single_argument_type(fields, "to_json", JsonKind::Json),
            convert::<false>,
        ),
        ColumnarFunction::new(
            "to_jsonb",
            keep_types,
            |fields| single_argument_type(fields, "to_jsonb", JsonKind::Jsonb),
            convert::<true>,
        ),
        ColumnarFunction::new("array_to_json", keep_types, array_type, convert_lines),
        ColumnarFunction::new("row_to_json", keep_types, row_type, convert_lines),
        ColumnarFunction::new("json_build_array", keep_types, |_| Ok(JsonKind::Json.data_type()), build_array::<false>),
        ColumnarFunction::new(
            "jsonb_build_array",
            keep_types,
            |_| Ok(JsonKind::Jsonb.data_type()),
            build_array::<true>,
        ),
        ColumnarFunction::new(
            "json_build_object",
            keep_types,
            |fields| object_type(fields, JsonKind::Json),
            build_object::<false>,
        ),
        ColumnarFunction::new(
            "jsonb_build_object",
            keep_types,
            |fields| object_type(fields, JsonKind::Jsonb),
            build_object::<true>,
        ),
        ColumnarFunction::new("json_object", object_types, |_| Ok(JsonKind::Json.data_type()), object::<false>),
        ColumnarFunction::new("jsonb_object", object_types, |_| Ok(JsonKind::Jsonb.data_type()), object::<true>),
    ]
}

fn single_argument_type(fields: &[FieldRef], name: &str, kind: JsonKind) -> Result<DataType> {
    check_count(name, fields, 1, 1)?;
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

fn object_type(fields: &[FieldRef], kind: JsonKind) -> Result<DataType> {
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
    let mut texts = BoundedTexts::new(call.rows);
    for row in 0..call.rows {
        let text = if array.is_valid(row) { Some(render_text(&array, row, kind)?) } else { None };
        texts.push(text)?;
    }
    into_array(texts, Some(kind))
}

/// The elements of an array or the members of a row, each on a line of its own if the second argument says so.
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

/// All arguments as arrays.
fn arrays(call: &FunctionCall<'_>) -> Result<Vec<ArrayRef>> {
    (0..call.args.len()).map(|index| call.array(index)).collect()
}

fn build_array<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let columns = arrays(call)?;
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
    let columns = arrays(call)?;
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
            if position > 0 {
                out.push_str(", ");
            }
            write_string(&key(position, row)?, &mut out);
            out.push_str(" : ");
            write(&columns[position + 1], row, JsonKind::Json, &mut out)?;
        }
        out.push('}');
        Ok(Some(out))
    })
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

/// `json_object(pairs)` and `json_object(keys, values)`.
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
        if position > 0 {
            out.push_str(", ");
        }
        write_string(key, &mut out);
        out.push_str(" : ");
        super::text::write_value(value, &mut out);
    }
    out.push('}');
    Ok(out)
}

/// What an aggregate makes of the array of its values.
pub(super) fn collect_array_function(is_binary: bool) -> ScalarUDF {
    if is_binary {
        ColumnarFunction::new(
            "jsonb_collected*",
            keep_types,
            |_| Ok(JsonKind::Jsonb.data_type()),
            |call| collect_array(call, JsonKind::Jsonb),
        )
    } else {
        ColumnarFunction::new(
            "json_collected*",
            keep_types,
            |_| Ok(JsonKind::Json.data_type()),
            |call| collect_array(call, JsonKind::Json),
        )
    }
}

fn collect_array(call: &FunctionCall<'_>, kind: JsonKind) -> Result<ArrayRef> {
    let lists = call.array(0)?;
    let lists = lists.as_list::<i32>();
    // Rows and arrays stand on lines of their own.
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

/// What an aggregate makes of the array of its pairs.
pub(super) fn collect_object_function(is_binary: bool) -> ScalarUDF {
    let name = if is_binary { "jsonb_collected_object*" } else { "json_collected_object*" };
    if is_binary {
        ColumnarFunction::new(
            name,
            keep_types,
            |_| Ok(JsonKind::Jsonb.data_type()),
            |call| collect_object(call, JsonKind::Jsonb),
        )
    } else {
        ColumnarFunction::new(
            name,
            keep_types,
            |_| Ok(JsonKind::Json.data_type()),
            |call| collect_object(call, JsonKind::Json),
        )
    }
}

fn collect_object(call: &FunctionCall<'_>, kind: JsonKind) -> Result<ArrayRef> {
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
            if item > 0 {
                out.push_str(", ");
            }
            write_string(&key(item)?, &mut out);
            out.push_str(" : ");
            write(&columns[1], item, kind, &mut out)?;
            check_bytes(out.len())?;
        }
        out.push_str(" }");
        Ok(Some(out))
    })
}
