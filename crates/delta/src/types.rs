//! The types of columns in data files, and which of them have only values of a column's type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Field, TimeUnit};

use crate::DeltaError;

/// Whether a stored type has a timestamp without time zone in it.
pub(super) fn has_timestamp_without_zone(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, zone) => zone.is_none(),
        DataType::List(field) | DataType::Map(field, _) => has_timestamp_without_zone(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_timestamp_without_zone(field.data_type())),
        _ => false,
    }
}

/// The Arrow type in a data file for a declared type. Each value of the declared type has a value of its own in it.
pub(super) fn stored_type(data_type: &DataType) -> Result<DataType, &'static str> {
    Ok(match data_type {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Timestamp(TimeUnit::Microsecond, None) => data_type.clone(),
        DataType::Float16 => DataType::Float32,
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 | DataType::Time32(_) => DataType::Int32,
        DataType::UInt32 | DataType::Date64 | DataType::Time64(_) | DataType::Duration(_) => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => stored_decimal(*precision, *scale)?,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => utc_timestamp(),
        DataType::Timestamp(_, _) => DataType::Int64,
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            DataType::List(Arc::new(stored_field("element", element)?))
        }
        DataType::Struct(fields) if fields.is_empty() => return Err("it is a structure without fields"),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| stored_field(field.name(), field)).collect::<Result<_, _>>()?)
        }
        DataType::Map(entries, _) => stored_map(entries)?,
        DataType::Dictionary(_, _) | DataType::RunEndEncoded(_, _) => {
            return Err("it is an encoding; declare the type of its values");
        }
        DataType::Null => return Err("it holds no values"),
        _ => return Err("no Delta type holds all its values"),
    })
}

/// The stored type of a decimal.
pub(super) fn stored_decimal(precision: u8, scale: i8) -> Result<DataType, &'static str> {
    if precision > 38 {
        return Err("a decimal has at most 38 digits");
    }
    if u8::try_from(scale).map_or(true, |scale| scale > precision) {
        return Err("the scale of a decimal is between 0 and its precision");
    }
    Ok(DataType::Decimal128(precision, scale))
}

fn stored_field(name: &str, field: &Field) -> Result<Field, &'static str> {
    Ok(Field::new(name, stored_type(field.data_type())?, field.is_nullable()))
}

fn stored_map(entries: &Field) -> Result<DataType, &'static str> {
    let DataType::Struct(fields) = entries.data_type() else { return Err("it is a map without entries") };
    let [key, value] = fields.as_ref() else { return Err("the entries of a map are pairs") };
    let fields = vec![Field::new("key", stored_type(key.data_type())?, false), stored_field("value", value)?];
    Ok(DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(fields.into()), false)), false))
}

/// The type of timestamps that are instants.
pub(super) fn utc_timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The values of a declared column as a data file stores them.
pub(super) fn to_stored(column: &str, array: &ArrayRef, stored: &DataType) -> Result<ArrayRef, DeltaError> {
    if let DataType::Decimal128(precision, scale) = array.data_type() {
        // Arrow does not check the values of a decimal when it is built.
        array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision).map_err(|_| {
            DeltaError::InvalidRows(format!("column \"{column}\" has a value outside of decimal({precision}, {scale})"))
        })?;
    }
    convert(array, stored)
}

/// The values of a data file as the column was declared.
pub(super) fn convert(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, DeltaError> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, data_type, &options)?)
}

/// Whether each value that a data file has in a column of the type `found` is read as a value of the declared type. Types
/// may have become wider since the file was written. A cast reports whole numbers that are too large.
#[must_use]
pub fn is_readable_type(found: &DataType, declared: &DataType) -> bool {
    stored_type(declared).is_ok_and(|stored| is_contained(found, &stored, Nesting::OutsideOfMaps))
}

/// Fields are found by name, but by position within maps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    OutsideOfMaps,
    WithinMap,
}

fn is_contained(found: &DataType, stored: &DataType, nesting: Nesting) -> bool {
    use DataType::{
        Binary, BinaryView, Date32, Decimal128, Dictionary, FixedSizeBinary, Float32, Float64, Int8, Int16, Int32,
        LargeBinary, LargeList, LargeUtf8, List, Map, Struct, Timestamp, Utf8, Utf8View,
    };
    let is_field = |found: &Field, stored: &Field| is_contained(found.data_type(), stored.data_type(), nesting);
    match (found, stored) {
        (Dictionary(_, values), _) => is_contained(values, stored, nesting),
        (Utf8 | LargeUtf8 | Utf8View, Utf8) => true,
        (Binary | LargeBinary | BinaryView | FixedSizeBinary(_), Binary) => true,
        // Writers differ in whether they mark instants, and old ones write nanoseconds for microseconds.
        (Timestamp(_, _), Timestamp(_, _)) | (Date32, Timestamp(_, None)) => true,
        (Float32 | Int8 | Int16 | Int32, Float64) => true,
        (Decimal128(digits, scale), Decimal128(stored_digits, stored_scale)) => {
            let before_point = |digits: u8, scale: i8| i16::from(digits) - i16::from(scale);
            scale <= stored_scale && before_point(*digits, *scale) <= before_point(*stored_digits, *stored_scale)
        }
        (found, Decimal128(_, _)) => found.is_integer(),
        (List(found) | LargeList(found), List(stored)) => is_field(found, stored),
        (Map(found, _), Map(stored, _)) => match (found.data_type(), stored.data_type()) {
            (Struct(found), Struct(stored)) => {
                found.len() == stored.len()
                    && found
                        .iter()
                        .zip(stored)
                        .all(|(found, stored)| is_contained(found.data_type(), stored.data_type(), Nesting::WithinMap))
            }
            _ => false,
        },
        (Struct(found), Struct(stored)) if nesting == Nesting::WithinMap => {
            let is_same =
                |(found, stored): (&Arc<Field>, &Arc<Field>)| found.name() == stored.name() && is_field(found, stored);
            found.len() == stored.len() && found.iter().zip(stored).all(is_same)
        }
        (Struct(found), Struct(stored)) => stored.iter().all(|stored| {
            let of_name = found.iter().find(|field| field.name() == stored.name());
            of_name.is_none_or(|found| is_field(found, stored))
        }),
        (found, stored) => found == stored || found.is_integer() && stored.is_integer(),
    }
}
