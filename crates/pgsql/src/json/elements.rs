//! Functions that return or count the parts of a document, such as `jsonb_array_elements`, `jsonb_each` and
//! `json_to_recordset`.
//!
//! Functions that return sets return arrays here. A statement unnests them.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, ListArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType as SqlType, Expr};

use super::document::{build_values, check_argument, check_count, into_array, json_and_jsonb, kind_from_flag};
use super::reader::{JsonReader, JsonToken, PathStep, array_length, as_text, each_element, each_member, find_step};
use super::value::write_string;
use crate::data_type::JsonKind;
use crate::function::{BoundedTexts, ColumnarFunction, FunctionCall, field_kind, keep_types, text_type};
use crate::list::write_element;
use crate::syntax::{call, cast, string};

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
fn read_documents(
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

pub(super) fn record_functions() -> Vec<ScalarUDF> {
    let mut functions = vec![
        ColumnarFunction::new(FIELD_TEXT, keep_types, text_type, |call| extract_field(call, FieldForm::Text)),
        ColumnarFunction::new(FIELD_ARRAY, keep_types, text_type, |call| extract_field(call, FieldForm::Array)),
        ColumnarFunction::new(FIELD_DOCUMENT, keep_types, document_type, |call| {
            extract_field(call, FieldForm::Document)
        }),
    ];
    functions.extend(json_and_jsonb!("json_to_record*", "jsonb_to_record*", keep_types, documents, one_record));
    functions.extend(json_and_jsonb!("json_to_recordset*", "jsonb_to_recordset*", keep_types, documents, record_set));
    functions
}

const FIELD_TEXT: &str = "json_field_text*";

const FIELD_ARRAY: &str = "json_field_array*";

const FIELD_DOCUMENT: &str = "json_field*";

/// Builds the value of the member `key` of `record` as a value of `data_type`. Its syntax is not yet rewritten.
pub(crate) fn column_value(record: Expr, key: &str, data_type: &SqlType) -> Result<Expr> {
    let field = |name| Ok(cast(call(name, vec![record.clone(), string(key)]), data_type.clone()));
    match data_type {
        SqlType::JSON | SqlType::JSONB => field(FIELD_DOCUMENT),
        SqlType::Array(ArrayElemTypeDef::SquareBracket(element, _))
            if matches!(**element, SqlType::JSON | SqlType::JSONB) =>
        {
            plan_err!(
                "the type {data_type} is not supported in a column definition list; write {element}, and \
                 {}_array_elements(column)",
                element.to_string().to_lowercase()
            )
        }
        SqlType::Array(ArrayElemTypeDef::SquareBracket(..)) => field(FIELD_ARRAY),
        SqlType::Varchar(Some(_))
        | SqlType::CharacterVarying(Some(_))
        | SqlType::CharVarying(Some(_))
        | SqlType::Char(_)
        | SqlType::Character(_) => {
            plan_err!("the type {data_type} is not supported in a column definition list; write text")
        }
        _ => field(FIELD_TEXT),
    }
}

fn documents<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind_from_flag::<IS_BINARY>();
    check_count("json_to_record", fields, 1, 1)?;
    check_argument(&format!("{}_to_record", kind.name()), kind, &fields[0])?;
    Ok(DataType::new_list(kind.data_type(), true))
}

fn document_type(fields: &[FieldRef]) -> Result<DataType> {
    Ok(field_kind(&fields[0]).unwrap_or(JsonKind::Json).data_type())
}

/// Returns one row for each document, including NULL.
fn one_record<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let kind = kind_from_flag::<IS_BINARY>();
    let documents = call.documents(0, kind)?;
    let records = build_values(call, Some(kind), |row| {
        let document = documents.get(row);
        match document.map(|document| JsonReader::new(document).token()).transpose()? {
            None | Some(JsonToken::Object) => Ok(document),
            Some(JsonToken::Array) => exec_err!("cannot call {}_to_record on an array", kind.name()),
            Some(_) => exec_err!("cannot call {}_to_record on a scalar", kind.name()),
        }
    })?;
    build_lists(call, &vec![Some(1); call.rows], records)
}

/// Returns a row of each element of each document.
fn record_set<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let kind = kind_from_flag::<IS_BINARY>();
    let mut texts = BoundedTexts::new(call.rows);
    let lengths = read_documents(call, kind, |reader, token| {
        if token != JsonToken::Array {
            return exec_err!("cannot call {}_to_recordset on a non-array", kind.name());
        }
        let mut length = 0;
        each_element(reader, |element| {
            if JsonReader::new(element).token()? != JsonToken::Object {
                return exec_err!("argument of {}_to_recordset must be an array of objects", kind.name());
            }
            length += 1;
            texts.push(Some(element))?;
            Ok(true)
        })?;
        Ok(length)
    })?;
    build_lists(call, &lengths, into_array(texts, Some(kind))?)
}

/// The form of the value of a member before its cast.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldForm {
    Text,
    /// The text of an array.
    Array,
    Document,
}

fn extract_field(call: &FunctionCall<'_>, form: FieldForm) -> Result<ArrayRef> {
    let (records, keys) = (call.texts(0)?, call.texts(1)?);
    let kind = (form == FieldForm::Document).then(|| crate::data_type::json_kind(call.returns)).flatten();
    build_values(call, kind, |row| {
        let (Some(record), Some(key)) = (records.get(row), keys.get(row)) else { return Ok(None) };
        let Some(value) = find_step(record, &PathStep::Key(key.into()))? else { return Ok(None) };
        match (form, JsonReader::new(value).token()?) {
            (_, JsonToken::Null) => Ok(None),
            (FieldForm::Document, _) => Ok(Some(Cow::Borrowed(value))),
            (FieldForm::Array, JsonToken::Array) => {
                let mut out = String::new();
                write_array(value, dimensions(value)?, &mut out)?;
                Ok(Some(Cow::Owned(out)))
            }
            (FieldForm::Text, _) | (FieldForm::Array, JsonToken::String) => as_text(value),
            (FieldForm::Array, _) => exec_err!("expected JSON array; see the value of key \"{key}\""),
        }
    })
}

/// Counts the levels of arrays of the first elements of `array`.
fn dimensions(array: &str) -> Result<usize> {
    let (mut levels, mut value) = (1, array);
    loop {
        let mut first = None;
        each_element(&mut JsonReader::new(value), |element| {
            first = Some(element);
            Ok(false)
        })?;
        match first {
            Some(element) if JsonReader::new(element).token()? == JsonToken::Array => {
                (levels, value) = (levels + 1, element)
            }
            _ => return Ok(levels),
        }
    }
}

/// Writes `array`, which has `levels` levels of arrays, as the text of an SQL array.
fn write_array(array: &str, levels: usize, out: &mut String) -> Result<()> {
    if JsonReader::new(array).token()? != JsonToken::Array {
        return exec_err!("expected JSON array");
    }
    out.push('{');
    let mut is_first = true;
    each_element(&mut JsonReader::new(array), |element| {
        if !is_first {
            out.push(',');
        }
        is_first = false;
        if levels > 1 {
            write_array(element, levels - 1, out)?;
        } else {
            match as_text(element)? {
                Some(text) => write_element(&text, out),
                None => out.push_str("NULL"),
            }
        }
        Ok(true)
    })?;
    out.push('}');
    Ok(())
}
