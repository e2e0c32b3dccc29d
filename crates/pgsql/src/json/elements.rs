//! What takes documents apart: `jsonb_array_elements`, `jsonb_each`, `jsonb_object_keys`, and what counts them.
//!
//! Functions that return sets return arrays here, whose elements a statement makes rows of.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, ListArray, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{build_values, check_argument, check_count, into_array, kind_from_flag};
use super::reader::{JsonReader, JsonToken};
use super::text::write_string;
use super::text_path::{array_length, as_text, each_element, each_member};
use crate::function::{BoundedTexts, ColumnarFunction, FunctionCall, keep_types};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("json_array_elements*", keep_types, items::<false, false>, elements::<false, false>),
        ColumnarFunction::new("json_array_elements_text*", keep_types, items::<false, true>, elements::<false, true>),
        ColumnarFunction::new("jsonb_array_elements*", keep_types, items::<true, false>, elements::<true, false>),
        ColumnarFunction::new("jsonb_array_elements_text*", keep_types, items::<true, true>, elements::<true, true>),
        ColumnarFunction::new("json_each*", keep_types, members::<false, false>, each::<false, false>),
        ColumnarFunction::new("json_each_text*", keep_types, members::<false, true>, each::<false, true>),
        ColumnarFunction::new("jsonb_each*", keep_types, members::<true, false>, each::<true, false>),
        ColumnarFunction::new("jsonb_each_text*", keep_types, members::<true, true>, each::<true, true>),
        ColumnarFunction::new("json_object_keys*", keep_types, items::<false, true>, keys::<false>),
        ColumnarFunction::new("jsonb_object_keys*", keep_types, items::<true, true>, keys::<true>),
        ColumnarFunction::new("json_array_length", keep_types, length::<false>, count::<false>),
        ColumnarFunction::new("jsonb_array_length", keep_types, length::<true>, count::<true>),
        ColumnarFunction::new("json_typeof", keep_types, name::<false>, type_name::<false>),
        ColumnarFunction::new("jsonb_typeof", keep_types, name::<true>, type_name::<true>),
    ]
}

fn check_single_argument<const IS_BINARY: bool>(fields: &[FieldRef], returns: DataType) -> Result<DataType> {
    let kind = kind_from_flag::<IS_BINARY>();
    check_count("of JSON", fields, 1, 1)?;
    check_argument(&format!("{}_…", kind.name()), kind, &fields[0])?;
    Ok(returns)
}

/// Text, or the kind.
fn value_type<const IS_BINARY: bool, const IS_TEXT: bool>() -> DataType {
    if IS_TEXT { DataType::Utf8 } else { kind_from_flag::<IS_BINARY>().data_type() }
}

fn items<const IS_BINARY: bool, const IS_TEXT: bool>(fields: &[FieldRef]) -> Result<DataType> {
    check_single_argument::<IS_BINARY>(fields, DataType::new_list(value_type::<IS_BINARY, IS_TEXT>(), true))
}

fn pair_fields<const IS_BINARY: bool, const IS_TEXT: bool>() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", value_type::<IS_BINARY, IS_TEXT>(), true),
    ])
}

fn members<const IS_BINARY: bool, const IS_TEXT: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let item = DataType::Struct(pair_fields::<IS_BINARY, IS_TEXT>());
    check_single_argument::<IS_BINARY>(fields, DataType::new_list(item, true))
}

fn length<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    check_single_argument::<IS_BINARY>(fields, DataType::Int32)
}

fn name<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    check_single_argument::<IS_BINARY>(fields, DataType::Utf8)
}

/// The lists whose lengths and validity are given.
pub(super) fn build_lists(call: &FunctionCall<'_>, lengths: &[Option<usize>], values: ArrayRef) -> Result<ArrayRef> {
    let item = match call.returns {
        DataType::List(item) => item.clone(),
        other => return exec_err!("expected a list type, not {other}"),
    };
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)));
    let nulls: NullBuffer = lengths.iter().map(Option::is_some).collect();
    Ok(Arc::new(ListArray::try_new(item, offsets, values, Some(nulls))?))
}

fn elements<const IS_BINARY: bool, const IS_TEXT: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let documents = call.documents(0, kind_from_flag::<IS_BINARY>())?;
    let mut texts = BoundedTexts::new(call.rows);
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(document) = documents.get(row) else {
            lengths.push(None);
            continue;
        };
        let mut reader = JsonReader::new(document);
        match reader.token()? {
            JsonToken::Array => {}
            JsonToken::Object => return exec_err!("cannot extract elements from an object"),
            _ => return exec_err!("cannot extract elements from a scalar"),
        }
        let mut length = 0;
        each_element(&mut reader, |element| {
            length += 1;
            if IS_TEXT {
                texts.push(as_text(element)?)?
            } else {
                texts.push(Some(element))?
            }
            Ok(true)
        })?;
        lengths.push(Some(length));
    }
    let kind = (!IS_TEXT).then_some(kind_from_flag::<IS_BINARY>());
    build_lists(call, &lengths, into_array(texts, kind)?)
}

/// Calls `take` with the members of each document, and returns how many each has.
fn visit_members<const IS_BINARY: bool>(
    call: &FunctionCall<'_>,
    refusal: fn(JsonToken) -> &'static str,
    mut take: impl FnMut(&str, &str) -> Result<()>,
) -> Result<Vec<Option<usize>>> {
    let documents = call.documents(0, kind_from_flag::<IS_BINARY>())?;
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(document) = documents.get(row) else {
            lengths.push(None);
            continue;
        };
        let mut reader = JsonReader::new(document);
        let token = reader.token()?;
        if token != JsonToken::Object {
            return exec_err!("{}", refusal(token));
        }
        let mut length = 0;
        each_member(&mut reader, |key, value| {
            length += 1;
            take(&key, value)
        })?;
        lengths.push(Some(length));
    }
    Ok(lengths)
}

fn each<const IS_BINARY: bool, const IS_TEXT: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (mut keys, mut texts) = (BoundedTexts::new(call.rows), BoundedTexts::new(call.rows));
    let lengths = visit_members::<IS_BINARY>(
        call,
        |_| if IS_BINARY { "cannot call jsonb_each on a non-object" } else { "cannot call json_each on a non-object" },
        |key, value| {
            keys.push(Some(key))?;
            if IS_TEXT { texts.push(as_text(value)?) } else { texts.push(Some(value)) }
        },
    )?;
    let kind = (!IS_TEXT).then_some(kind_from_flag::<IS_BINARY>());
    let columns: Vec<ArrayRef> = vec![into_array(keys, None)?, into_array(texts, kind)?];
    let pairs = StructArray::try_new(pair_fields::<IS_BINARY, IS_TEXT>(), columns, None)?;
    build_lists(call, &lengths, Arc::new(pairs))
}

fn keys<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let mut keys = BoundedTexts::new(call.rows);
    let refusal = |token| match token {
        JsonToken::Array => "cannot call jsonb_object_keys on an array",
        _ => "cannot call jsonb_object_keys on a scalar",
    };
    let lengths = visit_members::<IS_BINARY>(call, refusal, |key, _| keys.push(Some(key)))?;
    build_lists(call, &lengths, into_array(keys, None)?)
}

fn count<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let documents = call.documents(0, kind_from_flag::<IS_BINARY>())?;
    let one = |row| -> Result<Option<i32>> {
        let Some(document) = documents.get(row) else { return Ok(None) };
        match JsonReader::new(document).token()? {
            JsonToken::Array => Ok(i32::try_from(array_length(document)?).ok()),
            JsonToken::Object => exec_err!("cannot get array length of a non-array"),
            _ => exec_err!("cannot get array length of a scalar"),
        }
    };
    Ok(Arc::new((0..call.rows).map(one).collect::<Result<Int32Array>>()?))
}

fn type_name<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let documents = call.documents(0, kind_from_flag::<IS_BINARY>())?;
    build_values(call, None, |row| {
        let token = documents.get(row).map(|document| JsonReader::new(document).token()).transpose()?;
        Ok(token.map(|token| token.type_name().to_owned()))
    })
}

/// Writes `document` without members that are null, and without spaces.
pub(super) fn strip_text(document: &str, out: &mut String) -> Result<()> {
    let mut reader = JsonReader::new(document);
    let mut is_first = true;
    let mut separate = |out: &mut String| {
        if !is_first {
            out.push(',');
        }
        is_first = false;
    };
    match reader.token()? {
        JsonToken::Object => {
            out.push('{');
            each_member(&mut reader, |key, value| {
                if value == "null" {
                    return Ok(());
                }
                separate(out);
                write_string(&key, out);
                out.push(':');
                strip_text(value, out)
            })?;
            out.push('}');
        }
        JsonToken::Array => {
            out.push('[');
            each_element(&mut reader, |element| {
                separate(out);
                strip_text(element, out)?;
                Ok(true)
            })?;
            out.push(']');
        }
        JsonToken::String => write_string(&reader.string()?, out),
        _ => out.push_str(reader.skip_value()?),
    }
    Ok(())
}
