//! The functions of operators: comparison, containment, existence, concatenation and deletion of `jsonb`, and `->`, `->>`,
//! `#>` and `#>>`, which are also `json_extract_path`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{Operator, ScalarUDF};

use super::document::{
    build_values, check_argument, check_count, format_jsonb, into_array, json_and_jsonb, kind_from_flag,
};
use super::modify::delete_path;
use super::reader::{JsonReader, JsonToken, PathStep, as_text, find_step, parse};
use super::value::JsonValue;
use crate::data_type::{JsonKind, is_text_or_null, postgres_type_name};
use crate::function::{
    ArgumentColumn, BoundedTexts, ColumnarFunction, FunctionCall, boolean_type, field_kind, keep_types, text_type,
};
use crate::list::text_lists;

/// Returns the functions that have names of their own in PostgreSQL. Those of comparison operators are not offered.
pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        contains(),
        contained(),
        exists(),
        exists_of(true),
        exists_of(false),
        concatenation(),
        deletion(),
        path_deletion(),
    ]
}

/// Fails unless `fields` are two arguments of the type `jsonb`. Text is read as JSON.
fn two_documents(function: &str, fields: &[FieldRef], returns: DataType) -> Result<DataType> {
    one_document(function, fields, DataType::Null)?;
    check_argument(function, JsonKind::Jsonb, &fields[1])?;
    Ok(returns)
}

/// Fails unless `fields` are two arguments, of which the first one has the type `jsonb`.
fn one_document(function: &str, fields: &[FieldRef], returns: DataType) -> Result<DataType> {
    check_count(function, fields, 2, 2)?;
    check_argument(function, JsonKind::Jsonb, &fields[0])?;
    Ok(returns)
}

/// Returns the function of a comparison operator.
pub(super) fn comparison(operator: Operator) -> Option<ScalarUDF> {
    let new = |name, invoke| Some(ColumnarFunction::new(name, keep_types, boolean_type, invoke));
    match operator {
        Operator::Eq => new("jsonb_eq", |call| compare(call, Ordering::is_eq)),
        Operator::NotEq => new("jsonb_ne", |call| compare(call, Ordering::is_ne)),
        Operator::Lt => new("jsonb_lt", |call| compare(call, Ordering::is_lt)),
        Operator::LtEq => new("jsonb_le", |call| compare(call, Ordering::is_le)),
        Operator::Gt => new("jsonb_gt", |call| compare(call, Ordering::is_gt)),
        Operator::GtEq => new("jsonb_ge", |call| compare(call, Ordering::is_ge)),
        _ => None,
    }
}

/// An argument of parsed documents. A constant document is parsed once.
struct ParsedArgument {
    texts: ArgumentColumn<StringArray>,
    constant: Option<JsonValue>,
}

impl ParsedArgument {
    fn new(call: &FunctionCall<'_>, index: usize) -> Result<Self> {
        let texts = call.documents(index, JsonKind::Jsonb)?;
        let constant = match texts.get(0).filter(|_| texts.is_constant) {
            Some(text) => Some(parse(text)?),
            None => None,
        };
        Ok(Self { texts, constant })
    }

    fn with<T>(&self, row: usize, take: impl FnOnce(&JsonValue) -> Result<T>) -> Result<Option<T>> {
        match (&self.constant, self.texts.get(row)) {
            (Some(value), _) => take(value).map(Some),
            (None, Some(text)) => take(&parse(text)?).map(Some),
            (None, None) => Ok(None),
        }
    }
}

fn map_pairs<T>(call: &FunctionCall<'_>, take: impl Fn(&JsonValue, &JsonValue) -> T) -> Result<Vec<Option<T>>> {
    let (left, right) = (ParsedArgument::new(call, 0)?, ParsedArgument::new(call, 1)?);
    let one = |row| Ok(left.with(row, |left| right.with(row, |right| Ok(take(left, right))))?.flatten());
    (0..call.rows).map(one).collect()
}

fn test_pairs(call: &FunctionCall<'_>, test: impl Fn(&JsonValue, &JsonValue) -> bool) -> Result<ArrayRef> {
    Ok(Arc::new(BooleanArray::from(map_pairs(call, test)?)))
}

fn compare(call: &FunctionCall<'_>, is_expected: fn(Ordering) -> bool) -> Result<ArrayRef> {
    test_pairs(call, |left, right| is_expected(left.compare_documents(right)))
}

/// Returns the function of `@>`.
pub(super) fn contains() -> ScalarUDF {
    let returns = |fields: &[FieldRef]| two_documents("jsonb_contains", fields, DataType::Boolean);
    let contains = |call: &FunctionCall<'_>| test_pairs(call, JsonValue::contains_document);
    ColumnarFunction::new("jsonb_contains", keep_types, returns, contains)
}

/// Returns the function of `<@`.
fn contained() -> ScalarUDF {
    let returns = |fields: &[FieldRef]| two_documents("jsonb_contained", fields, DataType::Boolean);
    let contained = |call: &FunctionCall<'_>| test_pairs(call, |left, right| right.contains_document(left));
    ColumnarFunction::new("jsonb_contained", keep_types, returns, contained)
}

/// Returns the function of `?`.
pub(super) fn exists() -> ScalarUDF {
    ColumnarFunction::new(
        "jsonb_exists",
        key_types,
        |fields| one_document("jsonb_exists", fields, DataType::Boolean),
        |call| {
            let (documents, keys) = (call.documents(0, JsonKind::Jsonb)?, call.texts(1)?);
            let exists = |row| match (documents.get(row), keys.get(row)) {
                (Some(document), Some(key)) => has_key(document, key).map(Some),
                _ => Ok(None),
            };
            Ok(Arc::new((0..call.rows).map(exists).collect::<Result<BooleanArray>>()?))
        },
    )
}

fn key_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [document, key] if is_text_or_null(key) => Ok(vec![document.clone(), DataType::Utf8]),
        _ => plan_err!("jsonb_exists takes a document and a key that is text"),
    }
}

fn has_key(document: &str, key: &str) -> Result<bool> {
    match JsonReader::new(document).token()? {
        JsonToken::Object => Ok(find_step(document, &PathStep::Key(key.into()))?.is_some()),
        _ => Ok(parse(document)?.has_key(key)),
    }
}

/// Returns the function of `?&`, or of `?|` if `is_any`.
pub(super) fn exists_of(is_any: bool) -> ScalarUDF {
    let any = |fields: &[FieldRef]| one_document("jsonb_exists_any", fields, DataType::Boolean);
    let all = |fields: &[FieldRef]| one_document("jsonb_exists_all", fields, DataType::Boolean);
    if is_any {
        ColumnarFunction::new("jsonb_exists_any", path_types, any, |call| exists_many(call, true))
    } else {
        ColumnarFunction::new("jsonb_exists_all", path_types, all, |call| exists_many(call, false))
    }
}

fn exists_many(call: &FunctionCall<'_>, is_any: bool) -> Result<ArrayRef> {
    let (documents, keys) = (ParsedArgument::new(call, 0)?, paths(call, 1)?);
    let exists = |row| {
        let Some(keys) = keys.get(row) else { return Ok(None) };
        documents.with(row, |document| {
            let mut keys = keys.iter().flatten();
            let has_key = |key: &String| document.has_key(key);
            Ok(if is_any { keys.any(has_key) } else { keys.all(has_key) })
        })
    };
    Ok(Arc::new((0..call.rows).map(exists).collect::<Result<BooleanArray>>()?))
}

/// Returns the function of `||`.
pub(super) fn concatenation() -> ScalarUDF {
    let returns = |fields: &[FieldRef]| two_documents("jsonb_concat", fields, JsonKind::Jsonb.data_type());
    ColumnarFunction::new("jsonb_concat", keep_types, returns, |call| {
        let mut results = map_pairs(call, |left, right| format_jsonb(&concatenate(left, right)))?;
        build_values(call, Some(JsonKind::Jsonb), |row| Ok(results[row].take()))
    })
}

fn concatenate(left: &JsonValue, right: &JsonValue) -> JsonValue {
    if let (JsonValue::Object(left), JsonValue::Object(right)) = (left, right) {
        return JsonValue::object(left.iter().chain(right).cloned().collect());
    }
    let items = |value: &JsonValue| match value {
        JsonValue::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    JsonValue::Array([items(left), items(right)].concat())
}

/// Returns the function of `-`, whose right operand is a key, an index or an array of keys.
pub(super) fn deletion() -> ScalarUDF {
    let returns = |fields: &[FieldRef]| one_document("jsonb_delete", fields, JsonKind::Jsonb.data_type());
    ColumnarFunction::new("jsonb_delete", deletion_types, returns, delete)
}

fn deletion_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [document, index] if index.is_integer() => Ok(vec![document.clone(), DataType::Int64]),
        [document, key] if is_text_or_null(key) => Ok(vec![document.clone(), DataType::Utf8]),
        [_, _, _, ..] => {
            plan_err!("jsonb_delete takes a document and a key; write several keys as an array: ARRAY['a', 'b']")
        }
        _ => path_types(types),
    }
}

fn delete(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let documents = call.documents(0, JsonKind::Jsonb)?;
    let with = |row: usize, change: &dyn Fn(JsonValue) -> Result<JsonValue>| match documents.get(row) {
        Some(document) => Ok(Some(format_jsonb(&change(parse(document)?)?))),
        None => Ok(None),
    };
    match call.fields[1].data_type() {
        DataType::Int64 => {
            let indexes: ArgumentColumn<Int64Array> = call.column(1, |array| Ok(array.as_primitive().clone()))?;
            build_values(call, Some(JsonKind::Jsonb), |row| {
                let Some(index) = indexes.get(row) else { return Ok(None) };
                with(row, &|value| without_index(value, index))
            })
        }
        DataType::Utf8 => {
            let keys = call.texts(1)?;
            build_values(call, Some(JsonKind::Jsonb), |row| match keys.get(row) {
                Some(key) => with(row, &|value| without_keys(value, &[Some(key.to_owned())])),
                None => Ok(None),
            })
        }
        _ => {
            let keys = call.column(1, |array| text_lists(&array))?;
            build_values(call, Some(JsonKind::Jsonb), |row| match keys.get(row) {
                Some(keys) => with(row, &|value| without_keys(value, keys)),
                None => Ok(None),
            })
        }
    }
}

fn without_keys(value: JsonValue, keys: &[Option<String>]) -> Result<JsonValue> {
    let is_key = |text: &str| keys.iter().flatten().any(|key| key == text);
    match value {
        JsonValue::Object(mut pairs) => {
            pairs.retain(|(key, _)| !is_key(key));
            Ok(JsonValue::Object(pairs))
        }
        JsonValue::Array(mut items) => {
            items.retain(|item| !matches!(item, JsonValue::Text(text) if is_key(text)));
            Ok(JsonValue::Array(items))
        }
        _ => exec_err!("cannot delete from scalar"),
    }
}

fn without_index(value: JsonValue, index: i64) -> Result<JsonValue> {
    match value {
        JsonValue::Array(mut items) => {
            let position = if index < 0 { items.len() as i64 + index } else { index };
            if (0..items.len() as i64).contains(&position) {
                items.remove(position as usize);
            }
            Ok(JsonValue::Array(items))
        }
        JsonValue::Object(_) => exec_err!("cannot delete from object using integer index"),
        _ => exec_err!("cannot delete from scalar"),
    }
}

/// Returns the function of `#-`.
pub(super) fn path_deletion() -> ScalarUDF {
    let returns = |fields: &[FieldRef]| one_document("jsonb_delete_path", fields, JsonKind::Jsonb.data_type());
    ColumnarFunction::new("jsonb_delete_path", path_types, returns, |call| {
        let (documents, paths) = (call.documents(0, JsonKind::Jsonb)?, paths(call, 1)?);
        build_values(call, Some(JsonKind::Jsonb), |row| match (documents.get(row), paths.get(row)) {
            (Some(document), Some(path)) => Ok(Some(format_jsonb(&delete_path(parse(document)?, path)?))),
            _ => Ok(None),
        })
    })
}

/// Returns the function for bytes in the order of `jsonb`, for ORDER BY. Equal documents have the same bytes.
pub(super) fn sort_key() -> ScalarUDF {
    ColumnarFunction::new(
        "jsonb_sort_key",
        keep_types,
        |_| Ok(DataType::Binary),
        |call| {
            let documents = call.texts(0)?;
            let key = |row| -> Result<Option<Vec<u8>>> {
                let Some(document) = documents.get(row) else { return Ok(None) };
                let mut key = Vec::new();
                super::value::write_sort_key(&parse(document)?, &mut key);
                Ok(Some(key))
            };
            let keys = (0..call.rows).map(key).collect::<Result<Vec<_>>>()?;
            crate::function::check_bytes(keys.iter().flatten().map(Vec::len).sum())?;
            Ok(Arc::new(keys.into_iter().collect::<BinaryArray>()))
        },
    )
}

/// Returns the functions `json_extract_path` and `json_extract_path_text`, and those of `jsonb`.
pub(super) fn path_functions() -> Vec<ScalarUDF> {
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
fn path_types(types: &[DataType]) -> Result<Vec<DataType>> {
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
    into_array(values, if is_text { None } else { crate::data_type::json_kind(call.returns) })
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
