//! Functions whose result may have many more bytes than their arguments.

use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMillisecondType,
};
use datafusion::common::ScalarValue;
use datafusion::common::cast::as_int64_array;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use tidegate_query::array_bytes;

use super::argument_sizes::{ArgumentSizes, list_sizes, row_count, text_sizes};

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
