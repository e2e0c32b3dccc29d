//! SQLite's mathematical functions (<https://www.sqlite.org/lang_mathfunc.html>), which its default build lacks.
//!
//! They are NULL where an argument is not a number, and where the result is not defined.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

type Unary = fn(f64) -> f64;
type Binary = fn(f64, f64) -> f64;

#[rustfmt::skip]
const UNARY: &[(&str, Unary)] = &[
    ("acos", f64::acos), ("acosh", f64::acosh), ("asin", f64::asin), ("asinh", f64::asinh), ("atan", f64::atan),
    ("atanh", f64::atanh), ("cos", f64::cos), ("cosh", f64::cosh), ("degrees", f64::to_degrees), ("exp", f64::exp),
    ("ln", logarithm), ("log", logarithm10), ("log10", logarithm10), ("log2", logarithm2), ("radians", f64::to_radians),
    ("sin", f64::sin), ("sinh", f64::sinh), ("sqrt", f64::sqrt), ("tan", f64::tan), ("tanh", f64::tanh),
];
const BINARY: &[(&str, Binary)] = &[
    ("atan2", f64::atan2),
    ("log", logarithm_to_base),
    ("mod", |dividend, divisor| dividend % divisor),
    ("pow", f64::powf),
    ("power", f64::powf),
];
/// They return an integer as it is.
const ROUNDING: &[(&str, Unary)] =
    &[("ceil", f64::ceil), ("ceiling", f64::ceil), ("floor", f64::floor), ("trunc", f64::trunc)];

/// Adds the functions to `connection`.
pub(super) fn add_mathematical_functions(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    for &(name, function) in UNARY {
        connection.create_scalar_function(name, 1, flags, move |context| Ok(number(context, 0).map(function)))?;
    }
    for &(name, function) in BINARY {
        connection.create_scalar_function(name, 2, flags, move |context| {
            Ok(number(context, 0).zip(number(context, 1)).map(|(first, second)| function(first, second)))
        })?;
    }
    for &(name, function) in ROUNDING {
        connection.create_scalar_function(name, 1, flags, move |context| {
            Ok(match numeric_value(context.get_raw(0)) {
                Value::Real(value) => Value::Real(function(value)),
                other => other,
            })
        })?;
    }
    connection.create_scalar_function("pi", 0, flags, |_| Ok(std::f64::consts::PI))
}

fn number(context: &Context<'_>, index: usize) -> Option<f64> {
    match numeric_value(context.get_raw(index)) {
        Value::Integer(value) => Some(value as f64),
        Value::Real(value) => Some(value),
        _ => None,
    }
}

/// The number that `value` is, or that its text is; else NULL.
fn numeric_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(bytes) => {
            let text = std::str::from_utf8(bytes).unwrap_or_default().trim_ascii();
            // Other texts that Rust reads as numbers, such as `inf`, are none in SQLite.
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
            let integer = text.parse().ok().map(Value::Integer);
            let parsed = integer.or_else(|| text.parse().ok().map(Value::Real));
            parsed.filter(|_| is_number).unwrap_or(Value::Null)
        }
        ValueRef::Null | ValueRef::Blob(_) => Value::Null,
    }
}

// SQLite returns a result that is not a number as NULL.

fn only_if_positive(x: f64, function: Unary) -> f64 {
    if x > 0.0 { function(x) } else { f64::NAN }
}

fn logarithm(x: f64) -> f64 {
    only_if_positive(x, f64::ln)
}

fn logarithm10(x: f64) -> f64 {
    only_if_positive(x, f64::log10)
}

fn logarithm2(x: f64) -> f64 {
    only_if_positive(x, f64::log2)
}

fn logarithm_to_base(base: f64, x: f64) -> f64 {
    if base > 1.0 { logarithm(x) / base.ln() } else { f64::NAN }
}
