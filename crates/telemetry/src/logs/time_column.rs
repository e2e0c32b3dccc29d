//! The time of each row of a batch in nanoseconds UTC, whatever the type of its column.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowTimestampType, DataType, Date32Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};

use super::time::{NANOS_PER_DAY, TimeInput, parse_time};
use super::value::borrowed_text;

/// The times of `array` in nanoseconds UTC, null where a row has none. Times before 1677 and after 2262 become the first
/// and the last time that nanoseconds can express, so that their order stays right. `None` if the type has no times.
pub fn time_column(array: &dyn Array) -> Option<Int64Array> {
    Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let times = array.as_primitive::<TimestampNanosecondType>();
            Int64Array::new(times.values().clone(), times.nulls().cloned())
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => scaled::<TimestampMicrosecondType>(array, 1_000),
        DataType::Timestamp(TimeUnit::Millisecond, _) => scaled::<TimestampMillisecondType>(array, 1_000_000),
        DataType::Timestamp(TimeUnit::Second, _) => scaled::<TimestampSecondType>(array, 1_000_000_000),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            days.unary(|days| i64::from(days).saturating_mul(NANOS_PER_DAY))
        }
        DataType::Date64 => {
            let milliseconds = cast(array, &DataType::Int64).ok()?;
            milliseconds
                .as_primitive::<arrow::datatypes::Int64Type>()
                .unary(|value: i64| value.saturating_mul(1_000_000))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => (0..array.len())
            .map(|row| borrowed_text(array, row).filter(|text| is_absolute(text)))
            .map(|text| parse_time(TimeInput::Text(text?), 0).ok())
            .collect(),
        DataType::Dictionary(_, value) => time_column(cast(array, value).ok()?.as_ref())?,
        kind if kind.is_integer() => {
            let integers = cast(array, &DataType::Int64).ok()?;
            let integers = integers.as_primitive::<arrow::datatypes::Int64Type>();
            let time = |number: Option<i64>| number.and_then(|number| parse_time(TimeInput::Integer(number), 0).ok());
            integers.iter().map(time).collect()
        }
        kind if kind.is_floating() => {
            let floats = cast(array, &DataType::Float64).ok()?;
            let floats = floats.as_primitive::<arrow::datatypes::Float64Type>();
            let time = |number: Option<f64>| number.and_then(|number| parse_time(TimeInput::Decimal(number), 0).ok());
            floats.iter().map(time).collect()
        }
        _ => return None,
    })
}

/// Whether `text` may be a date or an epoch number. Other forms, such as `now`, are no times of entries.
fn is_absolute(text: &str) -> bool {
    let text = text.trim();
    text.as_bytes().get(4) == Some(&b'-') || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn scaled<T: ArrowTimestampType + ArrowPrimitiveType<Native = i64>>(array: &dyn Array, nanos: i64) -> Int64Array {
    array.as_primitive::<T>().unary(|value: i64| value.saturating_mul(nanos))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, Date32Array, Float64Array, StringViewArray, TimestampSecondArray, UInt32Array,
    };

    use super::*;

    #[test]
    fn every_type_of_time_becomes_nanoseconds() {
        let second = 1_000_000_000;
        let columns: Vec<(ArrayRef, i64)> = vec![
            (Arc::new(TimestampSecondArray::from(vec![5]).with_timezone("Europe/Berlin")), 5 * second),
            (Arc::new(Date32Array::from(vec![1])), NANOS_PER_DAY),
            (Arc::new(UInt32Array::from(vec![5])), 5 * second),
            (Arc::new(Float64Array::from(vec![5.5])), 5_500_000_000),
            (Arc::new(StringViewArray::from(vec!["1970-01-01 00:00:05"])), 5 * second),
            (Arc::new(TimestampSecondArray::from(vec![i64::MAX])), i64::MAX),
        ];
        for (array, expected) in columns {
            assert_eq!(time_column(array.as_ref()).unwrap().value(0), expected, "{:?}", array.data_type());
        }
        let relative = StringViewArray::from(vec!["now", "-15m", "12:30:00", "-5", "-"]);
        assert_eq!(time_column(&relative).unwrap().null_count(), 5);
        assert!(time_column(&BooleanArray::from(vec![true])).is_none());
    }
}
