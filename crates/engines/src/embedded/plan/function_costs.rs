//! Estimates of the bytes of a function's result, and of its work in steps of about a nanosecond, from the sizes of
//! its arguments.
//!
//! A search for a pattern of `LIKE` or a regular expression reads the text once, but at each letter it may be in as
//! many states as the pattern has places. A repeated part counts once for each repetition: `(?:[ab]?){20000}` has
//! 40,000 places in twenty letters. And a pattern is compiled before the search.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMillisecondType,
};
use datafusion::common::ScalarValue;
use datafusion::common::cast::as_int64_array;
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{Ast, RepetitionKind, RepetitionRange};
use tidegate_query::array_bytes;

/// Number of bytes of a value of unknown size.
const VALUE_BYTES: f64 = 16.0;
const DAY_MILLISECONDS: f64 = 86_400e3;
/// Maximum number of bytes that one letter of a time format produces.
const FORMATTED_BYTES: f64 = 16.0;

/// `repeat(value, times)`. In `array_repeat`, the value is the first argument too.
pub(super) fn repeat_bytes(args: &ScalarFunctionArgs) -> Option<f64> {
    let times = integers(args, 1)?;
    let value = args.args.first()?;
    let all_rows = args.number_rows.max(1) as f64;
    let bytes = text_sizes(args, 0).unwrap_or_else(|| {
        ArgumentSizes::Constant(match value {
            ColumnarValue::Scalar(scalar) => scalar.size() as f64,
            ColumnarValue::Array(array) => array.get_array_memory_size() as f64 / all_rows,
        })
    });
    // Even an empty text in a list needs an offset.
    let repeated = |(row, times): (usize, Option<i64>)| times.unwrap_or(0).max(0) as f64 * bytes.at(row).max(4.0);
    Some(times.iter().enumerate().map(repeated).sum())
}

/// `lpad(text, length)`.
pub(super) fn pad_bytes(args: &ScalarFunctionArgs) -> Option<f64> {
    Some(integers(args, 1)?.iter().flatten().map(|length| length.max(0) as f64 * 4.0).sum())
}

/// `replace(text, from, to)`: at most, each character becomes the longest `to`.
pub(super) fn replace_bytes(args: &ScalarFunctionArgs) -> Option<f64> {
    let from = match args.args.get(1)? {
        ColumnarValue::Scalar(ScalarValue::Utf8(Some(from))) if args.args.len() == 3 => from.len().max(1),
        _ => 1,
    };
    let (text, to) = (text_sizes(args, 0)?, text_sizes(args, 2)?);
    let bytes = |row: usize| text.at(row).max(1.0) * (to.at(row) / from as f64).max(1.0);
    Some((0..row_count(args)).map(bytes).sum())
}

/// `concat(a, b, …)`.
pub(super) fn concat_bytes(args: &ScalarFunctionArgs) -> Option<f64> {
    Some(args.args.iter().map(|arg| argument_bytes(arg, args.number_rows)).sum())
}

/// `concat_ws(separator, a, b, …)`.
pub(super) fn concat_ws_bytes(args: &ScalarFunctionArgs) -> Option<f64> {
    let separators = argument_bytes(args.args.first()?, args.number_rows) * args.args.len() as f64;
    Some(separators + args.args.iter().skip(1).map(|arg| argument_bytes(arg, args.number_rows)).sum::<f64>())
}

/// `array_to_string(array, delimiter, null)`: the delimiter follows each element.
pub(super) fn array_to_string_bytes(args: &ScalarFunctionArgs) -> Option<f64> {
    let (elements, delimiter) = (list_sizes(args, 0)?, text_sizes(args, 1)?);
    let null = text_sizes(args, 2).unwrap_or(ArgumentSizes::Constant(0.0));
    Some((0..row_count(args)).map(|row| elements.at(row) * (delimiter.at(row) + null.at(row))).sum())
}

/// `to_char(time, format)`: two letters of the format may produce a whole date.
pub(super) fn to_char_bytes(args: &ScalarFunctionArgs) -> Option<f64> {
    let format = text_sizes(args, 1)?;
    Some((0..args.number_rows).map(|row| format.at(row) * FORMATTED_BYTES).sum())
}

/// Number of bytes of an argument; a constant counts once for each row.
pub(super) fn argument_bytes(arg: &ColumnarValue, rows: usize) -> f64 {
    match arg {
        ColumnarValue::Scalar(scalar) => (scalar.size() - size_of::<ScalarValue>()) as f64 * rows as f64,
        ColumnarValue::Array(array) => array_bytes(array) as f64,
    }
}

/// `range(stop)`, `range(start, stop)`, `range(start, stop, step)`, of integers or of times.
pub(super) fn range_bytes(args: &ScalarFunctionArgs) -> Option<f64> {
    if let [start, stop, step] = args.args.as_slice()
        && let (Some(starts), Some(stops), Some(steps)) =
            (times(start, row_count(args)), times(stop, row_count(args)), intervals(step, row_count(args)))
    {
        let elements = |((start, stop), step): ((&f64, &f64), &f64)| {
            if *step == 0.0 { 0.0 } else { ((stop - start) / step).max(0.0) }
        };
        return Some(starts.iter().zip(&stops).zip(&steps).map(elements).sum::<f64>() * VALUE_BYTES);
    }
    let (starts, stops) = match args.args.len() {
        1 => (None, integers(args, 0)?),
        _ => (Some(integers(args, 0)?), integers(args, 1)?),
    };
    let steps = if args.args.len() > 2 { Some(integers(args, 2)?) } else { None };
    let at = |values: &Option<Int64Array>, row: usize, default: i64| {
        values.as_ref().map_or(default, |values| if values.is_null(row) { default } else { values.value(row) })
    };
    let elements = |row: usize| {
        if stops.is_null(row) {
            return 0.0;
        }
        let span = stops.value(row) as f64 - at(&starts, row, 0) as f64;
        (span / at(&steps, row, 1) as f64).max(0.0)
    };
    Some((0..stops.len()).map(|row| elements(row) * VALUE_BYTES).sum())
}

/// Times in milliseconds; null as 0.
fn times(arg: &ColumnarValue, rows: usize) -> Option<Vec<f64>> {
    let array = arg.to_array(rows).ok()?;
    if !matches!(array.data_type(), DataType::Date32 | DataType::Timestamp(..)) {
        return None;
    }
    let times = cast(&array, &DataType::Timestamp(TimeUnit::Millisecond, None)).ok()?;
    let times = times.as_primitive::<TimestampMillisecondType>().iter();
    Some(times.map(|time| time.unwrap_or(0) as f64).collect())
}

/// Intervals in milliseconds, with months of minimum length; null as 0.
fn intervals(arg: &ColumnarValue, rows: usize) -> Option<Vec<f64>> {
    let array = arg.to_array(rows).ok()?;
    let array = cast(&array, &DataType::Interval(IntervalUnit::MonthDayNano)).ok()?;
    let length = |interval: Option<IntervalMonthDayNano>| {
        interval.map_or(0.0, |interval| {
            let days = f64::from(interval.months) * 28.0 + f64::from(interval.days);
            days * DAY_MILLISECONDS + interval.nanoseconds as f64 / 1e6
        })
    };
    Some(array.as_primitive::<IntervalMonthDayNanoType>().iter().map(length).collect())
}

fn integers(args: &ScalarFunctionArgs, position: usize) -> Option<Int64Array> {
    let array = args.args.get(position)?.to_array(row_count(args)).ok()?;
    let array = array.data_type().is_integer().then(|| cast(&array, &DataType::Int64).ok())??;
    as_int64_array(&array).ok().cloned()
}

/// Number of bytes that one step compares.
const BYTES_COMPARED: f64 = 16.0;
/// Steps to compare two elements that differ.
const ELEMENT_STEPS: f64 = 8.0;

fn product_steps(args: &ScalarFunctionArgs, left: &ArgumentSizes, right: &ArgumentSizes, each: f64) -> Vec<f64> {
    (0..row_count(args)).map(|row| left.at(row) * right.at(row) * each).collect()
}

pub(super) fn text_product_steps(args: &ScalarFunctionArgs, each: f64) -> Option<Vec<f64>> {
    Some(product_steps(args, &text_sizes(args, 0)?, &text_sizes(args, 1)?, each))
}

/// `strpos(text, part)`: compares the part with the text at each position, unless only the part is constant.
pub(super) fn strpos_steps(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    let [text, part] = args.args.as_slice() else { return None };
    if is_constant(part) && !is_constant(text) {
        return None;
    }
    text_product_steps(args, 1.0 / BYTES_COMPARED)
}

/// `array_has_all(array, elements)`: each element of one array is compared with each of the other.
pub(super) fn array_has_all_steps(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    let (elements, argument_sizes) = (list_sizes(args, 0)?, list_sizes(args, 1)?);
    let (longest, longest_expected) = (longest_text(args.args.first()?)?, longest_text(args.args.get(1)?)?);
    // Texts of different lengths differ without further comparison.
    let each = ELEMENT_STEPS + longest.min(longest_expected) / BYTES_COMPARED;
    Some(product_steps(args, &elements, &argument_sizes, each))
}

/// `array_has_any(left, right)`: as above, unless one of them is constant.
pub(super) fn array_has_any_steps(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    if args.args.iter().any(is_constant) {
        return None;
    }
    array_has_all_steps(args)
}

fn longest_text(arg: &ColumnarValue) -> Option<f64> {
    let array = arg.to_array(1).ok()?;
    let values: &ArrayRef = match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().values(),
        DataType::LargeList(_) => array.as_list::<i64>().values(),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().values(),
        _ => return Some(0.0),
    };
    if !values.data_type().is_string() {
        return Some(0.0);
    }
    value_lengths(values)?.into_iter().reduce(f64::max).or(Some(0.0))
}

/// Steps for compiling one place of a pattern.
const COMPILE_STEPS: f64 = 1e3;
/// Places of the largest character class.
const CLASS_PLACES: f64 = 600.0;
/// Places of a wildcard: `%`, `_` and `.`.
const WILDCARD_PLACES: f64 = 20.0;
/// Bytes of a letter. A search may be within a character class at each of them.
const LETTER_BYTES: f64 = 4.0;
/// An upper limit of costs that is still safe for arithmetic.
const COST_MAX: f64 = 1e100;
const PATTERN_BYTES_MAX: usize = 256 << 10;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PatternCost {
    /// Number of places to compile.
    places: f64,
    /// Number of places that a search may be in at the same time.
    at_once: f64,
}

impl PatternCost {
    fn from_like(pattern: &str) -> Self {
        let inner = pattern.trim_start_matches('%').trim_end_matches('%');
        if !inner.contains(['%', '_', '\\']) {
            // Equivalent to a search for a text.
            return Self { places: 1.0, at_once: 1.0 };
        }
        let wildcards = pattern.matches(['%', '_']).count() as f64;
        Self { places: pattern.len() as f64 + wildcards * WILDCARD_PLACES, at_once: pattern.len() as f64 }
    }

    /// The maximum cost, whatever the flags: with `x`, white space and comments are not part of the pattern. An invalid
    /// pattern costs nothing, since compiling it fails.
    fn from_regex(pattern: &str) -> Self {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Self { places: COST_MAX, at_once: COST_MAX };
        }
        let read = |has_comments: bool| {
            let parser = ParserBuilder::new().ignore_whitespace(has_comments).build().parse(pattern);
            parser.map_or_else(|_| Self::default(), |parsed| Self::from_ast(&parsed, pattern))
        };
        read(false).or(read(true))
    }

    fn from_ast(part: &Ast, pattern: &str) -> Self {
        let one = Self { places: 1.0, at_once: 1.0 };
        match part {
            Ast::Empty(_) | Ast::Flags(_) | Ast::Literal(_) | Ast::Assertion(_) => one,
            Ast::Dot(_) => Self { places: WILDCARD_PLACES, at_once: LETTER_BYTES },
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => Self { places: CLASS_PLACES, at_once: LETTER_BYTES },
            Ast::ClassBracketed(class) => {
                let written = &pattern[class.span.start.offset..class.span.end.offset];
                let is_class = |escape: &str| escape.starts_with(|letter: char| letter.is_ascii_alphabetic());
                let names_others = written.contains("[:") || written.split('\\').skip(1).any(is_class);
                let own = WILDCARD_PLACES + written.len() as f64 * LETTER_BYTES;
                let positions = if names_others { CLASS_PLACES } else { own.min(CLASS_PLACES) };
                Self { places: positions, at_once: LETTER_BYTES }
            }
            Ast::Repetition(repetition) => {
                let times = match &repetition.op.kind {
                    RepetitionKind::ZeroOrOne => 1,
                    RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => 2,
                    RepetitionKind::Range(RepetitionRange::Exactly(times) | RepetitionRange::Bounded(_, times)) => {
                        *times
                    }
                    RepetitionKind::Range(RepetitionRange::AtLeast(times)) => times.saturating_add(1),
                };
                one.and(Self::from_ast(&repetition.ast, pattern).times(f64::from(times.max(1))))
            }
            Ast::Group(group) => one.and(Self::from_ast(&group.ast, pattern)),
            Ast::Alternation(alternation) => Self::from_parts(&alternation.asts, pattern),
            Ast::Concat(concat) => Self::from_parts(&concat.asts, pattern),
        }
    }

    fn from_parts(parts: &[Ast], pattern: &str) -> Self {
        parts.iter().fold(Self::default(), |sum, part| sum.and(Self::from_ast(part, pattern)))
    }

    fn or(self, other: Self) -> Self {
        Self { places: self.places.max(other.places), at_once: self.at_once.max(other.at_once) }
    }

    fn and(self, other: Self) -> Self {
        Self { places: self.places + other.places, at_once: self.at_once + other.at_once }
    }

    fn times(self, times: f64) -> Self {
        Self { places: (self.places * times).min(COST_MAX), at_once: (self.at_once * times).min(COST_MAX) }
    }

    /// Whether it needs no limit: the time is proportional to the length of the text.
    fn is_small(self) -> bool {
        self.places <= 1_000.0 && self.at_once <= 100.0
    }

    fn steps(self, text_bytes: f64) -> f64 {
        self.places * COMPILE_STEPS + self.at_once * text_bytes
    }
}

/// Whether `expr` is `LIKE` or `~` with a pattern that is not small.
pub(super) fn has_costly_pattern(expr: &Expr) -> bool {
    let (pattern, cost): (&Expr, fn(&str) -> PatternCost) = match expr {
        Expr::Like(like) => (&like.pattern, PatternCost::from_like),
        Expr::BinaryExpr(BinaryExpr { op: Operator::RegexMatch, right, .. }) => (right, PatternCost::from_regex),
        _ => return false,
    };
    let Expr::Literal(value, _) = pattern else { return true };
    value.try_as_str().flatten().is_some_and(|pattern| !cost(pattern).is_small())
}

pub(super) fn regex_steps(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    let (text, pattern) = (args.args.first()?, args.args.get(1)?);
    let lengths = text_sizes_of_argument(text)?;
    if let ColumnarValue::Scalar(scalar) = pattern {
        let cost = scalar.try_as_str()?.map_or_else(PatternCost::default, PatternCost::from_regex);
        let compiled = cost.places * COMPILE_STEPS;
        let mut steps: Vec<f64> = (0..row_count(args)).map(|row| cost.steps(lengths.at(row)) - compiled).collect();
        // The pattern is compiled once, for the first row.
        *steps.first_mut()? += compiled;
        return Some(steps);
    }
    let patterns: ArrayRef = cast(&pattern.to_array(row_count(args)).ok()?, &DataType::Utf8).ok()?;
    let patterns = patterns.as_string::<i32>();
    let mut last = ("", PatternCost::default());
    let mut step = |row: usize| {
        if patterns.is_null(row) {
            return 0.0;
        }
        if patterns.value(row) != last.0 {
            last = (patterns.value(row), PatternCost::from_regex(patterns.value(row)));
        }
        last.1.steps(lengths.at(row))
    };
    Some((0..patterns.len()).map(&mut step).collect())
}

/// The number of rows to measure: one if all arguments are constant.
pub(super) fn row_count(args: &ScalarFunctionArgs) -> usize {
    if args.args.iter().all(is_constant) { 1 } else { args.number_rows }
}

fn is_constant(arg: &ColumnarValue) -> bool {
    matches!(arg, ColumnarValue::Scalar(_))
}

/// The sizes of one argument, one for each row.
pub(super) enum ArgumentSizes {
    Constant(f64),
    Each(Vec<f64>),
}

impl ArgumentSizes {
    pub(super) fn at(&self, row: usize) -> f64 {
        match self {
            Self::Constant(size) => *size,
            Self::Each(sizes) => sizes.get(row).copied().unwrap_or(0.0),
        }
    }

    fn measure(arg: &ColumnarValue, sizes: fn(&ArrayRef) -> Option<Vec<f64>>) -> Option<Self> {
        match arg {
            ColumnarValue::Scalar(scalar) => Some(Self::Constant(*sizes(&scalar.to_array().ok()?)?.first()?)),
            ColumnarValue::Array(array) => Some(Self::Each(sizes(array)?)),
        }
    }
}

pub(super) fn text_sizes(args: &ScalarFunctionArgs, position: usize) -> Option<ArgumentSizes> {
    text_sizes_of_argument(args.args.get(position)?)
}

fn text_sizes_of_argument(arg: &ColumnarValue) -> Option<ArgumentSizes> {
    ArgumentSizes::measure(arg, text_lengths)
}

fn list_sizes(args: &ScalarFunctionArgs, position: usize) -> Option<ArgumentSizes> {
    ArgumentSizes::measure(args.args.get(position)?, list_lengths)
}

fn text_lengths(array: &ArrayRef) -> Option<Vec<f64>> {
    (array.data_type().is_string() || array.data_type().is_null()).then(|| value_lengths(array))?
}

fn list_lengths(array: &ArrayRef) -> Option<Vec<f64>> {
    (array.data_type().is_nested() || array.data_type().is_null()).then(|| value_lengths(array))?
}

/// The number of bytes or elements of each value; 0 for null. `None` for values without a length.
fn value_lengths(array: &ArrayRef) -> Option<Vec<f64>> {
    if array.data_type().is_null() {
        return Some(vec![0.0; array.len()]);
    }
    let lengths = cast(&length(array.as_ref()).ok()?, &DataType::Float64).ok()?;
    Some(lengths.as_primitive::<Float64Type>().iter().map(Option::unwrap_or_default).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_multiplies_pattern_cost() {
        let cost = PatternCost::from_regex;
        assert!(cost("^error: [a-z]+ (timeout|refused)").is_small());
        assert!(!cost(r"\w+@\w+\.(com|org)").is_small());
        assert!(cost("(?:[ab]?){20000}[cd]").at_once > 20_000.0);
        assert!(cost("((a{100}){100}){100}").places >= 1e6);
        assert!(cost("((a{1000}){1000}){1000}").steps(1.0) > 1e9);
        assert!(cost(r"(\w{1000}) {1000}").places > 1e8, "with the flag x it is the group that is repeated");
        assert!(cost("(?:[ab]?){20000}#(").at_once > 20_000.0);
        assert!(cost(&r"\w".repeat(100_000)).places >= 6e7);
        assert_eq!(cost(&"a".repeat(PATTERN_BYTES_MAX + 1)).places, COST_MAX);
        assert!(cost("^https://[a-z.]+/").is_small());
        assert_eq!(cost("("), PatternCost::default());
        let like = PatternCost::from_like;
        assert!(like("%flight_number%").is_small());
        assert!(like(&format!("{}%", "https://example.org/".repeat(100))).is_small());
        assert!(!like(&"%a".repeat(100)).is_small());
    }
}
