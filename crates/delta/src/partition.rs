//! Partition columns: their values, as text in the log and as names of folders.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Date32Array, Float32Array, Float64Array, Int64Array, PrimitiveArray,
    StringArray, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType};
use tidegate_query::date_from_days;

use crate::DeltaError;
use crate::calendar::{
    DAY_MICROSECONDS, format_date, format_decimal, format_timestamp, parse_date, parse_decimal, parse_timestamp,
};
use crate::types::{convert, stored_type};

/// The folder of null, as other writers name it.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";
/// The longest name of a folder that file systems allow.
const FOLDER_NAME_BYTES_MAX: usize = 255;

/// What the files of a table are separated by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionBy {
    /// The values of a column.
    Column(String),
    /// The day in UTC of a time or date. Adds the date column `<column>_day`.
    Day(String),
    /// The month in UTC of a time or date. Adds the date column `<column>_month` with the first day of the month.
    Month(String),
    /// The hour in UTC of a time. Adds the text column `<column>_hour`, such as `2026-01-31T23`.
    Hour(String),
}

impl PartitionBy {
    /// How the log writes it.
    pub(super) fn kind_and_source(&self) -> (&'static str, &str) {
        match self {
            Self::Column(name) => ("column", name),
            Self::Day(name) => ("day", name),
            Self::Month(name) => ("month", name),
            Self::Hour(name) => ("hour", name),
        }
    }

    /// The inverse of [`PartitionBy::kind_and_source`].
    pub(super) fn from_kind_and_source(kind: &str, source: &str) -> Option<Self> {
        let source = source.to_owned();
        Some(match kind {
            "day" => Self::Day(source),
            "month" => Self::Month(source),
            "hour" => Self::Hour(source),
            _ => return None,
        })
    }
}

/// A partition column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionColumn {
    /// Its name in the log.
    pub name: String,
    /// How its values come about.
    pub partition_by: PartitionBy,
    /// Its type: as declared, or that of the computed values.
    pub data_type: DataType,
}

impl PartitionColumn {
    pub(super) fn new(schema: &Schema, partition_by: &PartitionBy) -> Result<Self, DeltaError> {
        let (kind, source) = partition_by.kind_and_source();
        let field = schema
            .field_with_name(source)
            .map_err(|_| DeltaError::InvalidSchema(format!("the partition column \"{source}\" is no column")))?;
        let declared = field.data_type();
        let is_time = matches!(declared, DataType::Timestamp(_, _));
        let (is_possible, data_type) = match partition_by {
            PartitionBy::Column(_) => (stored_type(declared).is_ok_and(|stored| has_text(&stored)), declared.clone()),
            PartitionBy::Day(_) | PartitionBy::Month(_) => {
                (is_time || matches!(declared, DataType::Date32 | DataType::Date64), DataType::Date32)
            }
            PartitionBy::Hour(_) => (is_time, DataType::Utf8),
        };
        if !is_possible {
            return Err(DeltaError::InvalidSchema(format!(
                "column \"{source}\" has type {declared}, by which a table cannot be partitioned ({kind})"
            )));
        }
        let name = match partition_by {
            PartitionBy::Column(name) => name.clone(),
            _ => format!("{source}_{kind}"),
        };
        Ok(Self { name, partition_by: partition_by.clone(), data_type })
    }

    /// Whether the column is computed, and not among the declared ones.
    #[must_use]
    pub fn is_derived(&self) -> bool {
        !matches!(self.partition_by, PartitionBy::Column(_))
    }

    /// The stored values for the values of the source column.
    pub(super) fn stored_values(&self, source: &ArrayRef) -> Result<ArrayRef, DeltaError> {
        match &self.partition_by {
            PartitionBy::Column(_) => {
                let stored = stored_type(source.data_type()).map_err(|reason| self.invalid(reason))?;
                convert(source, &stored)
            }
            PartitionBy::Day(_) => Ok(Arc::new(self.to_dates(&days(source)?, |day| day)?)),
            PartitionBy::Month(_) => Ok(Arc::new(self.to_dates(&days(source)?, first_of_month)?)),
            PartitionBy::Hour(_) => {
                let hours = units(source, 24)?;
                Ok(Arc::new(hours.iter().map(|hour| hour.map(format_hour)).collect::<StringArray>()))
            }
        }
    }

    fn to_dates(&self, days: &Int64Array, convert: impl Fn(i64) -> i64) -> Result<Date32Array, DeltaError> {
        days.try_unary(|day| i32::try_from(convert(day)).map_err(|_| self.invalid("a time is outside of all dates")))
    }

    fn invalid(&self, reason: &str) -> DeltaError {
        DeltaError::InvalidRows(format!("partition column \"{}\": {reason}", self.name))
    }

    /// The text of a stored value; `None` for null.
    pub(super) fn format(&self, stored: &ArrayRef, row: usize) -> Result<Option<String>, DeltaError> {
        if stored.is_null(row) {
            return Ok(None);
        }
        Ok(Some(match stored.data_type() {
            DataType::Utf8 => stored.as_string::<i32>().value(row).to_owned(),
            DataType::Boolean => stored.as_boolean().value(row).to_string(),
            DataType::Date32 => format_date(i64::from(stored.as_primitive::<Date32Type>().value(row))),
            DataType::Timestamp(_, zone) => {
                let text =
                    format_timestamp(stored.as_primitive::<TimestampMicrosecondType>().value(row), zone.is_some());
                if zone.is_some() { text } else { text.replacen('T', " ", 1) }
            }
            DataType::Decimal128(_, scale) => {
                format_decimal(stored.as_primitive::<Decimal128Type>().value(row), *scale)
            }
            _ => cast(&stored.slice(row, 1), &DataType::Int64)?.as_primitive::<Int64Type>().value(0).to_string(),
        }))
    }

    /// The value with this text, in the column's type, as an array of one row.
    ///
    /// # Errors
    /// `InvalidRows` if the text is no value of the column.
    pub fn parse(&self, text: Option<&str>) -> Result<ArrayRef, DeltaError> {
        parse_value(&self.name, text, &self.data_type)
    }
}

/// The value of a partition column with this text, as an array of one row.
pub(super) fn parse_value(column: &str, text: Option<&str>, data_type: &DataType) -> Result<ArrayRef, DeltaError> {
    let Some(text) = text else { return Ok(new_null_array(data_type, 1)) };
    let invalid = |reason: &str| DeltaError::InvalidRows(format!("partition column \"{column}\": {reason}"));
    let stored_type = stored_type(data_type).map_err(invalid)?;
    let stored = parse_stored(text, &stored_type);
    convert(&stored.ok_or_else(|| invalid(&format!("\"{text}\" is no value")))?, data_type)
}

/// Whether tables can be partitioned by values of a stored type. Floating-point numbers have several texts, bytes have none
/// that all readers agree on; other writers have both.
fn has_text(stored: &DataType) -> bool {
    use DataType::{Boolean, Date32, Decimal128, Int8, Int16, Int32, Int64, Timestamp, Utf8};
    matches!(stored, Boolean | Int8 | Int16 | Int32 | Int64 | Decimal128(_, _) | Utf8 | Date32 | Timestamp(_, _))
}

fn parse_stored(text: &str, stored_type: &DataType) -> Option<ArrayRef> {
    Some(match stored_type {
        DataType::Utf8 => Arc::new(StringArray::from(vec![text])),
        DataType::Binary => Arc::new(BinaryArray::from(vec![text.as_bytes()])),
        DataType::Float32 => Arc::new(Float32Array::from(vec![text.parse::<f32>().ok()?])),
        DataType::Float64 => Arc::new(Float64Array::from(vec![text.parse::<f64>().ok()?])),
        DataType::Date32 => Arc::new(Date32Array::from(vec![i32::try_from(parse_date(text)?).ok()?])),
        DataType::Timestamp(_, zone) => {
            let values = PrimitiveArray::<TimestampMicrosecondType>::from(vec![parse_timestamp(text)?]);
            Arc::new(values.with_timezone_opt(zone.clone()))
        }
        DataType::Boolean => Arc::new(arrow::array::BooleanArray::from(vec![text.parse::<bool>().ok()?])),
        DataType::Decimal128(precision, scale) => {
            let values = PrimitiveArray::<Decimal128Type>::from(vec![parse_decimal(text, *scale)?]);
            Arc::new(values.with_precision_and_scale(*precision, *scale).ok()?)
        }
        _ => {
            let values: ArrayRef = Arc::new(Int64Array::from(vec![text.parse::<i64>().ok()?]));
            convert(&values, stored_type).ok()?
        }
    })
}

/// Days since the epoch.
fn days(source: &ArrayRef) -> Result<Int64Array, DeltaError> {
    if *source.data_type() == DataType::Date32 {
        return Ok(source.as_primitive::<Date32Type>().unary(i64::from));
    }
    units(source, 1)
}

/// Parts of a day since the epoch, rounded down.
fn units(source: &ArrayRef, per_day: i64) -> Result<Int64Array, DeltaError> {
    let day = match source.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => DAY_MICROSECONDS / 1_000_000,
        DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => DAY_MICROSECONDS / 1_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => DAY_MICROSECONDS,
        _ => DAY_MICROSECONDS * 1_000,
    };
    let values = cast(source, &DataType::Int64)?;
    Ok(values.as_primitive::<Int64Type>().unary(|value| value.div_euclid(day / per_day)))
}

fn first_of_month(day: i64) -> i64 {
    let (_, _, day_of_month) = date_from_days(day);
    day + 1 - i64::from(day_of_month)
}

/// The first day of the month after that of `day`.
pub(super) fn next_month(day: i64) -> i64 {
    first_of_month(first_of_month(day) + 31)
}

fn format_hour(hour: i64) -> String {
    format!("{}T{:02}", format_date(hour.div_euclid(24)), hour.rem_euclid(24))
}

/// Hours since the epoch of `2026-01-31T23`.
pub(super) fn parse_hour(text: &str) -> Option<i64> {
    let (date, hour) = text.rsplit_once('T')?;
    let hour = hour.parse::<i64>().ok().filter(|hour| (0..24).contains(hour))?;
    Some(parse_date(date)? * 24 + hour)
}

/// The folder of a file with these partition values, below that of the table. Empty without partitions.
///
/// The log has the values, but some readers take them from the names of folders, where `%` and two digits are a byte.
pub(super) fn folder(columns: &[PartitionColumn], values: &[Option<String>]) -> String {
    let names: Vec<_> = columns
        .iter()
        .zip(values)
        .map(|(column, value)| {
            let value = value.as_deref().filter(|value| !value.is_empty());
            let name = format!("{}={}", escape_name(&column.name), value.map_or(NULL_FOLDER.to_owned(), escape_value));
            if name.len() > FOLDER_NAME_BYTES_MAX || value == Some(NULL_FOLDER) {
                // Readers that need the value fail, and do not take it for another one.
                return format!("nameless-{:08x}", crc32fast::hash(name.as_bytes()));
            }
            name
        })
        .collect();
    names.join("/")
}

/// Escapes what a name of a folder cannot have, or what has a meaning in it. Readers compare the rest with the name of the
/// column as it is.
fn escape_name(name: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.' | ' ');
    let mut escaped = String::with_capacity(name.len());
    for character in name.chars() {
        if is_plain(character) {
            escaped.push(character);
        } else {
            escape_bytes(&mut escaped, character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    escaped
}

fn escape_value(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for byte in value.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if is_plain {
            escaped.push(char::from(byte));
        } else {
            escape_bytes(&mut escaped, &[byte]);
        }
    }
    escaped
}

fn escape_bytes(escaped: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(escaped, "%{byte:02X}");
    }
}

/// A path as the log writes it: a URI reference.
pub(super) fn encode_path(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'/' | b'=') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The inverse of [`encode_path`].
pub(super) fn decode_path(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
