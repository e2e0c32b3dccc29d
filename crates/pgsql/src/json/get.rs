//! The operators `->`, `->>`, `#>` and `#>>`, and the function `json_extract_path`.

use std::borrow::Cow;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{check_argument, check_count, into_array, json_and_jsonb, kind_from_flag};
use super::reader::{JsonReader, JsonToken};
use super::text_path::{PathStep, as_text, find_step};
use crate::data_type::{is_text_or_null, postgres_type_name};
use crate::function::{ArgumentColumn, BoundedTexts, ColumnarFunction, FunctionCall, field_kind, text_type};
use crate::json_type::JsonKind;
use crate::list::text_lists;

/// Returns the functions `json_extract_path` and `json_extract_path_text`, and those of `jsonb`.
pub(super) fn functions() -> Vec<ScalarUDF> {
    [
        json_and_jsonb!("json_extract_path", "jsonb_extract_path", keys, extracted<false>, extract),
        json_and_jsonb!("json_extract_path_text", "jsonb_extract_path_text", keys, extracted<true>, extract),
    ]
    .concat()
}

/// Returns the function of `->`, or of `->>` if `is_text`.
pub(super) fn member(is_text: bool) -> ScalarUDF {
    if is_text {
        ColumnarFunction::new("json_member_text", member_types, text_type, |call| get_member(call, true))
    } else {
        ColumnarFunction::new("json_member", member_types, document_type, |call| get_member(call, false))
    }
}

/// Returns the function of `#>`, or of `#>>` if `is_text`.
pub(super) fn at_path(is_text: bool) -> ScalarUDF {
    if is_text {
        ColumnarFunction::new("json_at_path_text", path_types, text_type, |call| get_at_path(call, true))
    } else {
        ColumnarFunction::new("json_at_path", path_types, document_type, |call| get_at_path(call, false))
    }
}

/// Returns the function of `document[key]`. Its keys mean what they mean in the path of `#>`.
pub(super) fn subscript() -> ScalarUDF {
    ColumnarFunction::new("json_subscript", subscript_types, document_type, elements_at)
}

/// Coerces the arguments of a subscript of a document.
pub(crate) fn subscript_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let Some((document, keys)) = types.split_first() else { return plan_err!("a subscript needs a document") };
    if let Some(key) = keys.iter().find(|key| !key.is_integer() && !is_text_or_null(key)) {
        let key = postgres_type_name(key);
        return plan_err!("subscript type {key} is not supported; a jsonb subscript is an integer or a text");
    }
    Ok([vec![document.clone()], vec![DataType::Utf8; keys.len()]].concat())
}

fn document_type(fields: &[FieldRef]) -> Result<DataType> {
    Ok(field_kind(&fields[0]).unwrap_or(JsonKind::Jsonb).data_type())
}

fn member_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [document, key] if key.is_integer() => Ok(vec![document.clone(), DataType::Int64]),
        [document, key] if is_text_or_null(key) => Ok(vec![document.clone(), DataType::Utf8]),
        [_, key, ..] => plan_err!("operator does not exist: jsonb -> {key}; the right side must be text or an integer"),
        _ => plan_err!("-> has two operands"),
    }
}

/// Coerces the operands of `#>`. A text is the text of an array.
pub(super) fn path_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [document, path] if is_text_or_null(path) => Ok(vec![document.clone(), DataType::Utf8]),
        [document, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)] => {
            Ok(vec![document.clone(), DataType::new_list(DataType::Utf8, true)])
        }
        _ => plan_err!("the right side of #>, #>> and #- must be an array of text, such as '{{a,b}}'"),
    }
}

fn keys(types: &[DataType]) -> Result<Vec<DataType>> {
    let text = |data_type: &DataType| is_text_or_null(data_type).then_some(DataType::Utf8);
    match types.split_first() {
        Some((document, keys)) => match keys.iter().map(text).collect::<Option<Vec<_>>>() {
            Some(keys) => Ok([vec![document.clone()], keys].concat()),
            None => plan_err!("the keys of json_extract_path must be text, also for array elements: '0'"),
        },
        None => plan_err!("json_extract_path takes at least one argument"),
    }
}

fn extracted<const IS_BINARY: bool, const IS_TEXT: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind_from_flag::<IS_BINARY>();
    check_count("json_extract_path", fields, 1, usize::MAX)?;
    check_argument("json_extract_path", kind, &fields[0])?;
    Ok(if IS_TEXT { DataType::Utf8 } else { kind.data_type() })
}

/// Builds the values that `find` returns, as text if `is_text`.
fn build_found<'a>(
    call: &FunctionCall<'_>,
    is_text: bool,
    find: impl Fn(usize) -> Result<Option<&'a str>>,
) -> Result<ArrayRef> {
    let mut values = BoundedTexts::new(call.rows);
    for row in 0..call.rows {
        match find(row)? {
            Some(value) if is_text => values.push(as_text(value)?)?,
            value => values.push(value)?,
        }
    }
    into_array(values, if is_text { None } else { crate::json_type::json_kind(call.returns) })
}

fn get_member(call: &FunctionCall<'_>, is_text: bool) -> Result<ArrayRef> {
    let documents = call.texts(0)?;
    let is_binary = call.kind(0) == Some(JsonKind::Jsonb);
    if *call.fields[1].data_type() == DataType::Int64 {
        let indexes: ArgumentColumn<Int64Array> = call.column(1, |array| Ok(array.as_primitive().clone()))?;
        return build_found(call, is_text, |row| match (documents.get(row), indexes.get(row)) {
            // A scalar has itself as its only element.
            (Some(document), Some(0 | -1)) if is_binary && is_scalar(document)? => Ok(Some(document)),
            (Some(document), Some(index)) => find_step(document, &PathStep::Index(index)),
            _ => Ok(None),
        });
    }
    let keys = call.texts(1)?;
    build_found(call, is_text, |row| match (documents.get(row), keys.get(row)) {
        (Some(document), Some(key)) => find_step(document, &PathStep::Key(Cow::Borrowed(key))),
        _ => Ok(None),
    })
}

fn is_scalar(document: &str) -> Result<bool> {
    Ok(!matches!(JsonReader::new(document).token()?, JsonToken::Array | JsonToken::Object))
}

/// The steps of a path.
type KeyPath = Vec<Option<String>>;

/// Returns the paths of an argument.
pub(super) fn paths(call: &FunctionCall<'_>, index: usize) -> Result<ArgumentColumn<Vec<Option<KeyPath>>>> {
    call.column(index, |array| text_lists(&array))
}

fn get_at_path(call: &FunctionCall<'_>, is_text: bool) -> Result<ArrayRef> {
    let documents = call.texts(0)?;
    let paths = paths(call, 1)?;
    build_found(call, is_text, |row| match (documents.get(row), paths.get(row)) {
        (Some(document), Some(path)) => follow_path(document, path.iter().map(Option::as_deref)),
        _ => Ok(None),
    })
}

fn extract<const IS_BINARY: bool, const IS_TEXT: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    follow_keys(call, &call.documents(0, kind_from_flag::<IS_BINARY>())?, IS_TEXT)
}

/// Computes `document[1]['key']`.
pub(crate) fn elements_at(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    follow_keys(call, &call.texts(0)?, false)
}

/// Returns the value of each document at the path of the other arguments.
fn follow_keys(call: &FunctionCall<'_>, documents: &ArgumentColumn<StringArray>, is_text: bool) -> Result<ArrayRef> {
    let keys =
        (1..call.args.len()).map(|index| call.texts(index)).collect::<Result<Vec<ArgumentColumn<StringArray>>>>()?;
    build_found(call, is_text, |row| match documents.get(row) {
        Some(document) => follow_path(document, keys.iter().map(|key| key.get(row))),
        None => Ok(None),
    })
}

/// Returns the value at `path`; `None` if a key is NULL.
fn follow_path<'d, 'k>(document: &'d str, path: impl Iterator<Item = Option<&'k str>>) -> Result<Option<&'d str>> {
    let mut value = document;
    for key in path {
        let Some(key) = key else { return Ok(None) };
        match find_step(value, &PathStep::Any(Cow::Borrowed(key)))? {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    Ok(Some(value.trim_matches([' ', '\t', '\n', '\r'])))
}
