//! Random rows of a log, and batches of them with random types of columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray, TimestampSecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use proptest::prelude::*;

/// One row; times are in seconds.
#[derive(Debug, Clone)]
pub(crate) struct LogRow {
    pub(crate) time: Option<i64>,
    pub(crate) message: Option<String>,
    pub(crate) level: Option<String>,
    pub(crate) code: Option<i64>,
    pub(crate) ratio: Option<f64>,
    pub(crate) flag: Option<bool>,
    pub(crate) price: Option<i128>,
    pub(crate) seen: Option<i64>,
}

/// The fields that facets and selections may have; the last one does not exist.
pub(crate) const FIELDS: [&str; 8] = ["message", "level", "code", "ratio", "flag", "price", "seen", "absent"];

pub(crate) fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[aAkKsS -]{0,8}",
        2 => "[abkséÉßſK\u{212a}]{0,6}",
        1 => Just("-".to_owned()),
        1 => Just(String::new()),
    ]
}

pub(crate) fn rows(max: usize) -> impl Strategy<Value = Vec<LogRow>> {
    let level = prop::sample::select(vec!["info", "warn", "error", "-", ""]).prop_map(str::to_owned);
    let ratio = prop::sample::select(vec![0.0, -0.0, 0.5, 1e300, f64::NAN, f64::INFINITY, 0.1]);
    let row = (
        prop::option::weighted(0.9, 0i64..40),
        prop::option::weighted(0.9, texts()),
        prop::option::weighted(0.8, level),
        prop::option::weighted(0.8, -3i64..4),
        prop::option::weighted(0.8, ratio),
        prop::option::weighted(0.8, any::<bool>()),
        prop::option::weighted(0.8, -3i128..300),
        prop::option::weighted(0.8, 0i64..4),
    );
    let row = row.prop_map(|(time, message, level, code, ratio, flag, price, seen)| LogRow {
        time,
        message,
        level,
        code,
        ratio,
        flag,
        price,
        seen,
    });
    prop::collection::vec(row, 0..max)
}

/// The types of the columns that have several.
#[derive(Debug, Clone)]
pub(crate) struct ColumnTypes {
    pub(crate) time: DataType,
    pub(crate) text: DataType,
    pub(crate) code: DataType,
    pub(crate) seen: DataType,
}

pub(crate) fn column_types() -> impl Strategy<Value = ColumnTypes> {
    let zone = || prop::sample::select(vec![None, Some("UTC"), Some("+02:00"), Some("America/New_York")]);
    let unit = || {
        prop::sample::select(vec![TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond])
    };
    let timestamp = || (unit(), zone()).prop_map(|(unit, zone)| DataType::Timestamp(unit, zone.map(Into::into)));
    let dictionary = |key, value| DataType::Dictionary(Box::new(key), Box::new(value));
    let text = prop::sample::select(vec![
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        dictionary(DataType::Int16, DataType::Utf8),
        dictionary(DataType::UInt32, DataType::LargeUtf8),
    ]);
    let integers =
        [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64, DataType::Float32, DataType::Float64];
    let code = prop::sample::select(integers.to_vec());
    let time = prop_oneof![4 => timestamp(), 1 => Just(DataType::Int64)];
    (time, text, code, timestamp()).prop_map(|(time, text, code, seen)| ColumnTypes { time, text, code, seen })
}

/// The rows as one batch.
pub(crate) fn batch(rows: &[LogRow], types: &ColumnTypes) -> RecordBatch {
    let texts = |text: fn(&LogRow) -> Option<&str>| -> ArrayRef {
        cast(&rows.iter().map(text).collect::<StringArray>(), &types.text).unwrap()
    };
    let numbers = |number: fn(&LogRow) -> Option<i64>| rows.iter().map(number).collect::<Int64Array>();
    let seconds = |number: fn(&LogRow) -> Option<i64>, kind: &DataType| -> ArrayRef {
        let seconds: TimestampSecondArray = rows.iter().map(number).collect();
        match kind {
            // The zone of a cast array is another view of the same moment.
            DataType::Timestamp(unit, zone) => {
                let utc = seconds.with_timezone("UTC");
                let utc = cast(&utc, &DataType::Timestamp(*unit, Some("UTC".into()))).unwrap();
                match zone {
                    Some(_) => cast(&utc, kind).unwrap(),
                    None => cast(&cast(&utc, &DataType::Int64).unwrap(), kind).unwrap(),
                }
            }
            _ => Arc::new(numbers(number)),
        }
    };
    let prices: Decimal128Array = rows.iter().map(|row| row.price).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", seconds(|row| row.time, &types.time)),
        ("message", texts(|row| row.message.as_deref())),
        ("level", texts(|row| row.level.as_deref())),
        ("code", cast(&numbers(|row| row.code), &types.code).unwrap()),
        ("ratio", Arc::new(rows.iter().map(|row| row.ratio).collect::<Float64Array>())),
        ("flag", Arc::new(rows.iter().map(|row| row.flag).collect::<BooleanArray>())),
        ("price", Arc::new(prices.with_precision_and_scale(10, 2).unwrap())),
        ("seen", seconds(|row| row.seen, &types.seen)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// The parts of a batch at random cuts, each with the index of its first row, in random order.
pub(crate) fn divide(
    batch: &RecordBatch,
    cuts: &[prop::sample::Index],
    is_reversed: bool,
) -> Vec<(usize, RecordBatch)> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(batch.num_rows() + 1)).collect();
    ends.push(batch.num_rows());
    ends.sort_unstable();
    let mut start = 0;
    let mut parts: Vec<(usize, RecordBatch)> = Vec::new();
    for end in ends {
        parts.push((start, batch.slice(start, end - start)));
        start = end;
    }
    if is_reversed {
        parts.reverse();
    }
    parts
}
