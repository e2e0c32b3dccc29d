//! `jsonb_set`, `jsonb_insert`, `jsonb_strip_nulls`, `jsonb_pretty`, and what changes a document at a path.

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{build_values, check_argument, check_count, format_jsonb, json_and_jsonb, kind_from_flag};
use super::operators::paths;
use super::reader::{parse, parse_index};
use super::value::{JsonValue, key_order, write_pretty};
use crate::data_type::{JsonKind, is_text_or_null};
use crate::function::{ArgumentColumn, ColumnarFunction, FunctionCall, keep_types};

pub(super) fn functions() -> Vec<ScalarUDF> {
    let mut functions = vec![
        ColumnarFunction::new("jsonb_set", change_types, |fields| update_result_type("jsonb_set", fields), set),
        ColumnarFunction::new("jsonb_set_lax", lax_types, lax_update_result_type, set_lax),
        ColumnarFunction::new(
            "jsonb_insert",
            change_types,
            |fields| update_result_type("jsonb_insert", fields),
            insert,
        ),
        ColumnarFunction::new("jsonb_pretty", keep_types, pretty_type, pretty),
    ];
    functions.extend(json_and_jsonb!("json_strip_nulls", "jsonb_strip_nulls", keep_types, stripped, strip));
    functions
}

/// A path into a document; an element may be NULL.
type KeyPathSlice = [Option<String>];

fn change_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [document, path, value, rest @ ..] = types else {
        return plan_err!("jsonb_set and jsonb_insert take 3 or 4 arguments: a document, a path, a value, a boolean");
    };
    let path = match path {
        text if is_text_or_null(text) => DataType::Utf8,
        _ => DataType::new_list(DataType::Utf8, true),
    };
    let flags = rest.iter().map(|_| DataType::Boolean);
    Ok([vec![document.clone(), path, value.clone()], flags.collect()].concat())
}

fn update_result_type(name: &str, fields: &[FieldRef]) -> Result<DataType> {
    check_count(name, fields, 3, 4)?;
    check_argument(name, JsonKind::Jsonb, &fields[0])?;
    check_argument(name, JsonKind::Jsonb, &fields[2])?;
    Ok(JsonKind::Jsonb.data_type())
}

/// How a value is put into a document.
#[derive(Clone, Copy)]
struct JsonUpdate {
    /// `jsonb_insert` rather than `jsonb_set`.
    is_insert: bool,
    /// The fourth argument: whether to create a missing member, or whether to insert after the position.
    flag: bool,
    /// `jsonb_set_lax`, whose fifth argument defines how a value that is NULL is treated.
    is_lax: bool,
}

/// What is done at a path.
#[derive(Clone, Copy)]
enum JsonChange<'a> {
    Put(&'a JsonValue, JsonUpdate),
    Delete,
}

fn set(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    update_documents(call, JsonUpdate { is_insert: false, flag: true, is_lax: false })
}

fn insert(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    update_documents(call, JsonUpdate { is_insert: true, flag: false, is_lax: false })
}

fn set_lax(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    update_documents(call, JsonUpdate { is_insert: false, flag: true, is_lax: true })
}

fn lax_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let most = types.len().min(4);
    let treatment = types[most..].iter().map(|_| DataType::Utf8);
    Ok(change_types(&types[..most])?.into_iter().chain(treatment).collect())
}

fn lax_update_result_type(fields: &[FieldRef]) -> Result<DataType> {
    check_count("jsonb_set_lax", fields, 3, 5)?;
    update_result_type("jsonb_set_lax", &fields[..fields.len().min(4)])
}

/// Returns the fourth argument, if there is one.
fn flags(call: &FunctionCall<'_>) -> Result<Option<ArgumentColumn<BooleanArray>>> {
    match call.args.len() {
        0..=3 => Ok(None),
        _ => Ok(Some(call.column(3, |array| Ok(array.as_boolean().clone()))?)),
    }
}

fn update_documents(call: &FunctionCall<'_>, usual: JsonUpdate) -> Result<ArrayRef> {
    let treatments = if call.args.len() > 4 { Some(call.texts(4)?) } else { None };
    let (documents, paths) = (call.documents(0, JsonKind::Jsonb)?, paths(call, 1)?);
    let news = call.documents(2, JsonKind::Jsonb)?;
    let flags = flags(call)?;
    build_values(call, Some(JsonKind::Jsonb), |row| {
        let flag = flags.as_ref().map_or(Some(usual.flag), |flags| flags.get(row));
        let (Some(flag), Some(document), Some(path)) = (flag, documents.get(row), paths.get(row)) else {
            return Ok(None);
        };
        let treatment = treatments.as_ref().map_or(Some("use_json_null"), |treatments| treatments.get(row));
        let new = match (news.get(row), treatment) {
            (None, _) if !usual.is_lax => return Ok(None),
            (Some(new), Some("use_json_null" | "delete_key" | "return_target" | "raise_exception")) => parse(new)?,
            (None, Some("use_json_null")) => JsonValue::Null,
            (None, Some("delete_key")) => return Ok(Some(format_jsonb(&delete_path(parse(document)?, path)?))),
            (None, Some("return_target")) => return Ok(Some(document.to_owned())),
            (None, Some("raise_exception")) => return exec_err!("JSON value must not be null"),
            _ => {
                return exec_err!(
                    "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \
                     \"raise_exception\""
                );
            }
        };
        let document = parse(document)?;
        if document.is_scalar() {
            return exec_err!("cannot set path in scalar");
        }
        let change = JsonChange::Put(&new, JsonUpdate { flag, ..usual });
        Ok(Some(format_jsonb(&change_at(document, path, 0, change)?)))
    })
}

/// Returns an index at a level of a path.
fn index_at(path: &KeyPathSlice, level: usize) -> Result<i64> {
    match parse_index(key_at(path, level)?) {
        Some(index) => Ok(index),
        None => {
            let text = path[level].as_deref().unwrap_or_default();
            exec_err!("path element at position {} is not an integer: \"{text}\"", level + 1)
        }
    }
}

fn key_at(path: &KeyPathSlice, level: usize) -> Result<&str> {
    match &path[level] {
        Some(key) => Ok(key),
        None => exec_err!("path element at position {} is null", level + 1),
    }
}

/// Deletes the part of `value` at `path`.
pub(super) fn delete_path(value: JsonValue, path: &KeyPathSlice) -> Result<JsonValue> {
    if value.is_scalar() {
        return exec_err!("cannot delete path in scalar");
    }
    change_at(value, path, 0, JsonChange::Delete)
}

/// Changes `path[level..]` of `value`.
fn change_at(value: JsonValue, path: &KeyPathSlice, level: usize, change: JsonChange<'_>) -> Result<JsonValue> {
    if level == path.len() {
        return Ok(value);
    }
    let is_last = level + 1 == path.len();
    let change_within = |part: &mut JsonValue| -> Result<()> {
        *part = change_at(std::mem::replace(part, JsonValue::Null), path, level + 1, change)?;
        Ok(())
    };
    match value {
        JsonValue::Object(mut pairs) => {
            let key = key_at(path, level)?;
            match (pairs.binary_search_by(|(name, _)| key_order(name, key)), change) {
                (Ok(position), _) if !is_last => change_within(&mut pairs[position].1)?,
                (Ok(position), JsonChange::Delete) => {
                    pairs.remove(position);
                }
                (Ok(_), JsonChange::Put(_, update)) if update.is_insert => {
                    return exec_err!("cannot replace existing key");
                }
                (Ok(position), JsonChange::Put(new, _)) => pairs[position].1 = new.clone(),
                (Err(position), JsonChange::Put(new, update)) if is_last && (update.is_insert || update.flag) => {
                    pairs.insert(position, (key.to_owned(), new.clone()));
                }
                (Err(_), _) => {}
            }
            Ok(JsonValue::Object(pairs))
        }
        JsonValue::Array(mut items) => {
            let index = index_at(path, level)?;
            let position = if index < 0 { items.len() as i64 + index } else { index };
            let place = usize::try_from(position).ok().filter(|place| *place < items.len());
            match (place, change) {
                (Some(place), _) if !is_last => change_within(&mut items[place])?,
                (Some(place), JsonChange::Delete) => {
                    items.remove(place);
                }
                (Some(place), JsonChange::Put(new, update)) if update.is_insert => {
                    items.insert(place + usize::from(update.flag), new.clone());
                }
                (Some(place), JsonChange::Put(new, _)) => items[place] = new.clone(),
                (None, JsonChange::Put(new, update)) if is_last && (update.is_insert || update.flag) => {
                    items.insert(if position < 0 { 0 } else { items.len() }, new.clone());
                }
                (None, _) => {}
            }
            Ok(JsonValue::Array(items))
        }
        scalar => Ok(scalar),
    }
}

fn stripped<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind_from_flag::<IS_BINARY>();
    let name = if IS_BINARY { "jsonb_strip_nulls" } else { "json_strip_nulls" };
    check_count(name, fields, 1, 1)?;
    check_argument(name, kind, &fields[0])?;
    Ok(kind.data_type())
}

fn strip<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let kind = kind_from_flag::<IS_BINARY>();
    let documents = call.documents(0, kind)?;
    build_values(call, Some(kind), |row| {
        let Some(document) = documents.get(row) else { return Ok(None) };
        if IS_BINARY {
            return Ok(Some(format_jsonb(&parse(document)?.strip_nulls())));
        }
        let mut out = String::new();
        super::elements::strip_text(document, &mut out)?;
        Ok(Some(out))
    })
}

fn pretty_type(fields: &[FieldRef]) -> Result<DataType> {
    check_count("jsonb_pretty", fields, 1, 1)?;
    check_argument("jsonb_pretty", JsonKind::Jsonb, &fields[0])?;
    Ok(DataType::Utf8)
}

fn pretty(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let documents = call.documents(0, JsonKind::Jsonb)?;
    build_values(call, None, |row| {
        let Some(document) = documents.get(row) else { return Ok(None) };
        let mut out = String::new();
        write_pretty(&parse(document)?, 0, &mut out);
        crate::function::check_bytes(out.len())?;
        Ok(Some(out))
    })
}
