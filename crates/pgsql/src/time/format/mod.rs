//! Formatting by patterns: `to_char`, `to_date`, `to_timestamp`, `to_number`.

mod number_text;
mod pattern;
mod read_time;
mod write_time;

use std::cell::RefCell;
use std::rc::Rc;

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{self, DAY};
use super::function::{TextColumn, TimeColumn, TimeKind, function, function_with_constant_args, map};
use super::input::round_moment;
use super::interval;
use crate::data_type::{DATE, timestamptz};
use crate::function::FunctionCall;
use number_text::NumberValues;
use pattern::NumberPattern;

/// Characters of a pattern.
const PATTERN_LENGTH_MAX: usize = 1_000;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        function("to_char", to_char_type, to_char),
        function(
            "to_date",
            |kinds| from_pattern_type(kinds, DATE),
            |args| {
                let instant = read_times(args)?;
                args.collect::<Date32Type>(|row| {
                    instant(row)?.map(|(instant, _)| calendar::checked_date(instant.div_euclid(DAY))).transpose()
                })
            },
        ),
        function("to_timestamp", to_timestamp_type, to_timestamp),
        function_with_constant_args("to_number", number_type, to_number),
    ]
}

type TimePatternNode = pattern::PatternNode<pattern::TimeField>;

fn compile_time_pattern(pattern: &str) -> Result<Vec<TimePatternNode>> {
    Ok(pattern::parse_time_pattern(pattern))
}

/// The patterns of an argument. Equal patterns in consecutive rows are compiled once.
struct CompiledPatterns<T> {
    texts: TextColumn,
    last: RefCell<Option<(String, Rc<T>)>>,
}

impl<T> CompiledPatterns<T> {
    fn new(texts: TextColumn) -> Self {
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
            return exec_err!("a pattern may have at most {PATTERN_LENGTH_MAX} bytes");
        }
        let compiled = Rc::new(compile(text)?);
        self.last.replace(Some((text.to_owned(), compiled.clone())));
        Ok(Some(compiled))
    }
}

fn to_char_type(kinds: &[TimeKind]) -> Option<DataType> {
    match kinds {
        [TimeKind::Text | TimeKind::Other, _] => None,
        [_, pattern] if pattern.accepts_untyped_literal() => Some(DataType::Utf8),
        _ => None,
    }
}

fn from_pattern_type(kinds: &[TimeKind], result: DataType) -> Option<DataType> {
    (kinds.len() == 2 && kinds.iter().all(|kind| kind.accepts_untyped_literal())).then_some(result)
}

fn to_char(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let texts = args.texts(1)?;
    match args.time_kind(0) {
        TimeKind::Integer | TimeKind::Number => {
            let (numbers, patterns) = (NumberValues::new(args, 0)?, CompiledPatterns::new(texts));
            args.collect_texts(|row, out| {
                let Some(pattern) = patterns.get(row, NumberPattern::parse)? else { return Ok(false) };
                numbers.write(row, &pattern, out)
            })
        }
        TimeKind::Interval => write_times(args, args.intervals(0)?, texts, write_time::write_interval),
        TimeKind::Time => write_times(args, args.times(0)?, texts, |value, nodes, out| {
            write_time::write_interval(interval::from_micros(value)?, nodes, out)
        }),
        kind => {
            // A date is formatted as midnight UTC.
            let is_zoned = kind != TimeKind::Timestamp;
            write_times(args, args.moments(0)?, texts, |value, nodes, out| {
                write_time::write_timestamp(value, is_zoned, nodes, out)
            })
        }
    }
}

/// Writes each value by the pattern of its row. The result for an empty pattern is NULL.
fn write_times<P: ArrowPrimitiveType>(
    args: &FunctionCall<'_>,
    values: TimeColumn<P>,
    patterns: TextColumn,
    write: impl Fn(P::Native, &[TimePatternNode], &mut String) -> Result<()>,
) -> Result<ArrayRef> {
    let patterns = CompiledPatterns::new(patterns);
    args.collect_texts(|row, out| match (values.get(row), patterns.get(row, compile_time_pattern)?) {
        (Some(value), Some(nodes)) if !nodes.is_empty() => write(value, &nodes, out).map(|()| true),
        _ => Ok(false),
    })
}

fn to_timestamp_type(kinds: &[TimeKind]) -> Option<DataType> {
    match kinds {
        [TimeKind::Integer | TimeKind::Number | TimeKind::Null | TimeKind::Text] => Some(timestamptz()),
        _ => from_pattern_type(kinds, timestamptz()),
    }
}

fn to_timestamp(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    /// Seconds from 1970 to 2000, from which PostgreSQL counts.
    const SECONDS_TO_2000: f64 = 946_684_800.0;
    if args.args.len() > 1 {
        let instant = read_times(args)?;
        let rounded = |(instant, digits)| calendar::checked_timestamp(round_moment(instant, digits)?);
        return args.collect_micros(|row| instant(row)?.map(rounded).transpose());
    }
    args.collect_micros(map(args.floats(0)?, |seconds| {
        let micros = ((seconds - SECONDS_TO_2000) * 1e6).round_ties_even();
        if micros.is_nan() || micros.abs() >= 9.2e18 {
            return Err(calendar::text_out_of_range("timestamp", &seconds.to_string()));
        }
        calendar::checked_timestamp((micros as i64).saturating_add(SECONDS_TO_2000 as i64 * 1_000_000))
    }))
}

/// Reads the text of each row by its pattern, as an instant and its digits after the point.
fn read_times(args: &FunctionCall<'_>) -> Result<impl Fn(usize) -> Result<Option<(i64, u32)>>> {
    let (texts, patterns) = (args.texts(0)?, CompiledPatterns::new(args.texts(1)?));
    Ok(move |row| match (texts.get(row), patterns.get(row, compile_time_pattern)?) {
        (Some(text), Some(nodes)) => read_time::read_time(text, &nodes).map(Some),
        _ => Ok(None),
    })
}

/// Returns a numeric with as many digits after the point as the pattern has.
fn number_type(kinds: &[TimeKind], values: &[Option<&ScalarValue>]) -> Result<Option<DataType>> {
    let digits = match values.get(1) {
        // Without values only the types are checked.
        None => 0,
        Some(Some(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)))) => {
            let pattern = NumberPattern::parse(text)?;
            pattern.after + pattern.shift
        }
        Some(Some(value)) if value.is_null() => 0,
        Some(_) => return plan_err!("the pattern of to_number() must be a constant"),
    };
    match i8::try_from(digits) {
        Ok(scale) if scale <= 30 => Ok(from_pattern_type(kinds, DataType::Decimal128(38, scale))),
        _ => plan_err!("to_number() reads up to 30 digits after the point"),
    }
}

fn to_number(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (texts, patterns) = (args.texts(0)?, CompiledPatterns::new(args.texts(1)?));
    let scale = if let DataType::Decimal128(_, scale) = args.returns { *scale } else { 0 };
    args.collect::<Decimal128Type>(|row| {
        let (Some(text), Some(pattern)) = (texts.get(row), patterns.get(row, NumberPattern::parse)?) else {
            return Ok(None);
        };
        if pattern.roman.is_some() || pattern.has_exponent {
            return exec_err!("\"RN\" and \"EEEE\" are not supported for input");
        }
        number_text::parse_decimal(&number_text::read_number(text, &pattern), &pattern, scale).map(Some)
    })
}

/// The expected texts are PostgreSQL's answers.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::input;

    fn number(value: i128, scale: i8, pattern: &str) -> String {
        let array = ScalarValue::Decimal128(Some(value), 38, scale);
        let args = [array, ScalarValue::from(pattern)].map(datafusion::logical_expr::ColumnarValue::from);
        let args = FunctionCall { args: &args, fields: &[], rows: 1, returns: &DataType::Utf8 };
        let written = to_char(&args).unwrap();
        arrow::array::AsArray::as_string::<i32>(&written).value(0).to_owned()
    }

    #[test]
    fn numbers_are_written() {
        for (value, scale, pattern, expected) in [
            (123_456, 3, "999.9", " 123.5"),
            (-12, 0, "S99", "-12"),
            (1_234_567_891, 3, "9,999,999.99", " 1,234,567.89"),
            (12, 0, "FM999", "12"),
            (5, 1, "0.00", " 0.50"),
            (12_345, 0, "999", " ###"),
            (485, 0, "RN", "        CDLXXXV"),
            (12, 0, "99th", " 12th"),
            (-55, 1, "99.9PR", " <5.5>"),
            (-55, 1, "99.9MI", " 5.5-"),
            (5, 0, "L9", "  5"),
            (4_859, 7, "9.99EEEE", " 4.86e-04"),
            (1_245, 2, "99V9", " 125"),
            (1_485, 1, "FM999.990", "148.500"),
            (1_485, 1, "FM999.999", "148.5"),
            (1, 1, "9.99", "  .10"),
            (0, 0, "999", "   0"),
            (-1, 1, "99.99", "  -.10"),
            (1_485, 0, "9G999D99", " 1,485.00"),
            (12, 0, "SG99", "+12"),
            (12, 0, "\"a\"99\"b\"", "a 12b"),
            (-7, 0, "PL9", " -7"),
            (7, 0, "9PL", " 7+"),
            (-7, 0, "9S", "7-"),
            (1, 0, "0009", " 0001"),
            (7, 1, "99", "  1"),
            (1, 1, "FM9.99", ".1"),
            (0, 0, "FM9.99", "0."),
            (0, 0, "FM99.90", ".00"),
            (10, 0, "FM999.", "10"),
        ] {
            assert_eq!(number(value, scale, pattern), expected, "{value} {pattern}");
        }
    }

    #[test]
    fn times_are_read() {
        for (text, pattern, expected) in [
            ("05 Dec 2013", "DD Mon YYYY", "2013-12-05"),
            ("20131205", "YYYYMMDD", "2013-12-05"),
            ("2013-339", "YYYY-DDD", "2013-12-05"),
            ("2013-W23-4", "IYYY-\"W\"IW-ID", "2013-06-06"),
            ("1/2/70", "MM/DD/YY", "1970-01-02"),
            ("1/2/69", "MM/DD/YY", "2069-01-02"),
            ("  2013   1  5", "YYYY MM DD", "2013-01-05"),
            ("2456294", "J", "2013-01-01"),
            ("xv 3 2013", "\"xv\" MM YYYY", "2013-03-01"),
            ("05/01/2013 07:08 PM", "DD/MM/YYYY HH12:MI PM", "2013-01-05 19:08"),
            ("2013-01-05 07:08:09.123456", "YYYY-MM-DD HH24:MI:SS.US", "2013-01-05 07:08:09.123456"),
            ("2013-01-05 12.5", "YYYY-MM-DD SS.MS", "2013-01-05 00:00:12.5"),
            ("2013-01-05 70", "YYYY-MM-DD SSSS", "2013-01-05 00:01:10"),
            ("2013-01-05 07:00 -05:00", "YYYY-MM-DD HH24:MI TZH:TZM", "2013-01-05 12:00"),
            ("2013/01/05", "YYYY-MM-DD", "2013-01-05"),
            ("20130105T0708", "YYYYMMDD\"T\"HH24MI", "2013-01-05 07:08"),
            ("1,582nd VIII 21", "Y,YYYth FMRM DD", "1582-08-21"),
            ("1,58212", "Y,YYYMM", "1582-12-01"),
        ] {
            let (read, _) = read_time::read_time(text, &pattern::parse_time_pattern(pattern)).unwrap();
            assert_eq!(read, input::parse_timestamp(expected).unwrap(), "{text} {pattern}");
        }
        for (text, pattern) in
            [("2013-13-01", "YYYY-MM-DD"), ("x", "YYYY"), ("13 PM", "HH PM"), ("UTC", "TZ"), ("1582", "Y,YYY")]
        {
            assert!(read_time::read_time(text, &pattern::parse_time_pattern(pattern)).is_err(), "{text} {pattern}");
        }
    }
}
