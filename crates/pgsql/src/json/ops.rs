//! Operators of `jsonb`: comparison, containment, existence, concatenation and deletion.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{as_they_are, is_text, printed, values};
use super::function::{Call, Column, Function};
use super::get::{path_types, paths};
use super::kind::Kind;
use super::modify::delete_path;
use super::path::{Step, step};
use super::reader::{Reader, Token, parse};
use super::value::Value;
use crate::array::text_lists;

/// What a comparison operator is.
pub(super) fn comparison(symbol: &str) -> Option<ScalarUDF> {
    let make = |name, invoke| Some(Function::new(name, as_they_are, |_| Ok(DataType::Boolean), invoke));
    match symbol {
        "=" => make("jsonb_eq", |call| compare(call, Ordering::is_eq)),
        "<>" => make("jsonb_ne", |call| compare(call, Ordering::is_ne)),
        "<" => make("jsonb_lt", |call| compare(call, Ordering::is_lt)),
        "<=" => make("jsonb_le", |call| compare(call, Ordering::is_le)),
        ">" => make("jsonb_gt", |call| compare(call, Ordering::is_gt)),
        ">=" => make("jsonb_ge", |call| compare(call, Ordering::is_ge)),
        _ => None,
    }
}

/// Documents that are parsed: the constant one once.
struct Parsed {
    texts: Column<StringArray>,
    constant: Option<Value>,
}

impl Parsed {
    fn new(call: &Call<'_>, index: usize) -> Result<Self> {
        let texts = call.documents(index, Kind::Jsonb)?;
        let constant = match texts.get(0).filter(|_| texts.is_constant) {
            Some(text) => Some(parse(text)?),
            None => None,
        };
        Ok(Self { texts, constant })
    }

    fn with<T>(&self, row: usize, take: impl FnOnce(&Value) -> Result<T>) -> Result<Option<T>> {
        match (&self.constant, self.texts.get(row)) {
            (Some(value), _) => take(value).map(Some),
            (None, Some(text)) => take(&parse(text)?).map(Some),
            (None, None) => Ok(None),
        }
    }
}

fn of_two<T>(call: &Call<'_>, take: impl Fn(&Value, &Value) -> Result<T>) -> Result<Vec<Option<T>>> {
    let (left, right) = (Parsed::new(call, 0)?, Parsed::new(call, 1)?);
    let one = |row| Ok(left.with(row, |left| right.with(row, |right| take(left, right)))?.flatten());
    (0..call.rows).map(one).collect()
}

fn compare(call: &Call<'_>, is_wanted: fn(Ordering) -> bool) -> Result<ArrayRef> {
    let results = of_two(call, |left, right| Ok(is_wanted(left.compare_documents(right))))?;
    Ok(Arc::new(BooleanArray::from(results)))
}

/// What `@>` is.
pub(super) fn contains() -> ScalarUDF {
    Function::new(
        "jsonb_contains",
        as_they_are,
        |_| Ok(DataType::Boolean),
        |call| {
            let results = of_two(call, |left, right| Ok(left.contains_document(right)))?;
            Ok(Arc::new(BooleanArray::from(results)))
        },
    )
}

/// What `?` is.
pub(super) fn exists() -> ScalarUDF {
    Function::new(
        "jsonb_exists",
        as_they_are,
        |_| Ok(DataType::Boolean),
        |call| {
            let (documents, keys) = (call.documents(0, Kind::Jsonb)?, call.texts(1)?);
            let one = |row| match (documents.get(row), keys.get(row)) {
                (Some(document), Some(key)) => has_key(document, key).map(Some),
                _ => Ok(None),
            };
            Ok(Arc::new((0..call.rows).map(one).collect::<Result<BooleanArray>>()?))
        },
    )
}

fn has_key(document: &str, key: &str) -> Result<bool> {
    match Reader::new(document).token()? {
        Token::Object => Ok(step(document, &Step::Key(key.into()))?.is_some()),
        _ => Ok(parse(document)?.has_key(key)),
    }
}

/// What `?&` is, and `?|` if `is_any`.
pub(super) fn exists_of(is_any: bool) -> ScalarUDF {
    if is_any {
        Function::new("jsonb_exists_any", path_types, |_| Ok(DataType::Boolean), |call| exists_many(call, true))
    } else {
        Function::new("jsonb_exists_all", path_types, |_| Ok(DataType::Boolean), |call| exists_many(call, false))
    }
}

fn exists_many(call: &Call<'_>, is_any: bool) -> Result<ArrayRef> {
    let (documents, keys) = (Parsed::new(call, 0)?, paths(call, 1)?);
    let one = |row| {
        let Some(keys) = &keys.values[keys.place(row)] else { return Ok(None) };
        documents.with(row, |document| {
            let mut found = keys.iter().flatten().map(|key| document.has_key(key));
            Ok(if is_any { found.any(|is_there| is_there) } else { found.all(|is_there| is_there) })
        })
    };
    Ok(Arc::new((0..call.rows).map(one).collect::<Result<BooleanArray>>()?))
}

/// What `||` is.
pub(super) fn concatenation() -> ScalarUDF {
    Function::new(
        "jsonb_concat",
        as_they_are,
        |_| Ok(Kind::Jsonb.data_type()),
        |call| {
            let mut results = of_two(call, |left, right| Ok(printed(&joined(left, right))))?;
            values(call, Some(Kind::Jsonb), |row| Ok(results[row].take()))
        },
    )
}

fn joined(left: &Value, right: &Value) -> Value {
    if let (Value::Object(left), Value::Object(right)) = (left, right) {
        return Value::object(left.iter().chain(right).cloned().collect());
    }
    let items = |value: &Value| match value {
        Value::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    Value::Array([items(left), items(right)].concat())
}

/// What `-` is: the right side is a key, an index or an array of keys.
pub(super) fn deletion() -> ScalarUDF {
    Function::new("jsonb_delete", deletion_types, |_| Ok(Kind::Jsonb.data_type()), delete)
}

fn deletion_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [document, index] if index.is_integer() => Ok(vec![document.clone(), DataType::Int64]),
        [document, key] if is_text(key) => Ok(vec![document.clone(), DataType::Utf8]),
        _ => path_types(types),
    }
}

fn delete(call: &Call<'_>) -> Result<ArrayRef> {
    let documents = call.documents(0, Kind::Jsonb)?;
    let with = |row: usize, change: &dyn Fn(Value) -> Result<Value>| match documents.get(row) {
        Some(document) => Ok(Some(printed(&change(parse(document)?)?))),
        None => Ok(None),
    };
    match call.fields[1].data_type() {
        DataType::Int64 => {
            let indexes: Column<Int64Array> = call.column(1, |array| Ok(array.as_primitive().clone()))?;
            values(call, Some(Kind::Jsonb), |row| {
                let place = indexes.place(row);
                if indexes.values.is_null(place) {
                    return Ok(None);
                }
                with(row, &|value| without_index(value, indexes.values.value(place)))
            })
        }
        DataType::Utf8 => {
            let keys = call.texts(1)?;
            values(call, Some(Kind::Jsonb), |row| match keys.get(row) {
                Some(key) => with(row, &|value| without_keys(value, &[Some(key.to_owned())])),
                None => Ok(None),
            })
        }
        _ => {
            let keys = call.column(1, |array| text_lists(&array))?;
            values(call, Some(Kind::Jsonb), |row| match &keys.values[keys.place(row)] {
                Some(keys) => with(row, &|value| without_keys(value, keys)),
                None => Ok(None),
            })
        }
    }
}

fn without_keys(value: Value, keys: &[Option<String>]) -> Result<Value> {
    let is_key = |text: &str| keys.iter().flatten().any(|key| key == text);
    match value {
        Value::Object(mut pairs) => {
            pairs.retain(|(key, _)| !is_key(key));
            Ok(Value::Object(pairs))
        }
        Value::Array(mut items) => {
            items.retain(|item| !matches!(item, Value::Text(text) if is_key(text)));
            Ok(Value::Array(items))
        }
        _ => exec_err!("cannot delete from scalar"),
    }
}

fn without_index(value: Value, index: i64) -> Result<Value> {
    match value {
        Value::Array(mut items) => {
            let place = if index < 0 { items.len() as i64 + index } else { index };
            if (0..items.len() as i64).contains(&place) {
                items.remove(place as usize);
            }
            Ok(Value::Array(items))
        }
        Value::Object(_) => exec_err!("cannot delete from object using integer index"),
        _ => exec_err!("cannot delete from scalar"),
    }
}

/// What `#-` is.
pub(super) fn path_deletion() -> ScalarUDF {
    Function::new(
        "jsonb_delete_path",
        path_types,
        |_| Ok(Kind::Jsonb.data_type()),
        |call| {
            let (documents, paths) = (call.documents(0, Kind::Jsonb)?, paths(call, 1)?);
            values(call, Some(Kind::Jsonb), |row| match (documents.get(row), &paths.values[paths.place(row)]) {
                (Some(document), Some(path)) => Ok(Some(printed(&delete_path(parse(document)?, path)?))),
                _ => Ok(None),
            })
        },
    )
}

/// Bytes in the order of `jsonb`, for ORDER BY. Documents that are equal have the same bytes.
pub(super) fn sort_key() -> ScalarUDF {
    Function::new(
        "jsonb_sort_key",
        as_they_are,
        |_| Ok(DataType::Binary),
        |call| {
            let documents = call.texts(0)?;
            let key = |row| -> Result<Option<Vec<u8>>> {
                let Some(document) = documents.get(row) else { return Ok(None) };
                let mut key = Vec::new();
                super::order::write_document(&parse(document)?, &mut key);
                Ok(Some(key))
            };
            let keys = (0..call.rows).map(key).collect::<Result<Vec<_>>>()?;
            super::function::check_bytes(keys.iter().flatten().map(Vec::len).sum())?;
            Ok(Arc::new(keys.into_iter().collect::<BinaryArray>()))
        },
    )
}
