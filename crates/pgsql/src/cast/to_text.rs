//! PostgreSQL's output functions: values as text.

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::Result;

use crate::array;
use crate::number::write_float;
use crate::text::byte_format;
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
            values.as_binary::<i64>().iter().map(|value| value.map(byte_format::format)).collect()
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
