//! Which types in data files have only values of a column's type.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};

use super::types::stored_type;

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
