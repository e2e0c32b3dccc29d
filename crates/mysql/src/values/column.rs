//! The columns of results: their Arrow fields, the SQL names of their types, and the decoding of values.

use std::fmt::Write as _;
use std::str;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::array::builder::{
    BinaryBuilder, Date32Builder, Decimal128Builder, Decimal256Builder, Float32Builder, Float64Builder, Int8Builder,
    Int16Builder, Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, TimeUnit, i256};
use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::{Column, Value};
use tidegate_query::{ExtensionType, days_from_date, with_type_name};

use super::ValueError;
use super::geometry::geometry_text;

/// The maximum number of digits of Arrow's smaller decimals.
const DECIMAL128_DIGITS: u8 = 38;
/// The maximum number of digits of a `DECIMAL`.
const DIGITS_MAX: u32 = 65;
/// The id of the character set of bytes.
const BINARY_CHARSET: u16 = 63;
const MICROSECONDS_OF_DAY: i64 = 86_400_000_000;
/// A larger number of decimals means that it is unknown.
const FRACTION_DIGITS_MAX: u8 = 6;

/// A column of a result: its Arrow field, and how its values are decoded.
#[derive(Debug, Clone)]
pub(crate) struct ColumnDecoder {
    pub(super) field: Field,
    form: ValueForm,
}

/// How values are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    /// The numbers of digits, and of those after the point.
    Decimal128(u8, u8),
    Decimal256(u8, u8),
    Bits,
    Text,
    Bytes,
    Date,
    /// Whether it is a point in time.
    Timestamp {
        has_zone: bool,
    },
    /// The number of digits of the fraction.
    Time(u8),
    Geometry,
}

impl ColumnDecoder {
    /// The decoder of `column`. `is_json` says that its text is JSON, which MariaDB does not report with a result.
    pub(crate) fn new(column: &Column, is_json: bool) -> Self {
        let is_unsigned = column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
        let form = value_form(column, is_unsigned);
        let is_json = (is_json || column.column_type() == ColumnType::MYSQL_TYPE_JSON) && form == ValueForm::Text;
        let field = Field::new(column.name_str(), data_type(form), true);
        let field = if is_json { ExtensionType::Json.annotate(field) } else { field };
        let name = if is_json { "json".to_owned() } else { type_name(column, form, is_unsigned) };
        Self { field: with_type_name(field, name), form }
    }

    pub(super) fn builder(&self) -> ColumnBuilder {
        let data_type = || self.field.data_type().clone();
        match self.form {
            ValueForm::Int8 => ColumnBuilder::Int8(Int8Builder::new()),
            ValueForm::Int16 => ColumnBuilder::Int16(Int16Builder::new()),
            ValueForm::Int32 => ColumnBuilder::Int32(Int32Builder::new()),
            ValueForm::Int64 => ColumnBuilder::Int64(Int64Builder::new()),
            ValueForm::UInt8 => ColumnBuilder::UInt8(UInt8Builder::new()),
            ValueForm::UInt16 => ColumnBuilder::UInt16(UInt16Builder::new()),
            ValueForm::UInt32 => ColumnBuilder::UInt32(UInt32Builder::new()),
            ValueForm::UInt64 => ColumnBuilder::UInt64(UInt64Builder::new()),
            ValueForm::Float32 => ColumnBuilder::Float32(Float32Builder::new()),
            ValueForm::Float64 => ColumnBuilder::Float64(Float64Builder::new()),
            ValueForm::Decimal128(precision, scale) => {
                let builder = Decimal128Builder::new().with_data_type(data_type());
                ColumnBuilder::Decimal128 { builder, precision, scale }
            }
            ValueForm::Decimal256(precision, scale) => {
                let builder = Decimal256Builder::new().with_data_type(data_type());
                ColumnBuilder::Decimal256 { builder, precision, scale }
            }
            ValueForm::Bits => ColumnBuilder::Bits(UInt64Builder::new()),
            ValueForm::Text => ColumnBuilder::Text(StringBuilder::new()),
            ValueForm::Bytes => ColumnBuilder::Bytes(BinaryBuilder::new()),
            ValueForm::Date => ColumnBuilder::Date(Date32Builder::new()),
            ValueForm::Timestamp { .. } => {
                ColumnBuilder::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(data_type()))
            }
            ValueForm::Time(digits) => ColumnBuilder::Time { builder: StringBuilder::new(), digits },
            ValueForm::Geometry => ColumnBuilder::Geometry(StringBuilder::new()),
        }
    }
}

fn value_form(column: &Column, is_unsigned: bool) -> ValueForm {
    let choose = |unsigned, signed| if is_unsigned { unsigned } else { signed };
    match column.column_type() {
        ColumnType::MYSQL_TYPE_TINY => choose(ValueForm::UInt8, ValueForm::Int8),
        ColumnType::MYSQL_TYPE_SHORT => choose(ValueForm::UInt16, ValueForm::Int16),
        ColumnType::MYSQL_TYPE_INT24 | ColumnType::MYSQL_TYPE_LONG => choose(ValueForm::UInt32, ValueForm::Int32),
        ColumnType::MYSQL_TYPE_LONGLONG => choose(ValueForm::UInt64, ValueForm::Int64),
        ColumnType::MYSQL_TYPE_YEAR => ValueForm::UInt16,
        ColumnType::MYSQL_TYPE_FLOAT => ValueForm::Float32,
        ColumnType::MYSQL_TYPE_DOUBLE => ValueForm::Float64,
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => decimal_form(column, is_unsigned),
        ColumnType::MYSQL_TYPE_BIT => ValueForm::Bits,
        ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => ValueForm::Date,
        ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_DATETIME2 => ValueForm::Timestamp { has_zone: false },
        ColumnType::MYSQL_TYPE_TIMESTAMP | ColumnType::MYSQL_TYPE_TIMESTAMP2 => ValueForm::Timestamp { has_zone: true },
        ColumnType::MYSQL_TYPE_TIME | ColumnType::MYSQL_TYPE_TIME2 => ValueForm::Time(column.decimals()),
        ColumnType::MYSQL_TYPE_GEOMETRY => ValueForm::Geometry,
        // JSON is text, whatever its character set.
        ColumnType::MYSQL_TYPE_JSON | ColumnType::MYSQL_TYPE_NULL => ValueForm::Text,
        _ if column.character_set() == BINARY_CHARSET => ValueForm::Bytes,
        _ => ValueForm::Text,
    }
}

/// The number of digits follows from the display width, which includes the sign and the point.
fn decimal_form(column: &Column, is_unsigned: bool) -> ValueForm {
    let scale = column.decimals();
    let extra = u32::from(scale > 0) + u32::from(!is_unsigned);
    let least = u32::from(scale).clamp(1, DIGITS_MAX);
    let precision = column.column_length().saturating_sub(extra).clamp(least, DIGITS_MAX);
    // Below 256, as its bound.
    let precision = precision as u8;
    match precision {
        ..=DECIMAL128_DIGITS => ValueForm::Decimal128(precision, scale),
        _ => ValueForm::Decimal256(precision, scale),
    }
}

fn data_type(form: ValueForm) -> DataType {
    match form {
        ValueForm::Int8 => DataType::Int8,
        ValueForm::Int16 => DataType::Int16,
        ValueForm::Int32 => DataType::Int32,
        ValueForm::Int64 => DataType::Int64,
        ValueForm::UInt8 => DataType::UInt8,
        ValueForm::UInt16 => DataType::UInt16,
        ValueForm::UInt32 => DataType::UInt32,
        ValueForm::UInt64 | ValueForm::Bits => DataType::UInt64,
        ValueForm::Float32 => DataType::Float32,
        ValueForm::Float64 => DataType::Float64,
        // Scales are 38 at most.
        ValueForm::Decimal128(precision, scale) => DataType::Decimal128(precision, scale as i8),
        ValueForm::Decimal256(precision, scale) => DataType::Decimal256(precision, scale as i8),
        ValueForm::Text | ValueForm::Time(_) | ValueForm::Geometry => DataType::Utf8,
        ValueForm::Bytes => DataType::Binary,
        ValueForm::Date => DataType::Date32,
        ValueForm::Timestamp { has_zone } => {
            DataType::Timestamp(TimeUnit::Microsecond, has_zone.then(|| Arc::from("UTC")))
        }
    }
}

/// The name of the type, as far as a result has it.
fn type_name(column: &Column, form: ValueForm, is_unsigned: bool) -> String {
    let flags = column.flags();
    let sign = if is_unsigned { " unsigned" } else { "" };
    match column.column_type() {
        ColumnType::MYSQL_TYPE_TINY => format!("tinyint{sign}"),
        ColumnType::MYSQL_TYPE_SHORT => format!("smallint{sign}"),
        ColumnType::MYSQL_TYPE_INT24 => format!("mediumint{sign}"),
        ColumnType::MYSQL_TYPE_LONG => format!("int{sign}"),
        ColumnType::MYSQL_TYPE_LONGLONG => format!("bigint{sign}"),
        ColumnType::MYSQL_TYPE_YEAR => "year".to_owned(),
        ColumnType::MYSQL_TYPE_FLOAT => "float".to_owned(),
        ColumnType::MYSQL_TYPE_DOUBLE => "double".to_owned(),
        ColumnType::MYSQL_TYPE_BIT => format!("bit({})", column.column_length()),
        ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => "date".to_owned(),
        ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_DATETIME2 => "datetime".to_owned(),
        ColumnType::MYSQL_TYPE_TIMESTAMP | ColumnType::MYSQL_TYPE_TIMESTAMP2 => "timestamp".to_owned(),
        ColumnType::MYSQL_TYPE_TIME | ColumnType::MYSQL_TYPE_TIME2 => "time".to_owned(),
        ColumnType::MYSQL_TYPE_GEOMETRY => "geometry".to_owned(),
        ColumnType::MYSQL_TYPE_NULL => "null".to_owned(),
        _ if flags.contains(ColumnFlags::ENUM_FLAG) => "enum".to_owned(),
        _ if flags.contains(ColumnFlags::SET_FLAG) => "set".to_owned(),
        _ => match form {
            ValueForm::Decimal128(precision, scale) | ValueForm::Decimal256(precision, scale) => {
                format!("decimal({precision},{scale})")
            }
            ValueForm::Bytes if flags.contains(ColumnFlags::BLOB_FLAG) => "blob".to_owned(),
            ValueForm::Bytes => "varbinary".to_owned(),
            _ if flags.contains(ColumnFlags::BLOB_FLAG) => "text".to_owned(),
            _ => "varchar".to_owned(),
        },
    }
}

/// Builds the array of a column.
pub(super) enum ColumnBuilder {
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt8(UInt8Builder),
    UInt16(UInt16Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal128 { builder: Decimal128Builder, precision: u8, scale: u8 },
    Decimal256 { builder: Decimal256Builder, precision: u8, scale: u8 },
    Bits(UInt64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Time { builder: StringBuilder, digits: u8 },
    Geometry(StringBuilder),
}

/// Runs the same code for the builder of each variant.
macro_rules! each_builder {
    ($column:expr, $builder:ident => $code:expr) => {
        match $column {
            ColumnBuilder::Int8($builder) => $code,
            ColumnBuilder::Int16($builder) => $code,
            ColumnBuilder::Int32($builder) => $code,
            ColumnBuilder::Int64($builder) => $code,
            ColumnBuilder::UInt8($builder) => $code,
            ColumnBuilder::UInt16($builder) => $code,
            ColumnBuilder::UInt32($builder) => $code,
            ColumnBuilder::UInt64($builder) | ColumnBuilder::Bits($builder) => $code,
            ColumnBuilder::Float32($builder) => $code,
            ColumnBuilder::Float64($builder) => $code,
            ColumnBuilder::Decimal128 { builder: $builder, .. } => $code,
            ColumnBuilder::Decimal256 { builder: $builder, .. } => $code,
            ColumnBuilder::Bytes($builder) => $code,
            ColumnBuilder::Date($builder) => $code,
            ColumnBuilder::Timestamp($builder) => $code,
            ColumnBuilder::Text($builder)
            | ColumnBuilder::Time { builder: $builder, .. }
            | ColumnBuilder::Geometry($builder) => $code,
        }
    };
}

impl ColumnBuilder {
    /// Appends `value`. Returns its approximate size in bytes.
    pub(super) fn append(&mut self, value: &Value) -> Result<usize, ValueError> {
        if matches!(value, Value::NULL) {
            each_builder!(self, builder => builder.append_null());
            return Ok(1);
        }
        let mut bytes = 8;
        match self {
            Self::Int8(builder) => builder.append_value(integer(value)?),
            Self::Int16(builder) => builder.append_value(integer(value)?),
            Self::Int32(builder) => builder.append_value(integer(value)?),
            Self::Int64(builder) => builder.append_value(integer(value)?),
            Self::UInt8(builder) => builder.append_value(integer(value)?),
            Self::UInt16(builder) => builder.append_value(integer(value)?),
            Self::UInt32(builder) => builder.append_value(integer(value)?),
            Self::UInt64(builder) => builder.append_value(integer(value)?),
            Self::Float32(builder) => match value {
                Value::Float(value) => builder.append_value(*value),
                _ => return Err(ValueError::Malformed),
            },
            Self::Float64(builder) => match value {
                Value::Double(value) => builder.append_value(*value),
                _ => return Err(ValueError::Malformed),
            },
            Self::Decimal128 { builder, precision, scale } => {
                bytes = 16;
                let digits = decimal_digits(bytes_of(value)?, *precision, *scale)?;
                builder.append_value(digits.parse::<i128>().map_err(|_| ValueError::Malformed)?);
            }
            Self::Decimal256 { builder, precision, scale } => {
                bytes = 32;
                let digits = decimal_digits(bytes_of(value)?, *precision, *scale)?;
                builder.append_value(i256::from_string(&digits).ok_or(ValueError::Malformed)?);
            }
            Self::Bits(builder) => builder.append_value(bits(bytes_of(value)?)?),
            Self::Text(builder) => {
                let text = str::from_utf8(bytes_of(value)?).map_err(|_| ValueError::NotUtf8)?;
                bytes += text.len();
                builder.append_value(text);
            }
            Self::Bytes(builder) => {
                bytes += bytes_of(value)?.len();
                builder.append_value(bytes_of(value)?);
            }
            // The days of five digits of years fit 32 bits.
            Self::Date(builder) => builder.append_value(days(value)? as i32),
            Self::Timestamp(builder) => builder.append_value(microseconds(value)?),
            Self::Time { builder, digits } => {
                let text = time_text(value, *digits)?;
                bytes += text.len();
                builder.append_value(text);
            }
            Self::Geometry(builder) => {
                let text = geometry_text(bytes_of(value)?).ok_or(ValueError::Malformed)?;
                bytes += text.len();
                builder.append_value(text);
            }
        }
        Ok(bytes)
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        each_builder!(self, builder => Arc::new(builder.finish()))
    }
}

fn integer<T: TryFrom<i64> + TryFrom<u64>>(value: &Value) -> Result<T, ValueError> {
    match value {
        Value::Int(value) => T::try_from(*value).map_err(|_| ValueError::Malformed),
        Value::UInt(value) => T::try_from(*value).map_err(|_| ValueError::Malformed),
        _ => Err(ValueError::Malformed),
    }
}

fn bytes_of(value: &Value) -> Result<&[u8], ValueError> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(ValueError::Malformed),
    }
}

/// The bits of a `BIT`, the highest first.
fn bits(bytes: &[u8]) -> Result<u64, ValueError> {
    if bytes.len() > 8 {
        return Err(ValueError::Malformed);
    }
    Ok(bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
}

/// The sign and the digits of the number `text` without its point, with `scale` digits after it.
fn decimal_digits(text: &[u8], precision: u8, scale: u8) -> Result<String, ValueError> {
    let text = str::from_utf8(text).map_err(|_| ValueError::Malformed)?;
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.len() + fraction.len() == 0 {
        return Err(ValueError::Malformed);
    }
    let (whole, scale) = (whole.trim_start_matches('0'), usize::from(scale));
    let (kept, cut) = fraction.split_at(fraction.len().min(scale));
    if whole.len() + scale > usize::from(precision) || cut.bytes().any(|byte| byte != b'0') {
        return Err(ValueError::TooManyDigits);
    }
    let digits = format!("{whole}{kept:0<scale$}");
    Ok(if digits.is_empty() { "0".to_owned() } else { format!("{sign}{digits}") })
}

/// The days since 1970-01-01 of a date, whatever its time.
fn days(value: &Value) -> Result<i64, ValueError> {
    let Value::Date(year, month, day, ..) = *value else { return Err(ValueError::Malformed) };
    let days = days_from_date(i64::from(year), u32::from(month), u32::from(day));
    days.ok_or_else(|| ValueError::NoDate(format!("{year:04}-{month:02}-{day:02}")))
}

/// The microseconds since 1970-01-01 of a date and time.
fn microseconds(value: &Value) -> Result<i64, ValueError> {
    let Value::Date(_, _, _, hour, minute, second, microsecond) = *value else { return Err(ValueError::Malformed) };
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    // A year has at most five digits, so that the product fits.
    Ok(days(value)? * MICROSECONDS_OF_DAY + seconds * 1_000_000 + i64::from(microsecond))
}

/// A `TIME` as MySQL writes it.
fn time_text(value: &Value, digits: u8) -> Result<String, ValueError> {
    let Value::Time(is_negative, days, hours, minutes, seconds, microseconds) = *value else {
        return Err(ValueError::Malformed);
    };
    let sign = if is_negative { "-" } else { "" };
    let hours = u64::from(days) * 24 + u64::from(hours);
    let mut text = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
    let digits = match digits {
        ..=FRACTION_DIGITS_MAX => usize::from(digits),
        _ if microseconds == 0 => 0,
        _ => usize::from(FRACTION_DIGITS_MAX),
    };
    if digits > 0 {
        let fraction = format!("{microseconds:06}");
        // Writing to a string does not fail.
        let _ = write!(text, ".{}", fraction.get(..digits).unwrap_or(&fraction));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnType) -> Column {
        Column::new(kind).with_name(b"c").with_character_set(45)
    }

    fn type_of(column: &Column) -> String {
        let decoder = ColumnDecoder::new(column, false);
        format!("{} {}", tidegate_query::field_type_name(&decoder.field), decoder.field.data_type())
    }

    #[test]
    fn types_of_mysql_have_their_arrow_types() {
        let unsigned = column(ColumnType::MYSQL_TYPE_LONGLONG).with_flags(ColumnFlags::UNSIGNED_FLAG);
        assert_eq!(type_of(&unsigned), "bigint unsigned UInt64");
        assert_eq!(type_of(&column(ColumnType::MYSQL_TYPE_TINY)), "tinyint Int8");
        assert_eq!(type_of(&column(ColumnType::MYSQL_TYPE_VAR_STRING)), "varchar Utf8");
        assert_eq!(type_of(&column(ColumnType::MYSQL_TYPE_VAR_STRING).with_character_set(63)), "varbinary Binary");
        let decimal =
            |length, scale| column(ColumnType::MYSQL_TYPE_NEWDECIMAL).with_column_length(length).with_decimals(scale);
        assert_eq!(type_of(&decimal(12, 2)), "decimal(10,2) Decimal128(10, 2)");
        assert_eq!(type_of(&decimal(67, 10)), "decimal(65,10) Decimal256(65, 10)");
        assert_eq!(type_of(&decimal(11, 0)), "decimal(10,0) Decimal128(10, 0)");
    }

    #[test]
    fn decimals_keep_their_digits() {
        let digits = |text: &str, precision, scale| decimal_digits(text.as_bytes(), precision, scale);
        assert_eq!(digits("12.50", 10, 2).as_deref(), Ok("1250"));
        assert_eq!(digits("-0.5", 10, 2).as_deref(), Ok("-50"));
        assert_eq!(digits("0.05", 10, 2).as_deref(), Ok("05"));
        assert_eq!(digits("7", 10, 2).as_deref(), Ok("700"));
        assert_eq!(digits("0", 10, 0).as_deref(), Ok("0"));
        assert_eq!(digits("123", 2, 0), Err(ValueError::TooManyDigits));
        assert_eq!(digits("1.234", 10, 2), Err(ValueError::TooManyDigits));
        assert_eq!(digits("1e5", 10, 2), Err(ValueError::Malformed));
        assert_eq!(digits("", 10, 2), Err(ValueError::Malformed));
    }

    #[test]
    fn dates_that_do_not_exist_are_errors() {
        let text = |year, month, day| match days(&Value::Date(year, month, day, 0, 0, 0, 0)) {
            Ok(days) => days.to_string(),
            Err(ValueError::NoDate(text)) => text,
            Err(other) => format!("{other:?}"),
        };
        assert_eq!(text(1970, 1, 2), "1");
        assert_eq!(text(0, 0, 0), "0000-00-00");
        assert_eq!(text(2024, 2, 0), "2024-02-00");
        assert_eq!(text(2024, 2, 31), "2024-02-31");
        let moment = Value::Date(1970, 1, 2, 0, 0, 1, 5);
        assert_eq!(microseconds(&moment), Ok(MICROSECONDS_OF_DAY + 1_000_005));
    }

    #[test]
    fn times_may_be_negative_and_longer_than_a_day() {
        let time = |value, digits| time_text(&value, digits).unwrap();
        assert_eq!(time(Value::Time(true, 34, 22, 59, 59, 0), 0), "-838:59:59");
        assert_eq!(time(Value::Time(false, 0, 1, 2, 3, 450_000), 2), "01:02:03.45");
        assert_eq!(time(Value::Time(false, 0, 1, 2, 3, 0), 39), "01:02:03");
        assert_eq!(time(Value::Time(false, 0, 1, 2, 3, 4), 39), "01:02:03.000004");
    }

    #[test]
    fn bits_are_a_number() {
        assert_eq!(bits(&[1, 1]), Ok(257));
        assert_eq!(bits(&[255; 8]), Ok(u64::MAX));
        assert_eq!(bits(&[0; 9]), Err(ValueError::Malformed));
    }
}
