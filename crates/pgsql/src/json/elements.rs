//! Functions that return or count the parts of a document, such as `jsonb_array_elements` and `jsonb_each`.
//!
//! Functions that return sets return arrays here. A statement unnests them.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, ListArray, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{build_values, check_argument, check_count, into_array, json_and_jsonb, kind_from_flag};
use super::reader::{JsonReader, JsonToken};
use super::text::write_string;
use super::text_path::{array_length, as_text, each_element, each_member};
use crate::function::{BoundedTexts, ColumnarFunction, FunctionCall, keep_types};
use crate::json_type::JsonKind;

pub(super) fn functions() -> Vec<ScalarUDF> {
    [
        json_and_jsonb!("json_array_elements*", "jsonb_array_elements*", keep_types, items<false>, elements),
        json_and_jsonb!("json_array_elements_text*", "jsonb_array_elements_text*", keep_types, items<true>, elements),
        json_and_jsonb!("json_each*", "jsonb_each*", keep_types, members<false>, each),
        json_and_jsonb!("json_each_text*", "jsonb_each_text*", keep_types, members<true>, each),
        json_and_jsonb!("json_object_keys*", "jsonb_object_keys*", keep_types, names, keys),
        json_and_jsonb!("json_array_length", "jsonb_array_length", keep_types, length, count),
        json_and_jsonb!("json_typeof", "jsonb_typeof", keep_types, name, type_name),
    ]
    .concat()
}

fn check_single_argument<const IS_BINARY: bool>(fields: &[FieldRef], returns: DataType) -> Result<DataType> {
    let kind = kind_from_flag::<IS_BINARY>();
    check_count("of JSON", fields, 1, 1)?;
    check_argument(&format!("{}_…", kind.name()), kind, &fields[0])?;
    Ok(returns)
}

/// Returns text if `IS_TEXT`, or the JSON type.
fn value_type<const IS_BINARY: bool, const IS_TEXT: bool>() -> DataType {
    if IS_TEXT { DataType::Utf8 } else { kind_from_flag::<IS_BINARY>().data_type() }
}

fn items<const IS_BINARY: bool, const IS_TEXT: bool>(fields: &[FieldRef]) -> Result<DataType> {
    check_single_argument::<IS_BINARY>(fields, DataType::new_list(value_type::<IS_BINARY, IS_TEXT>(), true))
}

fn names<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    items::<IS_BINARY, true>(fields)
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

/// Splits `values` into lists of the given lengths. A list without a length is NULL.
pub(super) fn build_lists(call: &FunctionCall<'_>, lengths: &[Option<usize>], values: ArrayRef) -> Result<ArrayRef> {
    let item = match call.returns {
        DataType::List(item) => item.clone(),
        other => return exec_err!("expected a list type, not {other}"),
    };
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)));
    let nulls: NullBuffer = lengths.iter().map(Option::is_some).collect();
    Ok(Arc::new(ListArray::try_new(item, offsets, values, Some(nulls))?))
}

/// Calls `read` with a reader of each document after its first token. Returns the number of items that `read` returns for
/// each document; `None` for NULL.
pub(super) fn read_documents(
    call: &FunctionCall<'_>,
    kind: JsonKind,
    mut read: impl FnMut(&mut JsonReader<'_>, JsonToken) -> Result<usize>,
) -> Result<Vec<Option<usize>>> {
    let documents = call.documents(0, kind)?;
    let lengths = (0..call.rows).map(|row| {
        let Some(document) = documents.get(row) else { return Ok(None) };
        let mut reader = JsonReader::new(document);
        let token = reader.token()?;
        read(&mut reader, token).map(Some)
    });
    lengths.collect()
}

fn elements<const IS_BINARY: bool, const IS_TEXT: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let kind = kind_from_flag::<IS_BINARY>();
    let mut texts = BoundedTexts::new(call.rows);
    let lengths = read_documents(call, kind, |reader, token| {
        match token {
            JsonToken::Array => {}
            JsonToken::Object => return exec_err!("cannot extract elements from an object"),
            _ => return exec_err!("cannot extract elements from a scalar"),
        }
        let mut length = 0;
        each_element(reader, |element| {
            length += 1;
            if IS_TEXT {
                texts.push(as_text(element)?)?
            } else {
                texts.push(Some(element))?
            }
            Ok(true)
        })?;
        Ok(length)
    })?;
    build_lists(call, &lengths, into_array(texts, (!IS_TEXT).then_some(kind))?)
}

/// Calls `add` with the members of each document, and returns the number of members of each.
fn visit_members<const IS_BINARY: bool>(
    call: &FunctionCall<'_>,
    error: fn(JsonToken) -> &'static str,
    mut add: impl FnMut(&str, &str) -> Result<()>,
) -> Result<Vec<Option<usize>>> {
    read_documents(call, kind_from_flag::<IS_BINARY>(), |reader, token| {
        if token != JsonToken::Object {
            return exec_err!("{}", error(token));
        }
        let mut length = 0;
        each_member(reader, |key, value| {
            length += 1;
            add(&key, value)
        })?;
        Ok(length)
    })
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
    let error = |token| match token {
        JsonToken::Array => "cannot call jsonb_object_keys on an array",
        _ => "cannot call jsonb_object_keys on a scalar",
    };
    let lengths = visit_members::<IS_BINARY>(call, error, |key, _| keys.push(Some(key)))?;
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
