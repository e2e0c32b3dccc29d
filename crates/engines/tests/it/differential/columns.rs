//! Arrow's columns from the texts of PostgreSQL's.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, ListArray, ListBuilder, StringArray, StringBuilder, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Float64Type, Int32Type};
use tokio_postgres::types::Type;

use super::answer::Value;
use super::from_text::value_of;

/// What is selected of a column: dates and times as the numbers that Arrow has.
pub(crate) fn expression_of(name: &str, of: &str) -> String {
    match of {
        "date" => format!("{name} - date '1970-01-01'"),
        "time without time zone" | "timestamp without time zone" | "timestamp with time zone" => {
            format!("(extract(epoch FROM {name}) * 1000000)::bigint")
        }
        "bytea" => format!("encode({name}, 'hex')"),
        _ => name.to_owned(),
    }
}

/// The column of `texts`, whose type in PostgreSQL is called `of`.
pub(crate) fn array_of(texts: &[Option<String>], of: &str) -> ArrayRef {
    match of {
        "smallint" => Arc::new(Int16Array::from(parsed(texts))),
        "integer" => Arc::new(Int32Array::from(parsed(texts))),
        "bigint" => Arc::new(Int64Array::from(parsed(texts))),
        "real" => Arc::new(Float32Array::from(parsed(texts))),
        "double precision" => Arc::new(Float64Array::from(parsed(texts))),
        "boolean" => Arc::new(texts.iter().map(|text| text.as_ref().map(|text| text == "t")).collect::<BooleanArray>()),
        "date" => Arc::new(Date32Array::from(parsed(texts))),
        "time without time zone" => Arc::new(Time64MicrosecondArray::from(parsed(texts))),
        "timestamp without time zone" => Arc::new(TimestampMicrosecondArray::from(parsed(texts))),
        "timestamp with time zone" => Arc::new(TimestampMicrosecondArray::from(parsed(texts)).with_timezone("UTC")),
        "bytea" => Arc::new(texts.iter().map(|text| text.as_deref().map(bytes_of)).collect::<BinaryArray>()),
        "integer[]" => {
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists(texts, &Type::INT4_ARRAY, |text| {
                text.parse().unwrap()
            })))
        }
        "double precision[]" => {
            let values = lists(texts, &Type::FLOAT8_ARRAY, |text| text.parse().unwrap());
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(values))
        }
        "text[]" => {
            let mut builder = ListBuilder::new(StringBuilder::new());
            for list in lists(texts, &Type::TEXT_ARRAY, str::to_owned) {
                builder.append_option(list);
            }
            Arc::new(builder.finish())
        }
        of if of.starts_with("numeric(") => Arc::new(decimals(texts, of)),
        "text" => Arc::new(StringArray::from_iter(texts)),
        of if of.starts_with("character varying") => Arc::new(StringArray::from_iter(texts)),
        of => panic!("tables.sql has a column of type {of}"),
    }
}

/// The numbers of a column of integers.
pub(crate) fn integers(array: &ArrayRef) -> Vec<i32> {
    array.as_primitive::<Int32Type>().values().to_vec()
}

fn parsed<T: FromStr>(texts: &[Option<String>]) -> Vec<Option<T>>
where
    T::Err: std::fmt::Debug,
{
    texts.iter().map(|text| text.as_ref().map(|text| text.parse().unwrap())).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A numeric with precision and scale: PostgreSQL writes all digits of the scale.
fn decimals(texts: &[Option<String>], of: &str) -> Decimal128Array {
    let (precision, scale) = of["numeric(".len()..].trim_end_matches(')').split_once(',').unwrap();
    let digits: Vec<Option<String>> =
        texts.iter().map(|text| text.as_ref().map(|text| text.replace('.', ""))).collect();
    let array = Decimal128Array::from(parsed(&digits));
    array.with_precision_and_scale(precision.parse().unwrap(), scale.parse().unwrap()).unwrap()
}

fn lists<T>(texts: &[Option<String>], of: &Type, value: impl Fn(&str) -> T) -> Vec<Option<Vec<Option<T>>>> {
    let element = |element: Value| match element {
        Value::Null => None,
        element => Some(value(&text_of(&element))),
    };
    let list = |text: &String| match value_of(Some(text), of) {
        Value::Array(elements) => elements.into_iter().map(element).collect(),
        other => panic!("{other} is no array"),
    };
    texts.iter().map(|text| text.as_ref().map(list)).collect()
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Plain(text) => text.clone(),
        value => value.to_string(),
    }
}
