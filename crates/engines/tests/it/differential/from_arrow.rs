//! The engine's values from Arrow, in the form of PostgreSQL's.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Field,
    Float32Type, Float64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
    SchemaRef, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};

use super::answer::{Answer, Column, TypeClass, Value};
use super::from_text::{DOUBLE_DIFFERENCE, REAL_DIFFERENCE};
use super::number::Decimal;

const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// The answer in `batches`.
pub(crate) fn answer_of(schema: &SchemaRef, batches: &[RecordBatch]) -> Answer {
    let column = |field: &Field| Column { name: field.name().clone(), class: class_of(field.data_type()) };
    let columns = schema.fields().iter().map(|field| column(field)).collect();
    let mut rows = Vec::new();
    for batch in batches {
        let values: Vec<Vec<Value>> = batch.columns().iter().map(values_of).collect();
        rows.extend((0..batch.num_rows()).map(|row| values.iter().map(|column| column[row].clone()).collect()));
    }
    Answer { columns, rows }
}

fn class_of(data_type: &DataType) -> TypeClass {
    match data_type {
        DataType::Null => TypeClass::Nothing,
        DataType::Boolean => TypeClass::Boolean,
        data_type if data_type.is_numeric() => TypeClass::Number,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => TypeClass::Text,
        DataType::Date32 | DataType::Date64 => TypeClass::Date,
        DataType::Time32(_) | DataType::Time64(_) => TypeClass::Time,
        DataType::Timestamp(_, None) => TypeClass::Timestamp,
        DataType::Timestamp(_, Some(_)) => TypeClass::Instant,
        DataType::Interval(_) | DataType::Duration(_) => TypeClass::Interval,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            TypeClass::Bytes
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => TypeClass::Array(Box::new(class_of(field.data_type()))),
        DataType::Dictionary(_, values) => class_of(values),
        other => TypeClass::Other(other.to_string()),
    }
}

/// The values of a column.
fn values_of(column: &ArrayRef) -> Vec<Value> {
    let is_null = column.logical_nulls();
    let is_null = |row: usize| is_null.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let value = reader_of(column);
    (0..column.len()).map(|row| if is_null(row) { Value::Null } else { value(row) }).collect()
}

type Reader = Box<dyn Fn(usize) -> Value>;

/// `column` as another type, of which there is one for each class.
fn as_type(column: &ArrayRef, data_type: &DataType) -> ArrayRef {
    cast(column, data_type).unwrap_or_else(|error| panic!("{}: {error}", column.data_type()))
}

fn reader_of(column: &ArrayRef) -> Reader {
    match column.data_type() {
        DataType::Null => Box::new(|_| Value::Null),
        DataType::Boolean => {
            let values = column.as_boolean().clone();
            Box::new(move |row| plain(if values.value(row) { "t" } else { "f" }))
        }
        data_type if data_type.is_numeric() => number_reader(column),
        DataType::Dictionary(_, values) => reader_of(&as_type(column, values)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let values = as_type(column, &DataType::LargeUtf8).as_string::<i64>().clone();
            Box::new(move |row| plain(values.value(row)))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let values = as_type(column, &DataType::LargeBinary).as_binary::<i64>().clone();
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            Box::new(move |row| plain(&format!("\\x{}", hex(values.value(row)))))
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => {
            let values = as_type(column, &DataType::LargeList(field.clone())).as_list::<i64>().clone();
            Box::new(move |row| Value::Array(values_of(&values.value(row))))
        }
        data_type if data_type.is_temporal() || matches!(data_type, DataType::Interval(_)) => time_reader(column),
        _ => {
            let options = arrow::util::display::FormatOptions::default().with_null("NULL");
            let column = column.clone();
            Box::new(move |row| {
                let array_formatter = arrow::util::display::ArrayFormatter::try_new(&column, &options).unwrap();
                plain(&array_formatter.value(row).to_string())
            })
        }
    }
}

fn number_reader(column: &ArrayRef) -> Reader {
    let exact = |text: String| Value::Exact(Decimal::parse(&text).unwrap_or_else(|| panic!("{text:?} is no number")));
    match column.data_type() {
        DataType::Float16 | DataType::Float32 => {
            let values = as_type(column, &DataType::Float32).as_primitive::<Float32Type>().clone();
            // The shortest text of the number, not the double that is nearest to it.
            Box::new(move |row| Value::Float(values.value(row).to_string().parse().unwrap(), REAL_DIFFERENCE))
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().clone();
            Box::new(move |row| Value::Float(values.value(row), DOUBLE_DIFFERENCE))
        }
        DataType::Decimal32(..) => {
            let values = column.as_primitive::<Decimal32Type>().clone();
            Box::new(move |row| exact(values.value_as_string(row)))
        }
        DataType::Decimal64(..) => {
            let values = column.as_primitive::<Decimal64Type>().clone();
            Box::new(move |row| exact(values.value_as_string(row)))
        }
        DataType::Decimal128(..) => {
            let values = column.as_primitive::<Decimal128Type>().clone();
            Box::new(move |row| exact(values.value_as_string(row)))
        }
        DataType::Decimal256(..) => {
            let values = column.as_primitive::<Decimal256Type>().clone();
            Box::new(move |row| exact(values.value_as_string(row)))
        }
        _ => {
            let values = as_type(column, &DataType::LargeUtf8).as_string::<i64>().clone();
            Box::new(move |row| exact(values.value(row).to_owned()))
        }
    }
}

fn time_reader(column: &ArrayRef) -> Reader {
    match column.data_type() {
        DataType::Date32 | DataType::Date64 => {
            let values = as_type(column, &DataType::Date32).as_primitive::<Date32Type>().clone();
            Box::new(move |row| plain(&timestamp(i64::from(values.value(row)), None, "")))
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let values = as_type(column, &DataType::Time64(TimeUnit::Microsecond));
            let values = values.as_primitive::<Time64MicrosecondType>().clone();
            Box::new(move |row| plain(&time(values.value(row))))
        }
        DataType::Timestamp(_, zone) => {
            let suffix = if zone.is_some() { "+00" } else { "" };
            let values = as_type(column, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
            let values = values.as_primitive::<TimestampMicrosecondType>().clone();
            Box::new(move |row| {
                let value = values.value(row);
                let days = value.div_euclid(DAY_MICROSECONDS);
                plain(&timestamp(days, Some(value.rem_euclid(DAY_MICROSECONDS)), suffix))
            })
        }
        DataType::Duration(_) => {
            let values = as_type(column, &DataType::Duration(TimeUnit::Microsecond));
            let values = values.as_primitive::<DurationMicrosecondType>().clone();
            Box::new(move |row| Value::Interval(0, 0, i128::from(values.value(row))))
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            let values = column.as_primitive::<IntervalYearMonthType>().clone();
            Box::new(move |row| Value::Interval(i64::from(values.value(row)), 0, 0))
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let values = column.as_primitive::<IntervalDayTimeType>().clone();
            Box::new(move |row| {
                let value = values.value(row);
                Value::Interval(0, i64::from(value.days), i128::from(value.milliseconds) * 1_000)
            })
        }
        _ => {
            let values = column.as_primitive::<IntervalMonthDayNanoType>().clone();
            Box::new(move |row| {
                let value = values.value(row);
                let microseconds = i128::from(value.nanoseconds.div_euclid(1_000));
                Value::Interval(i64::from(value.months), i64::from(value.days), microseconds)
            })
        }
    }
}

fn plain(text: &str) -> Value {
    Value::Plain(text.to_owned())
}

/// `04:05:06.7`
fn time(microseconds: i64) -> String {
    let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match fraction {
        0 => text,
        fraction => format!("{text}.{fraction:06}").trim_end_matches('0').to_owned(),
    }
}

/// `2023-05-06 04:05:06+00`, with ` BC` where it is before our era; days count from 1970.
fn timestamp(days: i64, microseconds: Option<i64>, suffix: &str) -> String {
    let (year, month, day) = civil(days);
    let (visible, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    let time = microseconds.map(|microseconds| format!(" {}", time(microseconds))).unwrap_or_default();
    format!("{visible:04}-{month:02}-{day:02}{time}{suffix}{era}")
}

/// Year, month and day: Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[test]
fn times_are_written_as_postgresql_writes_them() {
    assert_eq!(timestamp(0, Some(500_000), "+00"), "1970-01-01 00:00:00.5+00");
    assert_eq!(timestamp(-719_162, None, ""), "0001-01-01");
    assert_eq!(timestamp(-719_163, Some(0), ""), "0001-12-31 00:00:00 BC");
    assert_eq!(timestamp(19_782, None, ""), "2024-02-29");
}
