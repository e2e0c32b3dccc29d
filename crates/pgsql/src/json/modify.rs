//! `jsonb_set`, `jsonb_insert`, `jsonb_strip_nulls`, `jsonb_pretty`, and what changes a document at a path.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{as_they_are, check, check_count, is_text, kind, printed, values};
use super::function::{Call, Column, Function};
use super::get::paths;
use super::kind::Kind;
use super::path::index_of;
use super::reader::parse;
use super::text::write_pretty;
use super::value::{Value, key_order};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::new("jsonb_set", change_types, |fields| changed("jsonb_set", fields), set),
        Function::new("jsonb_set_lax", lax_types, lax_changed, set_lax),
        Function::new("jsonb_insert", change_types, |fields| changed("jsonb_insert", fields), insert),
        Function::new("json_strip_nulls", as_they_are, stripped::<false>, strip::<false>),
        Function::new("jsonb_strip_nulls", as_they_are, stripped::<true>, strip::<true>),
        Function::new("jsonb_pretty", as_they_are, pretty_type, pretty),
    ]
}

/// A path into a document; an element may be NULL.
type Path = [Option<String>];

fn change_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [document, path, value, rest @ ..] = types else {
        return plan_err!("jsonb_set and jsonb_insert have 3 or 4 arguments: a document, a path, a value, a boolean");
    };
    let path = match path {
        text if is_text(text) => DataType::Utf8,
        _ => DataType::new_list(DataType::Utf8, true),
    };
    let flags = rest.iter().map(|_| DataType::Boolean);
    Ok([vec![document.clone(), path, value.clone()], flags.collect()].concat())
}

fn changed(name: &str, fields: &[FieldRef]) -> Result<DataType> {
    check_count(name, fields, 3, 4)?;
    check(name, Kind::Jsonb, &fields[0])?;
    check(name, Kind::Jsonb, &fields[2])?;
    Ok(Kind::Jsonb.data_type())
}

/// How a value is put into a document.
#[derive(Clone, Copy)]
struct Change {
    /// `jsonb_insert` rather than `jsonb_set`.
    is_insert: bool,
    /// What the fourth argument says: whether to create, or whether to insert behind.
    flag: bool,
}

fn set(call: &Call<'_>) -> Result<ArrayRef> {
    change(call, Change { is_insert: false, flag: true })
}

fn insert(call: &Call<'_>) -> Result<ArrayRef> {
    change(call, Change { is_insert: true, flag: false })
}

fn lax_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let most = types.len().min(4);
    let treatment = types[most..].iter().map(|_| DataType::Utf8);
    Ok(change_types(&types[..most])?.into_iter().chain(treatment).collect())
}

fn lax_changed(fields: &[FieldRef]) -> Result<DataType> {
    check_count("jsonb_set_lax", fields, 3, 5)?;
    changed("jsonb_set_lax", &fields[..fields.len().min(4)])
}

/// `jsonb_set`, for which the fifth argument says what becomes of a value that is NULL.
fn set_lax(call: &Call<'_>) -> Result<ArrayRef> {
    let treatments = if call.args.len() > 4 { Some(call.texts(4)?) } else { None };
    let (documents, paths) = (call.documents(0, Kind::Jsonb)?, paths(call, 1)?);
    let news = call.documents(2, Kind::Jsonb)?;
    let creates = flags(call)?;
    values(call, Some(Kind::Jsonb), |row| {
        let creates = match &creates {
            Some(creates) if creates.values.is_null(creates.place(row)) => return Ok(None),
            Some(creates) => creates.values.value(creates.place(row)),
            None => true,
        };
        let (Some(document), Some(path)) = (documents.get(row), &paths.values[paths.place(row)]) else {
            return Ok(None);
        };
        let treatment = treatments.as_ref().map_or(Some("use_json_null"), |treatments| treatments.get(row));
        let new = match (news.get(row), treatment) {
            (Some(new), Some("use_json_null" | "delete_key" | "return_target" | "raise_exception")) => parse(new)?,
            (None, Some("use_json_null")) => Value::Null,
            (None, Some("delete_key")) => return Ok(Some(printed(&delete_path(parse(document)?, path)?))),
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
        Ok(Some(printed(&put(document, path, 0, &new, Change { is_insert: false, flag: creates })?)))
    })
}

/// The fourth argument.
fn flags(call: &Call<'_>) -> Result<Option<Column<BooleanArray>>> {
    match call.args.len() {
        0..=3 => Ok(None),
        _ => Ok(Some(call.column(3, |array| Ok(array.as_boolean().clone()))?)),
    }
}

fn change(call: &Call<'_>, usual: Change) -> Result<ArrayRef> {
    let (documents, paths) = (call.documents(0, Kind::Jsonb)?, paths(call, 1)?);
    let news = call.documents(2, Kind::Jsonb)?;
    let flags = flags(call)?;
    values(call, Some(Kind::Jsonb), |row| {
        let flag = match &flags {
            Some(flags) if flags.values.is_null(flags.place(row)) => return Ok(None),
            Some(flags) => flags.values.value(flags.place(row)),
            None => usual.flag,
        };
        match (documents.get(row), &paths.values[paths.place(row)], news.get(row)) {
            (Some(document), Some(path), Some(new)) => {
                let document = parse(document)?;
                if document.is_scalar() {
                    return exec_err!("cannot set path in scalar");
                }
                let change = Change { flag, ..usual };
                Ok(Some(printed(&put(document, path, 0, &parse(new)?, change)?)))
            }
            _ => Ok(None),
        }
    })
}

/// An index at a level of a path.
fn index_at(path: &Path, level: usize) -> Result<i64> {
    match index_of(key_at(path, level)?) {
        Some(index) => Ok(index),
        None => {
            let text = path[level].as_deref().unwrap_or_default();
            exec_err!("path element at position {} is not an integer: \"{text}\"", level + 1)
        }
    }
}

fn key_at(path: &Path, level: usize) -> Result<&str> {
    match &path[level] {
        Some(key) => Ok(key),
        None => exec_err!("path element at position {} is null", level + 1),
    }
}

/// `value` with `new` at `path[level..]`.
fn put(value: Value, path: &Path, level: usize, new: &Value, change: Change) -> Result<Value> {
    if level == path.len() {
        return Ok(value);
    }
    let is_last = level + 1 == path.len();
    match value {
        Value::Object(mut pairs) => {
            let key = key_at(path, level)?;
            match pairs.binary_search_by(|(name, _)| key_order(name, key)) {
                Ok(_) if is_last && change.is_insert => return exec_err!("cannot replace existing key"),
                Ok(place) if is_last => pairs[place].1 = new.clone(),
                Ok(place) => {
                    let inner = std::mem::replace(&mut pairs[place].1, Value::Null);
                    pairs[place].1 = put(inner, path, level + 1, new, change)?;
                }
                Err(place) if is_last && (change.is_insert || change.flag) => {
                    pairs.insert(place, (key.to_owned(), new.clone()));
                }
                Err(_) => {}
            }
            Ok(Value::Object(pairs))
        }
        Value::Array(mut items) => {
            let index = index_at(path, level)?;
            put_element(&mut items, index, path, level, new, change)?;
            Ok(Value::Array(items))
        }
        scalar => Ok(scalar),
    }
}

fn put_element(
    items: &mut Vec<Value>,
    index: i64,
    path: &Path,
    level: usize,
    new: &Value,
    change: Change,
) -> Result<()> {
    let length = items.len() as i64;
    let is_last = level + 1 == path.len();
    let place = if index < 0 { length + index } else { index };
    if (0..length).contains(&place) {
        let place = place as usize;
        if !is_last {
            let inner = std::mem::replace(&mut items[place], Value::Null);
            items[place] = put(inner, path, level + 1, new, change)?;
        } else if change.is_insert {
            items.insert(place + usize::from(change.flag), new.clone());
        } else {
            items[place] = new.clone();
        }
    } else if is_last && (change.is_insert || change.flag) {
        items.insert(if place < 0 { 0 } else { items.len() }, new.clone());
    }
    Ok(())
}

/// `value` without what is at `path`.
pub(super) fn delete_path(value: Value, path: &Path) -> Result<Value> {
    if value.is_scalar() {
        return exec_err!("cannot delete path in scalar");
    }
    delete_from(value, path, 0)
}

fn delete_from(value: Value, path: &Path, level: usize) -> Result<Value> {
    if level == path.len() {
        return Ok(value);
    }
    let is_last = level + 1 == path.len();
    match value {
        Value::Object(mut pairs) => {
            let key = key_at(path, level)?;
            if let Ok(place) = pairs.binary_search_by(|(name, _)| key_order(name, key)) {
                if is_last {
                    pairs.remove(place);
                } else {
                    let inner = std::mem::replace(&mut pairs[place].1, Value::Null);
                    pairs[place].1 = delete_from(inner, path, level + 1)?;
                }
            }
            Ok(Value::Object(pairs))
        }
        Value::Array(mut items) => {
            let index = index_at(path, level)?;
            let place = if index < 0 { items.len() as i64 + index } else { index };
            if (0..items.len() as i64).contains(&place) {
                let place = place as usize;
                if is_last {
                    items.remove(place);
                } else {
                    let inner = std::mem::replace(&mut items[place], Value::Null);
                    items[place] = delete_from(inner, path, level + 1)?;
                }
            }
            Ok(Value::Array(items))
        }
        scalar => Ok(scalar),
    }
}

fn stripped<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind::<IS_BINARY>();
    let name = if IS_BINARY { "jsonb_strip_nulls" } else { "json_strip_nulls" };
    check_count(name, fields, 1, 1)?;
    check(name, kind, &fields[0])?;
    Ok(kind.data_type())
}

fn strip<const IS_BINARY: bool>(call: &Call<'_>) -> Result<ArrayRef> {
    let kind = kind::<IS_BINARY>();
    let documents = call.documents(0, kind)?;
    values(call, Some(kind), |row| {
        let Some(document) = documents.get(row) else { return Ok(None) };
        if IS_BINARY {
            return Ok(Some(printed(&parse(document)?.strip_nulls())));
        }
        let mut out = String::new();
        super::elements::strip_text(document, &mut out)?;
        Ok(Some(out))
    })
}

fn pretty_type(fields: &[FieldRef]) -> Result<DataType> {
    check_count("jsonb_pretty", fields, 1, 1)?;
    check("jsonb_pretty", Kind::Jsonb, &fields[0])?;
    Ok(DataType::Utf8)
}

fn pretty(call: &Call<'_>) -> Result<ArrayRef> {
    let documents = call.documents(0, Kind::Jsonb)?;
    values(call, None, |row| {
        let Some(document) = documents.get(row) else { return Ok(None) };
        let mut out = String::new();
        write_pretty(&parse(document)?, 0, &mut out);
        super::function::check_bytes(out.len())?;
        Ok(Some(out))
    })
}
