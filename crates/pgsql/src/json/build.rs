//! Values of SQL as JSON: the functions `to_json`, `json_build_object`, `json_build_array` and `json_object`, and those of
//! `jsonb`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, FieldRef, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{build_values, check_count, format_jsonb, json_and_jsonb, kind_from_flag, kind_type};
use super::reader::parse;
use super::value::{JsonValue, write_string, write_value};
use crate::byte_format;
use crate::data_type::{JsonKind, json_kind};
use crate::function::{ColumnarFunction, FunctionCall, check_bytes, keep_types};
use crate::list::{TextPairs, text_lists, text_pairs};
use crate::number::write_float;
use crate::time::conversion;

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
        super::value::write_value(value, &mut out);
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

/// Writes the value of `row` as `kind`.
fn write(array: &ArrayRef, row: usize, kind: JsonKind, out: &mut String) -> Result<()> {
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
fn render_text(array: &ArrayRef, row: usize, kind: JsonKind) -> Result<String> {
    let mut out = String::new();
    write(array, row, kind, &mut out)?;
    Ok(out)
}

fn json_text(array: &ArrayRef, row: usize) -> &str {
    array.as_struct().column(0).as_string::<i32>().value(row)
}

/// Returns the values of a list.
fn elements(array: &ArrayRef, row: usize) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().value(row)),
        _ => None,
    }
}

/// Converts the value of `row` to a document of `jsonb`.
fn render_value(array: &ArrayRef, row: usize) -> Result<JsonValue> {
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
            JsonScalar::Number(number) => JsonValue::Number(super::value::canonicalize_number(&number)?),
            JsonScalar::Text(text) => JsonValue::Text(text),
        }),
    }
}

/// Writes the value of `row` as PostgreSQL's functions of `json` do: without spaces, members in their order.
/// Writes `separator` between elements and members, but not within them.
fn write_json(array: &ArrayRef, row: usize, separator: &str, out: &mut String) -> Result<()> {
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

/// A value that is neither an array nor an object.
enum JsonScalar {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
}

/// Reads the value of `row`, which is not of a nested type.
fn read_scalar(array: &dyn Array, row: usize) -> Result<JsonScalar> {
    if array.is_null(row) {
        return Ok(JsonScalar::Null);
    }
    macro_rules! number {
        ($native:ty) => {
            Ok(JsonScalar::Number(array.as_primitive::<$native>().value(row).to_string()))
        };
    }
    match array.data_type() {
        DataType::Null => Ok(JsonScalar::Null),
        DataType::Boolean => Ok(JsonScalar::Bool(array.as_boolean().value(row))),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Decimal128(precision, scale) => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            let text = Decimal128Type::format_decimal(value, *precision, *scale);
            if !crate::number::has_unconstrained_scale(array.data_type()) {
                return Ok(JsonScalar::Number(text));
            }
            let digits = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            Ok(JsonScalar::Number(digits.to_owned()))
        }
        DataType::Decimal256(precision, scale) => {
            let value = array.as_primitive::<Decimal256Type>().value(row);
            Ok(JsonScalar::Number(Decimal256Type::format_decimal(value, *precision, *scale)))
        }
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            Ok(float(&format!("{value:e}"), f64::from(value), 6))
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            Ok(float(&format!("{value:e}"), value, 15))
        }
        DataType::Utf8 => Ok(JsonScalar::Text(array.as_string::<i32>().value(row).to_owned())),
        DataType::LargeUtf8 => Ok(JsonScalar::Text(array.as_string::<i64>().value(row).to_owned())),
        DataType::Utf8View => Ok(JsonScalar::Text(array.as_string_view().value(row).to_owned())),
        DataType::Binary => Ok(JsonScalar::Text(byte_format::format(array.as_binary::<i32>().value(row)))),
        DataType::LargeBinary => Ok(JsonScalar::Text(byte_format::format(array.as_binary::<i64>().value(row)))),
        DataType::BinaryView => Ok(JsonScalar::Text(byte_format::format(array.as_binary_view().value(row)))),
        DataType::FixedSizeBinary(_) => {
            Ok(JsonScalar::Text(byte_format::format(array.as_fixed_size_binary().value(row))))
        }
        _ => read_temporal(array, row),
    }
}

/// Writes a floating-point number. JSON has no infinity and no NaN, so these are text.
fn float(shortest: &str, value: f64, digits_max: i32) -> JsonScalar {
    let mut text = String::new();
    write_float(shortest, value, digits_max, &mut text);
    if value.is_finite() { JsonScalar::Number(text) } else { JsonScalar::Text(text) }
}

/// Reads a date, a time or an interval.
fn read_temporal(array: &dyn Array, row: usize) -> Result<JsonScalar> {
    macro_rules! value {
        ($data_type:ty) => {
            array.as_primitive::<$data_type>().value(row)
        };
    }
    let mut text = String::new();
    match array.data_type() {
        DataType::Date32 => conversion::write_date(value!(Date32Type), &mut text),
        DataType::Timestamp(unit, zone) => {
            let micros = match unit {
                TimeUnit::Second => value!(TimestampSecondType).checked_mul(1_000_000),
                TimeUnit::Millisecond => value!(TimestampMillisecondType).checked_mul(1_000),
                TimeUnit::Microsecond => Some(value!(TimestampMicrosecondType)),
                TimeUnit::Nanosecond => Some(value!(TimestampNanosecondType).div_euclid(1_000)),
            };
            conversion::write_timestamp(
                micros.ok_or_else(|| exec_datafusion_err!("timestamp out of range"))?,
                &mut text,
            );
            let zone = if zone.is_some() { "+00:00" } else { "" };
            let (day, time) = text.split_once(' ').unwrap_or((&text, ""));
            text = match time.strip_suffix(" BC") {
                Some(time) => format!("{day}T{time}{zone} BC"),
                None => format!("{day}T{time}{zone}"),
            };
        }
        DataType::Time32(TimeUnit::Second) => {
            conversion::write_time(i64::from(value!(Time32SecondType)) * 1_000_000, &mut text);
        }
        DataType::Time32(_) => conversion::write_time(i64::from(value!(Time32MillisecondType)) * 1_000, &mut text),
        DataType::Time64(TimeUnit::Microsecond) => conversion::write_time(value!(Time64MicrosecondType), &mut text),
        DataType::Time64(_) => conversion::write_time(value!(Time64NanosecondType) / 1_000, &mut text),
        DataType::Interval(unit) => {
            let interval = match unit {
                IntervalUnit::YearMonth => IntervalMonthDayNano::new(value!(IntervalYearMonthType), 0, 0),
                IntervalUnit::DayTime => {
                    let value = value!(IntervalDayTimeType);
                    IntervalMonthDayNano::new(0, value.days, i64::from(value.milliseconds) * 1_000_000)
                }
                IntervalUnit::MonthDayNano => value!(IntervalMonthDayNanoType),
            };
            conversion::write_interval(interval, &mut text);
        }
        other => return exec_err!("{other} has no JSON representation; cast it to text"),
    }
    Ok(JsonScalar::Text(text))
}
