//! `json_to_record` and `json_to_recordset`: the rows that documents describe, and the values of their columns.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType as SqlType, Expr, Value};

use super::document::{as_they_are, check, check_count, finish, kind};
use super::elements::lists;
use super::function::{Call, Function, Texts, field_kind};
use super::kind::Kind;
use super::path::{Step, as_text, each_element, step};
use super::reader::{Reader, Token};
use crate::array::write_element;
use crate::syntax::call;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::new("json_to_record*", as_they_are, documents::<false>, |call| one_record(call, Kind::Json)),
        Function::new("jsonb_to_record*", as_they_are, documents::<true>, |call| one_record(call, Kind::Jsonb)),
        Function::new("json_to_recordset*", as_they_are, documents::<false>, |call| record_set(call, Kind::Json)),
        Function::new("jsonb_to_recordset*", as_they_are, documents::<true>, |call| record_set(call, Kind::Jsonb)),
        Function::new(FIELD_TEXT, as_they_are, |_| Ok(DataType::Utf8), |call| field(call, Form::Text)),
        Function::new(FIELD_ARRAY, as_they_are, |_| Ok(DataType::Utf8), |call| field(call, Form::Array)),
        Function::new(FIELD_DOCUMENT, as_they_are, own_kind, |call| field(call, Form::Document)),
    ]
}

const FIELD_TEXT: &str = "json_field_text*";
const FIELD_ARRAY: &str = "json_field_array*";
const FIELD_DOCUMENT: &str = "json_field*";

/// The value of the member `key` of `record` as one of `data_type`, not yet rewritten.
///
/// # Errors
/// For types with a length, which PostgreSQL checks rather than cuts.
pub(crate) fn column_value(record: Expr, key: &str, data_type: &SqlType) -> Result<Expr> {
    let field = |name| {
        let key = Expr::Value(Value::SingleQuotedString(key.to_owned()).into());
        call(name, vec![record.clone(), key])
    };
    let cast = |value: Expr| Expr::Cast {
        kind: datafusion::sql::sqlparser::ast::CastKind::DoubleColon,
        expr: Box::new(value),
        data_type: data_type.clone(),
        array: false,
        format: None,
    };
    match data_type {
        SqlType::JSON | SqlType::JSONB => Ok(cast(field(FIELD_DOCUMENT))),
        SqlType::Array(ArrayElemTypeDef::SquareBracket(element, _))
            if matches!(**element, SqlType::JSON | SqlType::JSONB) =>
        {
            plan_err!(
                "the type {data_type} in a column definition list; write {element}, and {}_array_elements(column)",
                element.to_string().to_lowercase()
            )
        }
        SqlType::Array(ArrayElemTypeDef::SquareBracket(..)) => Ok(cast(field(FIELD_ARRAY))),
        SqlType::Varchar(Some(_))
        | SqlType::CharacterVarying(Some(_))
        | SqlType::CharVarying(Some(_))
        | SqlType::Char(_)
        | SqlType::Character(_) => plan_err!("the type {data_type} in a column definition list; write text"),
        _ => Ok(cast(field(FIELD_TEXT))),
    }
}

fn documents<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind::<IS_BINARY>();
    check_count("json_to_record", fields, 1, 1)?;
    check(&format!("{}_to_record", kind.name()), kind, &fields[0])?;
    Ok(DataType::new_list(kind.data_type(), true))
}

fn own_kind(fields: &[FieldRef]) -> Result<DataType> {
    Ok(field_kind(&fields[0]).unwrap_or(Kind::Json).data_type())
}

/// One row of each document, also of NULL.
fn one_record(call: &Call<'_>, kind: Kind) -> Result<ArrayRef> {
    let documents = call.documents(0, kind)?;
    let mut texts = Texts::new(call.rows);
    for row in 0..call.rows {
        let document = documents.get(row);
        match document.map(|document| Reader::new(document).token()).transpose()? {
            None | Some(Token::Object) => texts.push(document)?,
            Some(Token::Array) => return exec_err!("cannot call {}_to_record on an array", kind.name()),
            Some(_) => return exec_err!("cannot call {}_to_record on a scalar", kind.name()),
        }
    }
    lists(call, &vec![Some(1); call.rows], finish(texts, Some(kind))?)
}

/// A row of each element of each document.
fn record_set(call: &Call<'_>, kind: Kind) -> Result<ArrayRef> {
    let documents = call.documents(0, kind)?;
    let mut texts = Texts::new(call.rows);
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(document) = documents.get(row) else {
            lengths.push(None);
            continue;
        };
        let mut reader = Reader::new(document);
        if reader.token()? != Token::Array {
            return exec_err!("cannot call {}_to_recordset on a non-array", kind.name());
        }
        let mut length = 0;
        each_element(&mut reader, |element| {
            if Reader::new(element).token()? != Token::Object {
                return exec_err!("argument of {}_to_recordset must be an array of objects", kind.name());
            }
            length += 1;
            texts.push(Some(element))?;
            Ok(true)
        })?;
        lengths.push(Some(length));
    }
    lists(call, &lengths, finish(texts, Some(kind))?)
}

/// What the value of a member becomes before it is cast.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    /// The text of an array.
    Array,
    Document,
}

fn field(call: &Call<'_>, form: Form) -> Result<ArrayRef> {
    let (records, keys) = (call.texts(0)?, call.texts(1)?);
    let mut texts = Texts::new(call.rows);
    for row in 0..call.rows {
        let (Some(record), Some(key)) = (records.get(row), keys.get(row)) else {
            texts.push(None::<&str>)?;
            continue;
        };
        let value = step(record, &Step::Key(key.into()))?;
        let token = value.map(|value| Reader::new(value).token()).transpose()?;
        match (value, token) {
            (None, _) | (_, None | Some(Token::Null)) => texts.push(None::<&str>)?,
            (Some(value), _) if form == Form::Document => texts.push(Some(value))?,
            (Some(value), Some(Token::Array)) if form == Form::Array => {
                let mut out = String::new();
                write_array(value, dimensions(value)?, &mut out)?;
                texts.push(Some(out))?;
            }
            (Some(value), token) => {
                if form == Form::Array && token != Some(Token::String) {
                    return exec_err!("expected JSON array; see the value of key \"{key}\"");
                }
                texts.push(as_text(value)?)?;
            }
        }
    }
    finish(texts, (form == Form::Document).then(|| super::kind::kind_of(call.returns)).flatten())
}

/// The levels of arrays that the first elements of `array` have.
fn dimensions(array: &str) -> Result<usize> {
    let (mut levels, mut value) = (1, array);
    loop {
        let mut first = None;
        each_element(&mut Reader::new(value), |element| {
            first = Some(element);
            Ok(false)
        })?;
        match first {
            Some(element) if Reader::new(element).token()? == Token::Array => (levels, value) = (levels + 1, element),
            _ => return Ok(levels),
        }
    }
}

/// Writes `array`, which has `levels` of arrays, as the text of an array of SQL.
fn write_array(array: &str, levels: usize, out: &mut String) -> Result<()> {
    if Reader::new(array).token()? != Token::Array {
        return exec_err!("expected JSON array");
    }
    out.push('{');
    let mut is_first = true;
    each_element(&mut Reader::new(array), |element| {
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
