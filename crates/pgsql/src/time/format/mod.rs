//! Formatting by patterns: `to_char`, `to_date`, `to_timestamp`, `to_number`.

mod number_pattern;
mod number_text;
mod pattern;
mod read_fields;
mod read_number;
mod read_time;
mod write_number;
mod write_time;

use std::cell::RefCell;
use std::rc::Rc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{self, DAY};
use super::column::{Arguments, Texts};
use super::function::{function, function_of_values, no_function};
use super::interval;
use super::kind::{DATE, Kind, timestamptz};
use number_pattern::Pattern;
use number_text::Numbers;

/// Characters of a pattern.
const PATTERN_LENGTH_MAX: usize = 1_000;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        function("to_char", writable, to_char),
        function(
            "to_date",
            |types| readable("to_date", types, DATE),
            |args| {
                let (texts, patterns) = (args.texts(0)?, Compiled::new(args.texts(1)?));
                args.collect::<Date32Type>(&DATE, |row| {
                    let (Some(text), Some(nodes)) = (texts.get(row), patterns.get(row, times)?) else {
                        return Ok(None);
                    };
                    let instant = read_time::read(text, &nodes)?;
                    calendar::date(instant.div_euclid(DAY)).map(Some)
                })
            },
        ),
        function("to_timestamp", of_epoch_or_text, to_timestamp),
        function_of_values("to_number", number_type, to_number),
    ]
}

fn times(pattern: &str) -> Result<Vec<pattern::Node<pattern::TimeField>>> {
    Ok(pattern::of_times(pattern))
}

/// The patterns of an argument, each compiled once where it stays the same.
struct Compiled<T> {
    texts: Texts,
    last: RefCell<Option<(String, Rc<T>)>>,
}

impl<T> Compiled<T> {
    fn new(texts: Texts) -> Self {
        Self { texts, last: RefCell::new(None) }
    }

    fn get(&self, row: usize, compile: impl Fn(&str) -> Result<T>) -> Result<Option<Rc<T>>> {
        let Some(text) = self.texts.get(row) else { return Ok(None) };
        if let Some((last, compiled)) = self.last.borrow().as_ref()
            && last == text
        {
            return Ok(Some(compiled.clone()));
        }
        if text.len() > PATTERN_LENGTH_MAX {
            return exec_err!("a pattern has {PATTERN_LENGTH_MAX} bytes at most");
        }
        let compiled = Rc::new(compile(text)?);
        self.last.replace(Some((text.to_owned(), compiled.clone())));
        Ok(Some(compiled))
    }
}

fn writable(types: &[DataType]) -> Result<DataType> {
    match types {
        [value, pattern] if Kind::of(pattern).is_open() => match Kind::of(value) {
            Kind::Text | Kind::Other => Err(no_function("to_char", types)),
            _ => Ok(DataType::Utf8),
        },
        _ => Err(no_function("to_char", types)),
    }
}

fn readable(name: &str, types: &[DataType], result: DataType) -> Result<DataType> {
    match types {
        [text, pattern] if Kind::of(text).is_open() && Kind::of(pattern).is_open() => Ok(result),
        _ => Err(no_function(name, types)),
    }
}

fn to_char(args: &Arguments) -> Result<ArrayRef> {
    let texts = args.texts(1)?;
    match args.kind(0) {
        Kind::Integer | Kind::Number => {
            let (numbers, patterns) = (Numbers::new(args, 0)?, Compiled::new(texts));
            args.collect_texts(|row, out| {
                let Some(pattern) = patterns.get(row, Pattern::parse)? else { return Ok(false) };
                numbers.write(row, &pattern, out)
            })
        }
        Kind::Interval => {
            let (values, patterns) = (args.intervals(0)?, Compiled::new(texts));
            args.collect_texts(|row, out| match (values.get(row), patterns.get(row, times)?) {
                (Some(value), Some(nodes)) if !nodes.is_empty() => {
                    write_time::interval(value, &nodes, out).map(|()| true)
                }
                _ => Ok(false),
            })
        }
        Kind::Time => {
            let (values, patterns) = (args.times(0)?, Compiled::new(texts));
            args.collect_texts(|row, out| match (values.get(row), patterns.get(row, times)?) {
                (Some(value), Some(nodes)) if !nodes.is_empty() => {
                    write_time::interval(interval::of_micros(value)?, &nodes, out).map(|()| true)
                }
                _ => Ok(false),
            })
        }
        kind => {
            let (values, patterns) = (args.moments(0)?, Compiled::new(texts));
            // A date is one at midnight UTC.
            let is_zoned = kind != Kind::Timestamp;
            args.collect_texts(|row, out| match (values.get(row), patterns.get(row, times)?) {
                (Some(value), Some(nodes)) if !nodes.is_empty() => {
                    write_time::moment(value, is_zoned, &nodes, out).map(|()| true)
                }
                _ => Ok(false),
            })
        }
    }
}

fn of_epoch_or_text(types: &[DataType]) -> Result<DataType> {
    match types {
        [seconds] if matches!(Kind::of(seconds), Kind::Integer | Kind::Number | Kind::Null | Kind::Text) => {
            Ok(timestamptz())
        }
        _ => readable("to_timestamp", types, timestamptz()),
    }
}

fn to_timestamp(args: &Arguments) -> Result<ArrayRef> {
    /// Seconds from 1970 to 2000, from which PostgreSQL counts.
    const SECONDS_TO_2000: f64 = 946_684_800.0;
    if args.len() > 1 {
        let (texts, patterns) = (args.texts(0)?, Compiled::new(args.texts(1)?));
        return args.collect_micros(args.return_type(), |row| {
            let (Some(text), Some(nodes)) = (texts.get(row), patterns.get(row, times)?) else { return Ok(None) };
            read_time::read(text, &nodes).map(Some)
        });
    }
    let seconds = args.floats(0)?;
    args.collect_micros(args.return_type(), |row| {
        let Some(seconds) = seconds.get(row) else { return Ok(None) };
        let micros = ((seconds - SECONDS_TO_2000) * 1e6).round_ties_even();
        if micros.is_nan() || micros.abs() >= 9.2e18 {
            return exec_err!("timestamp out of range: \"{seconds}\"");
        }
        calendar::checked_timestamp((micros as i64).saturating_add(SECONDS_TO_2000 as i64 * 1_000_000)).map(Some)
    })
}

/// A numeric with as many digits behind the point as the pattern has.
fn number_type(types: &[DataType], values: &[Option<&ScalarValue>]) -> Result<DataType> {
    let digits = match values.get(1) {
        // Without values only the types are checked.
        None => 0,
        Some(Some(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)))) => {
            let pattern = Pattern::parse(text)?;
            pattern.after + pattern.shift
        }
        Some(Some(value)) if value.is_null() => 0,
        Some(_) => return plan_err!("the pattern of to_number() must be a constant"),
    };
    match i8::try_from(digits) {
        Ok(scale) if scale <= 30 => readable("to_number", types, DataType::Decimal128(38, scale)),
        _ => plan_err!("to_number() reads up to 30 digits behind the point"),
    }
}

fn to_number(args: &Arguments) -> Result<ArrayRef> {
    let (texts, patterns) = (args.texts(0)?, Compiled::new(args.texts(1)?));
    let scale = if let DataType::Decimal128(_, scale) = args.return_type() { *scale } else { 0 };
    args.collect::<Decimal128Type>(args.return_type(), |row| {
        let (Some(text), Some(pattern)) = (texts.get(row), patterns.get(row, Pattern::parse)?) else {
            return Ok(None);
        };
        if pattern.roman.is_some() || pattern.has_exponent {
            return exec_err!("\"RN\" and \"EEEE\" are not supported for input");
        }
        number_text::decimal(&read_number::read(text, &pattern), &pattern, scale).map(Some)
    })
}

#[cfg(test)]
mod tests;
