//! The common type of two types, for columns that are merged from several files or rows.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};

/// The type of timestamps in text files. It is precise enough for common data and wide enough for later rows with more
/// digits.
pub(crate) const TEXT_TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// The type of times with an offset in text files.
pub(crate) static TEXT_INSTANT: LazyLock<DataType> =
    LazyLock::new(|| DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));

/// The precision and the scale of integers of more than 64 bits in text files.
pub(crate) const BIG_INTEGER: (u8, i8) = (38, 0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoercionMode {
    /// Scalars of different types become text. For text files.
    ToText,
    /// Only numbers become wider numbers. For typed files.
    NumbersOnly,
}

/// The narrowest type that holds the values of both. `Null` means that the type is not known yet.
pub(crate) fn wider(a: &DataType, b: &DataType, coercion_mode: CoercionMode) -> Option<DataType> {
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        (DataType::Struct(a), DataType::Struct(b)) => merge_fields(a, b, coercion_mode).ok().map(DataType::Struct),
        (DataType::List(a), DataType::List(b)) => {
            let item = wider(a.data_type(), b.data_type(), coercion_mode)?;
            Some(DataType::List(Arc::new(Field::new(a.name(), item, true))))
        }
        _ => wider_scalar(a, b, coercion_mode),
    }
}

fn wider_scalar(a: &DataType, b: &DataType, coercion_mode: CoercionMode) -> Option<DataType> {
    if a.is_nested() || b.is_nested() {
        return None;
    }
    if let (Some(a_rank), Some(b_rank)) = (number_rank(a), number_rank(b)) {
        return Some(if a_rank >= b_rank { a.clone() } else { b.clone() });
    }
    // The finer unit. A time that it cannot hold is an error when it is read.
    if let (DataType::Timestamp(a_unit, a_zone), DataType::Timestamp(b_unit, b_zone)) = (a, b)
        && a_zone == b_zone
    {
        return Some(DataType::Timestamp(*a_unit.max(b_unit), a_zone.clone()));
    }
    let both = |x: &DataType, y: &DataType| (a == x && b == y) || (a == y && b == x);
    if both(&DataType::Date32, &TEXT_TIMESTAMP) {
        return Some(TEXT_TIMESTAMP);
    }
    let big_integer = DataType::Decimal128(BIG_INTEGER.0, BIG_INTEGER.1);
    if coercion_mode == CoercionMode::ToText && both(&DataType::Int64, &big_integer) {
        return Some(big_integer);
    }
    match coercion_mode {
        CoercionMode::ToText => Some(DataType::Utf8),
        CoercionMode::NumbersOnly => None,
    }
}

/// The rank of a numeric type: a type holds all values of lower ranks. Integers above 53 bits become inexact in a
/// float, as in other databases.
fn number_rank(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Int8 => Some(0),
        DataType::Int16 => Some(1),
        DataType::Int32 => Some(2),
        DataType::Int64 => Some(3),
        DataType::Float32 => Some(4),
        DataType::Float64 => Some(5),
        _ => None,
    }
}

/// Merges the fields of `a` and `b`, those of `a` first. The error is the first name whose types are incompatible.
pub(crate) fn merge_fields(a: &Fields, b: &Fields, coercion_mode: CoercionMode) -> Result<Fields, String> {
    let mut fields: Vec<FieldRef> = a.iter().cloned().collect();
    let positions: HashMap<&str, usize> =
        a.iter().enumerate().map(|(position, field)| (field.name().as_str(), position)).collect();
    for field in b {
        match positions.get(field.name().as_str()) {
            None => fields.push(Arc::new(field.as_ref().clone().with_nullable(true))),
            Some(&position) => {
                let mine = &fields[position];
                let data_type =
                    wider(mine.data_type(), field.data_type(), coercion_mode).ok_or_else(|| field.name().clone())?;
                let nullable = mine.is_nullable() || field.is_nullable();
                let mut united = mine.as_ref().clone().with_data_type(data_type).with_nullable(nullable);
                // A mark such as that of JSON is of all files or of none.
                if mine.metadata() != field.metadata() {
                    united = united.with_metadata(HashMap::new());
                }
                fields[position] = Arc::new(united);
            }
        }
    }
    let in_b: std::collections::HashSet<&str> = b.iter().map(|field| field.name().as_str()).collect();
    for field in &mut fields {
        if !in_b.contains(field.name().as_str()) && !field.is_nullable() {
            *field = Arc::new(field.as_ref().clone().with_nullable(true));
        }
    }
    Ok(fields.into())
}

pub(crate) fn replace_null_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::List(item) => {
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(replace_null_type(item.data_type()))))
        }
        DataType::Struct(fields) => DataType::Struct(replace_null_types(fields)),
        other => other.clone(),
    }
}

/// Applies [`replace_null_type`] to each of `fields`.
pub(crate) fn replace_null_types(fields: &Fields) -> Fields {
    fields.iter().map(|field| field.as_ref().clone().with_data_type(replace_null_type(field.data_type()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widens_types_within_the_coercion_mode() {
        let text = |a, b| wider(&a, &b, CoercionMode::ToText);
        let typed = |a, b| wider(&a, &b, CoercionMode::NumbersOnly);
        assert_eq!(text(DataType::Int64, DataType::Float64), Some(DataType::Float64));
        assert_eq!(text(DataType::Boolean, DataType::Int64), Some(DataType::Utf8));
        assert_eq!(text(DataType::Null, DataType::Date32), Some(DataType::Date32));
        assert_eq!(text(DataType::Date32, TEXT_TIMESTAMP), Some(TEXT_TIMESTAMP));
        assert_eq!(typed(DataType::Int32, DataType::Int64), Some(DataType::Int64));
        assert_eq!(typed(DataType::Int32, DataType::Utf8), None);
        let time = |unit| DataType::Timestamp(unit, None);
        let finer = typed(time(TimeUnit::Millisecond), time(TimeUnit::Nanosecond));
        assert_eq!(finer, Some(time(TimeUnit::Nanosecond)));
        assert_eq!(typed(time(TimeUnit::Microsecond), TEXT_INSTANT.clone()), None);
        let object = DataType::Struct(Fields::empty());
        assert_eq!(text(object, DataType::Utf8), None);
    }

    #[test]
    fn field_missing_on_one_side_becomes_nullable() {
        let fields =
            |names: &[&str]| -> Fields { names.iter().map(|name| Field::new(*name, DataType::Int64, false)).collect() };
        let united = merge_fields(&fields(&["a", "b"]), &fields(&["b", "c"]), CoercionMode::NumbersOnly).unwrap();
        let visible: Vec<(&str, bool)> =
            united.iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        assert_eq!(visible, [("a", true), ("b", false), ("c", true)]);
    }
}
