//! The values of a column of a text file or a sheet while its rows are read.

use std::sync::Arc;

use chrono::{Datelike, NaiveTime, Timelike};
use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder,
    StringBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use tidegate_log_formats::{EntryTimeFormat, WrittenTime};

use super::column_type::ColumnType;
use super::number_format::NumberFormat;
use super::text_value::{
    DAYS_TO_1970, MICROSECONDS_PER_SECOND, TextTime, TypeOrigin, parse_boolean, parse_date, parse_decimal, parse_float,
    parse_integer, parse_timestamp,
};

const NANOSECONDS_PER_MICROSECOND: u32 = 1_000;

/// How the texts of a column are written.
#[derive(Debug, Clone)]
pub(crate) struct TextReading {
    origin: TypeOrigin,
    /// The format of numbers, if it is not that of programs.
    numbers: Option<NumberFormat>,
    /// The declared form of times.
    form: Option<Arc<EntryTimeFormat>>,
}

impl TextReading {
    /// That of a column of the type `data_type`, which is `declared` or inferred.
    pub(crate) fn new(declared: Option<&ColumnType>, data_type: &DataType, numbers: Option<NumberFormat>) -> Self {
        Self {
            origin: if declared.is_some() { TypeOrigin::Declared } else { TypeOrigin::Inferred },
            numbers: declared.and_then(ColumnType::number_format).or(numbers).filter(|_| data_type.is_numeric()),
            form: declared.and_then(ColumnType::form).cloned(),
        }
    }
}

/// The values of a column, by its type.
pub(crate) enum ColumnValues {
    Text(StringBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Boolean(BooleanBuilder),
    Date(Date32Builder),
    /// With the type, and whether it has a zone.
    Timestamp(TimestampMicrosecondBuilder, bool),
}

impl ColumnValues {
    pub(crate) fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int64 => Self::Integer(Int64Builder::new()),
            DataType::Float64 => Self::Float(Float64Builder::new()),
            DataType::Decimal128(precision, scale) => {
                Self::Decimal(Decimal128Builder::new().with_data_type(data_type.clone()), *precision, *scale)
            }
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Date32 => Self::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Self::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(data_type.clone()), zone.is_some())
            }
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends what `text` means. Nothing if the column does not hold it.
    #[inline]
    pub(crate) fn append(&mut self, text: &str, reading: &TextReading) -> Option<()> {
        match reading.numbers {
            Some(format) => self.append_plain(&format.normalize(text)?, reading),
            None => self.append_plain(text, reading),
        }
    }

    /// As [`ColumnValues::append`], for a number in the notation of programs, whatever format texts have.
    #[inline]
    pub(crate) fn append_plain(&mut self, text: &str, TextReading { origin, form, .. }: &TextReading) -> Option<()> {
        match self {
            Self::Text(values) => values.append_value(text),
            Self::Integer(values) => values.append_value(parse_integer(text, *origin)?),
            Self::Float(values) => values.append_value(parse_float(text, *origin)?),
            Self::Decimal(values, precision, scale) => {
                values.append_value(parse_decimal(text, *precision, *scale, *origin)?);
            }
            Self::Boolean(values) => values.append_value(parse_boolean(text)?),
            Self::Date(values) => values.append_value(match form {
                Some(form) => parse_date_in(text, form)?,
                None => parse_date(text)?,
            }),
            Self::Timestamp(values, has_zone) => {
                let time = match form {
                    Some(form) => parse_timestamp_in(text, form),
                    None => parse_timestamp(text).or_else(|| Self::midnight(text)),
                };
                values.append_value(time.filter(|time| time.fits(*has_zone, *origin))?.microseconds);
            }
        }
        Some(())
    }

    /// A date is its midnight where times have no zone.
    fn midnight(text: &str) -> Option<TextTime> {
        const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
        let microseconds = i64::from(parse_date(text)?).checked_mul(MICROSECONDS_PER_DAY)?;
        Some(TextTime { microseconds, has_zone: false })
    }

    pub(crate) fn append_null(&mut self) {
        match self {
            Self::Text(values) => values.append_null(),
            Self::Integer(values) => values.append_null(),
            Self::Float(values) => values.append_null(),
            Self::Decimal(values, ..) => values.append_null(),
            Self::Boolean(values) => values.append_null(),
            Self::Date(values) => values.append_null(),
            Self::Timestamp(values, _) => values.append_null(),
        }
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Decimal(values, ..) => values.len(),
            Self::Boolean(values) => values.len(),
            Self::Date(values) => values.len(),
            Self::Timestamp(values, _) => values.len(),
        }
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(values.finish()),
            Self::Integer(values) => Arc::new(values.finish()),
            Self::Float(values) => Arc::new(values.finish()),
            Self::Decimal(values, ..) => Arc::new(values.finish()),
            Self::Boolean(values) => Arc::new(values.finish()),
            Self::Date(values) => Arc::new(values.finish()),
            Self::Timestamp(values, _) => Arc::new(values.finish()),
        }
    }
}

/// The days from 1970-01-01 to a date in a declared form, which has no time of day but midnight.
fn parse_date_in(text: &str, form: &EntryTimeFormat) -> Option<i32> {
    let local = form.read(text)?.local;
    (local.time() == NaiveTime::MIN).then(|| local.date().num_days_from_ce() - DAYS_TO_1970)
}

/// A time in a declared form. Nanoseconds would be lost.
fn parse_timestamp_in(text: &str, form: &EntryTimeFormat) -> Option<TextTime> {
    let WrittenTime { local, offset_seconds } = form.read(text)?;
    if local.nanosecond() % NANOSECONDS_PER_MICROSECOND != 0 {
        return None;
    }
    let offset = i64::from(offset_seconds.unwrap_or(0)) * MICROSECONDS_PER_SECOND;
    let microseconds = local.and_utc().timestamp_micros().checked_sub(offset)?;
    Some(TextTime { microseconds, has_zone: offset_seconds.is_some() })
}
