//! The values of a column of a text file while its rows are read.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder,
    StringBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, TimeUnit};

use crate::embedded::files::{
    TypeOrigin, parse_boolean, parse_date, parse_decimal, parse_float, parse_integer, parse_timestamp,
};

/// The values of a column, by its type.
pub(super) enum ColumnValues {
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
    pub(super) fn new(data_type: &DataType) -> Self {
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
    pub(super) fn append(&mut self, text: &str, origin: TypeOrigin) -> Option<()> {
        match self {
            Self::Text(values) => values.append_value(text),
            Self::Integer(values) => values.append_value(parse_integer(text, origin)?),
            Self::Float(values) => values.append_value(parse_float(text, origin)?),
            Self::Decimal(values, precision, scale) => {
                values.append_value(parse_decimal(text, *precision, *scale, origin)?);
            }
            Self::Boolean(values) => values.append_value(parse_boolean(text)?),
            Self::Date(values) => values.append_value(parse_date(text)?),
            Self::Timestamp(values, has_zone) => values.append_value(Self::microseconds(text, *has_zone, origin)?),
        }
        Some(())
    }

    /// The time that `text` means. Where times have no zone, a date is its midnight; and a time with an offset is that of
    /// UTC if the type is declared.
    fn microseconds(text: &str, has_zone: bool, origin: TypeOrigin) -> Option<i64> {
        const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
        match parse_timestamp(text) {
            Some(time) => {
                let fits = time.has_zone == has_zone || time.has_zone && origin == TypeOrigin::Declared;
                fits.then_some(time.microseconds)
            }
            None if has_zone => None,
            None => i64::from(parse_date(text)?).checked_mul(MICROSECONDS_PER_DAY),
        }
    }

    pub(super) fn append_null(&mut self) {
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
    pub(super) fn len(&self) -> usize {
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

    pub(super) fn finish(&mut self) -> ArrayRef {
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
