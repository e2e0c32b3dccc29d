//! The functions `json_to_record` and `json_to_recordset`, and the values of the columns of their rows.

use std::borrow::Cow;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType as SqlType, Expr};

use super::document::{build_values, check_argument, check_count, into_array, json_and_jsonb, kind_from_flag};
use super::elements::{build_lists, read_documents};
use super::reader::{JsonReader, JsonToken};
use super::text_path::{PathStep, as_text, each_element, find_step};
use crate::function::{BoundedTexts, ColumnarFunction, FunctionCall, field_kind, keep_types, text_type};
use crate::json_type::JsonKind;
use crate::list::write_element;
use crate::syntax::{call, cast, string};

pub(super) fn functions() -> Vec<ScalarUDF> {
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
    let kind = (form == FieldForm::Document).then(|| crate::json_type::json_kind(call.returns)).flatten();
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
