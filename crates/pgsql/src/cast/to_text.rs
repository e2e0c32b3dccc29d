//! PostgreSQL's output functions: values as text.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::Result;

use crate::array;
use crate::time::output;

/// Whether Arrow formats values of this type differently from PostgreSQL.
pub(super) fn is_formatted_here(from: &DataType) -> bool {
    from.is_floating()
        || from.is_temporal()
        || matches!(from, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
        || matches!(from, DataType::FixedSizeBinary(_) | DataType::Interval(_))
        || matches!(from, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

/// Formats each value as `value::text` does. NULL stays NULL.
///
/// # Errors
/// If the values have no text representation.
pub(super) fn format_values(values: &ArrayRef) -> Result<StringArray> {
    Ok(match values.data_type() {
        DataType::Float32 => format_each::<Float32Type>(values, |value, out| {
            write_float(&format!("{value:e}"), f64::from(value), 6, out);
        }),
        DataType::Float64 => format_each::<Float64Type>(values, |value, out| {
            write_float(&format!("{value:e}"), value, 15, out);
        }),
        DataType::Date32 => format_each::<Date32Type>(values, output::write_date),
        DataType::Date64 => return format_values(&cast(values, &DataType::Date32)?),
        DataType::Time32(_) | DataType::Time64(_) => {
            let values = cast(values, &DataType::Time64(TimeUnit::Microsecond))?;
            format_each::<Time64MicrosecondType>(&values, output::write_time)
        }
        DataType::Timestamp(_, zone) => {
            let write = if zone.is_some() { output::write_timestamptz } else { output::write_timestamp };
            let values = cast(values, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            format_each::<TimestampMicrosecondType>(&values, write)
        }
        DataType::Interval(_) => {
            let values = cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            format_each::<IntervalMonthDayNanoType>(&values, output::write_interval)
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let values = cast(values, &DataType::LargeBinary)?;
            values.as_binary::<i64>().iter().map(|value| value.map(hexadecimal)).collect()
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => array::format_arrays(values)?,
        _ => cast(values, &DataType::Utf8)?.as_string().clone(),
    })
}

fn format_each<T: ArrowPrimitiveType>(values: &ArrayRef, write: impl Fn(T::Native, &mut String)) -> StringArray {
    let values = values.as_primitive::<T>();
    let mut texts = StringBuilder::with_capacity(values.len(), values.len() * 16);
    let mut text = String::new();
    for value in values {
        text.clear();
        match value {
            Some(value) => {
                write(value, &mut text);
                texts.append_value(&text);
            }
            None => texts.append_null(),
        }
    }
    texts.finish()
}

/// Writes a floating-point number from its shortest representation (`-1.5e20`). It has an exponent from `10^digits` on
/// and below `0.0001`.
fn write_float(shortest: &str, value: f64, digits: i32, out: &mut String) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..digits).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a string never fails.
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
        return;
    }
    let (sign, unsigned) = mantissa.strip_prefix('-').map_or(("", mantissa), |unsigned| ("-", unsigned));
    let all = unsigned.replace('.', "");
    out.push_str(sign);
    match usize::try_from(exponent) {
        Ok(before) if before + 1 >= all.len() => {
            let _ = write!(out, "{all}{}", "0".repeat(before + 1 - all.len()));
        }
        Ok(before) => {
            let _ = write!(out, "{}.{}", &all[..=before], &all[before + 1..]);
        }
        Err(_) => {
            let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
            let _ = write!(out, "0.{}{all}", "0".repeat(zeros));
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("\\x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
