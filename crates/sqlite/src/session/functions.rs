//! Functions of a connection: text functions with linear running time, SQLite's mathematical functions
//! (<https://www.sqlite.org/lang_mathfunc.html>), which its default build lacks, and the table function `generate_series`.
//!
//! The running time of SQLite's own functions grows with the product of the argument lengths: a search for eight
//! million characters in sixteen million takes hours. Nothing can end it, since SQLite checks for interrupts only between
//! instructions, and a function is one instruction. These replacements return the same results.
//!
//! Mathematical functions are NULL where an argument is not a number, and where the result is not defined.
//!
//! The module of rusqlite counts a series with a negative step from its smaller end, and its numbers overflow at the end
//! of the range. Statements therefore pass the arguments through [`SERIES_ARGUMENT`], which converts them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::vtab::series;
use rusqlite::{Connection, Error, Result, ffi};

/// Replaces SQLite's functions; none of the replacements returns more than `bytes_max`.
pub(super) fn replace_builtin_functions(connection: &Connection, bytes_max: usize) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let converter = TextConverter::new()?;
    let add = |name, arguments, function: fn(&TextConverter, &Context<'_>, usize) -> Result<Value>| {
        let converter = converter.clone();
        connection
            .create_scalar_function(name, arguments, flags, move |context| function(&converter, context, bytes_max))
    };
    add("instr", 2, |converter, context, _| instr(converter, context))?;
    add("replace", 3, replace)?;
    add("trim", 2, |converter, context, _| trim(converter, context, true, true))?;
    add("ltrim", 2, |converter, context, _| trim(converter, context, true, false))?;
    add("rtrim", 2, |converter, context, _| trim(converter, context, false, true))?;
    add("unhex", 2, |converter, context, _| unhex(converter, context))
}

/// The position of the second argument in the first, from 1; 0 if it does not occur.
fn instr(converter: &TextConverter, context: &Context<'_>) -> Result<Value> {
    let (text, expected) = match (context.get_raw(0), context.get_raw(1)) {
        (ValueRef::Null, _) | (_, ValueRef::Null) => return Ok(Value::Null),
        // The standard library searches converter in linear time, but not bytes. Therefore each byte becomes a character.
        (ValueRef::Blob(bytes), ValueRef::Blob(expected)) => {
            (bytes_to_chars(bytes).into(), bytes_to_chars(expected).into())
        }
        (text, expected) => {
            (converter.to_text(text)?.unwrap_or_default(), converter.to_text(expected)?.unwrap_or_default())
        }
    };
    let position = text.find(expected.as_ref()).map_or(0, |at| text[..at].chars().count() + 1);
    Ok(i64::try_from(position).map_or(Value::Null, Value::Integer))
}

fn bytes_to_chars(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The first argument, with each occurrence of the second replaced by the third.
fn replace(converter: &TextConverter, context: &Context<'_>, bytes_max: usize) -> Result<Value> {
    let (Some(text), Some(expected)) =
        (converter.to_exact_text(context.get_raw(0))?, converter.to_text(context.get_raw(1))?)
    else {
        return Ok(Value::Null);
    };
    if expected.is_empty() {
        return Ok(Value::Text(text.into_owned()));
    }
    let Some(new) = converter.to_exact_text(context.get_raw(2))? else { return Ok(Value::Null) };
    let count = text.matches(expected.as_ref()).count();
    let bytes = (text.len() - count * expected.len()).saturating_add(count.saturating_mul(new.len()));
    if bytes > bytes_max {
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None));
    }
    Ok(Value::Text(text.replace(expected.as_ref(), &new)))
}

/// The first argument without the characters of the second at its ends.
fn trim(converter: &TextConverter, context: &Context<'_>, at_start: bool, at_end: bool) -> Result<Value> {
    let (Some(text), Some(characters)) =
        (converter.to_exact_text(context.get_raw(0))?, converter.to_text(context.get_raw(1))?)
    else {
        return Ok(Value::Null);
    };
    let characters: HashSet<char> = characters.chars().collect();
    let mut rest = text.as_ref();
    if at_start {
        rest = rest.trim_start_matches(|character| characters.contains(&character));
    }
    if at_end {
        rest = rest.trim_end_matches(|character| characters.contains(&character));
    }
    Ok(Value::Text(rest.to_owned()))
}

/// Decodes the hexadecimal digits of the first argument; ignores the characters of the second between bytes.
fn unhex(converter: &TextConverter, context: &Context<'_>) -> Result<Value> {
    let (Some(text), Some(between)) = (converter.to_text(context.get_raw(0))?, converter.to_text(context.get_raw(1))?)
    else {
        return Ok(Value::Null);
    };
    let between: HashSet<char> = between.chars().collect();
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character.to_digit(16), characters.clone().next().and_then(|second| second.to_digit(16))) {
            (Some(first), Some(second)) => {
                characters.next();
                // Two digits fit in a byte.
                bytes.push((first << 4 | second) as u8);
            }
            (None, _) if between.contains(&character) => {}
            _ => return Ok(Value::Null),
        }
    }
    Ok(Value::Blob(bytes))
}

#[derive(Clone)]
struct TextConverter {
    /// Only SQLite can format a real as SQLite does. This connection has no file and is used for nothing else.
    writer: Arc<Mutex<Connection>>,
}

impl TextConverter {
    fn new() -> Result<Self> {
        Ok(Self { writer: Arc::new(Mutex::new(Connection::open_in_memory()?)) })
    }

    fn to_text<'a>(&self, value: ValueRef<'a>) -> Result<Option<Cow<'a, str>>> {
        Ok(match value {
            ValueRef::Null => None,
            ValueRef::Integer(value) => Some(value.to_string().into()),
            ValueRef::Real(value) => {
                let text: String =
                    self.writer.lock().query_row("SELECT CAST(?1 AS TEXT)", [value], |row| row.get(0))?;
                Some(text.into())
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes)),
        })
    }

    /// As [`Self::to_text`], for text that gets into a result.
    fn to_exact_text<'a>(&self, value: ValueRef<'a>) -> Result<Option<Cow<'a, str>>> {
        match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) if std::str::from_utf8(bytes).is_err() => {
                Err(Error::UserFunctionError("an argument is text that is not UTF-8".into()))
            }
            value => self.to_text(value),
        }
    }
}

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

pub(crate) const SERIES: &str = "generate_series";
/// `(0, …)` is the start, `(1, …)` the end and `(2, …)` the step for the module; `…` are the arguments as written.
pub(crate) const SERIES_ARGUMENT: &str = "tidegate_series_argument";
/// The number of arguments of the module.
pub(crate) const SERIES_ARGUMENTS: usize = 3;

/// The end of a series without one, as in SQLite's own extension.
const END_DEFAULT: i64 = 0xffff_ffff;
/// The maximum absolute value of an argument: sums of two do not overflow.
const ARGUMENT_MAX: i64 = 1 << 61;

pub(super) fn add_series(connection: &Connection) -> Result<()> {
    series::load_module(connection)?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function(SERIES_ARGUMENT, -1, flags, series_argument)
}

fn series_argument(context: &Context<'_>) -> Result<Option<i64>> {
    let mut given = Vec::with_capacity(SERIES_ARGUMENTS);
    for index in 1..context.len() {
        match whole_number(context.get_raw(index))? {
            Some(number) => given.push(number),
            // A series with a NULL has no rows.
            None => return Ok(None),
        }
    }
    let (start, end, step) = match given.as_slice() {
        [start] => (*start, END_DEFAULT, 1),
        [start, end] => (*start, *end, 1),
        [start, end, step] => (*start, *end, if *step == 0 { 1 } else { *step }),
        _ => return Err(user_error("generate_series takes a start, an end and a step; the last two are optional")),
    };
    let converted = match step {
        1.. => [start, end, step],
        // Without rows.
        _ if start < end => [1, 0, 1],
        // The module begins at the last number that is a multiple of steps away from the smaller end.
        _ => [start - (start - end) / -step * -step, start, step],
    };
    let index = usize::try_from(context.get::<i64>(0)?).unwrap_or_default();
    Ok(converted.get(index).copied())
}

fn whole_number(value: ValueRef<'_>) -> Result<Option<i64>> {
    let number = match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) if number.fract() == 0.0 && number.abs() <= ARGUMENT_MAX as f64 => Some(number as i64),
        ValueRef::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()),
        ValueRef::Real(_) | ValueRef::Blob(_) => None,
    };
    let in_range = number.filter(|number| (-ARGUMENT_MAX..=ARGUMENT_MAX).contains(number));
    in_range.map(Some).ok_or_else(|| user_error("generate_series takes whole numbers of at most 2305843009213693952"))
}

fn user_error(message: &str) -> Error {
    Error::UserFunctionError(message.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn argument() -> impl Strategy<Value = Value> {
        prop_oneof![
            1 => Just(Value::Null),
            2 => any::<i64>().prop_map(Value::Integer),
            2 => (-1000..1000_i64).prop_map(Value::Integer),
            2 => any::<f64>().prop_filter("no NaN", |value| !value.is_nan()).prop_map(Value::Real),
            2 => (-1e6..1e6).prop_map(Value::Real),
            8 => "[ab1.éx-]{0,12}".prop_map(Value::Text),
            8 => "[a1]{0,3}".prop_map(Value::Text),
            3 => "[ab1]{0,6}".prop_map(|text| Value::Blob(text.into_bytes())),
        ]
    }

    fn connections() -> [Connection; 2] {
        let ours = Connection::open_in_memory().unwrap();
        replace_builtin_functions(&ours, 1 << 20).unwrap();
        [Connection::open_in_memory().unwrap(), ours]
    }

    proptest! {
        #[test]
        fn results_match_sqlite(a in argument(), b in argument(), c in argument()) {
            let [theirs, ours] = connections();
            for call in ["instr(?1, ?2)", "replace(?1, ?2, ?3)", "trim(?1, ?2)", "ltrim(?1, ?2)", "rtrim(?1, ?2)", "unhex(?1, ?2)"] {
                let answer = |connection: &Connection| -> Value {
                    connection.query_row(&format!("SELECT {call}, ?1, ?2, ?3"), [&a, &b, &c], |row| row.get(0)).unwrap()
                };
                prop_assert_eq!(answer(&theirs), answer(&ours), "{} {:?} {:?} {:?}", call, &a, &b, &c);
            }
        }
    }

    fn series(arguments: &str) -> String {
        let connection = Connection::open_in_memory().unwrap();
        add_series(&connection).unwrap();
        let converted = |index| format!("{SERIES_ARGUMENT}({index}, {arguments})");
        let sql = format!(
            "SELECT group_concat(value) FROM generate_series({}, {}, {})",
            converted(0),
            converted(1),
            converted(2)
        );
        let text = connection.query_row(&sql, [], |row| row.get::<_, Option<String>>(0));
        text.map_or_else(|error| error.to_string(), Option::unwrap_or_default)
    }

    #[test]
    fn series_counts_in_both_directions_within_its_ends() {
        for (arguments, expected) in [
            ("1, 3", "1,2,3"),
            ("4294967294", "4294967294,4294967295"),
            ("0, 10, 4", "0,4,8"),
            ("10, 0, -4", "10,6,2"),
            ("0, -3, -1", "0,-1,-2,-3"),
            ("3, 1", ""),
            ("1, 3, -1", ""),
            ("1, 3, 0", "1,2,3"),
            ("1, NULL", ""),
            ("'2', 3.0", "2,3"),
            ("2305843009213693952, 2305843009213693952, 2305843009213693952", "2305843009213693952"),
            (
                "-2305843009213693952, 2305843009213693952, 2305843009213693952",
                "-2305843009213693952,0,2305843009213693952",
            ),
            (
                "2305843009213693952, -2305843009213693952, -2305843009213693952",
                "2305843009213693952,0,-2305843009213693952",
            ),
        ] {
            assert_eq!(series(arguments), expected, "{arguments}");
        }
        for refused in ["1.5, 2", "'a', 2", "1, 9223372036854775807", "-9223372036854775808, 1", "x'00', 1"] {
            assert_eq!(
                series(refused),
                "generate_series takes whole numbers of at most 2305843009213693952",
                "{refused}"
            );
        }
    }
}
