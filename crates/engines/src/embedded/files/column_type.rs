//! The types of columns of text files and sheets: those that are declared, and the common type of two, for columns
//! that are merged from several files or rows.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use tidegate_log_formats::EntryTimeFormat;
use tidegate_query::DeclaredType;

use super::number_format::NumberFormat;

/// The types of columns of files, for messages.
const TYPES: &str = "string (text), integer (bigint), number (double precision), decimal(P,S) (numeric), boolean, date, timestamp and \
                     timestamptz; times may have a form, date DD.MM.YYYY, and so may numbers: number 1.234,5";

/// The declared type of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    String,
    /// A 64-bit integer.
    Integer,
    /// A 64-bit floating-point number.
    Number,
    /// A decimal number with the given precision and scale.
    Decimal(u8, i8),
    /// `true` or `false`.
    Boolean,
    /// A calendar date.
    Date,
    /// A date with a time of day.
    Timestamp,
    /// A date with a time of day and an offset from UTC.
    Instant,
    /// One of the last three, written in this form.
    Formed(Box<ColumnType>, Arc<EntryTimeFormat>),
    /// A type of numbers, written in this format.
    FormedNumber(Box<ColumnType>, NumberFormat),
}

impl ColumnType {
    /// Parses the name of a type, and the form behind it: `decimal(10,2)`, `timestamp DD.MM.YYYY HH24:MI`, `date %d.%m.%Y`,
    /// `number 1.234,5`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unknown = || format!("there is no type {text:?}; there are {TYPES}");
        let (declared, form) = DeclaredType::split_from(text).ok_or_else(unknown)?;
        let plain = match declared {
            DeclaredType::Text => Self::String,
            DeclaredType::Integer(64) => Self::Integer,
            DeclaredType::Double => Self::Number,
            DeclaredType::Decimal(precision, scale) => Self::Decimal(precision, scale),
            DeclaredType::Boolean => Self::Boolean,
            DeclaredType::Date => Self::Date,
            DeclaredType::Timestamp | DeclaredType::LocalTimestamp => Self::Timestamp,
            DeclaredType::Instant => Self::Instant,
            _ => return Err(unknown()),
        };
        match (form.trim(), &plain) {
            ("", _) => Ok(plain),
            (form, Self::Date | Self::Timestamp | Self::Instant) => {
                let form = read_form(form, &plain)?;
                Ok(Self::Formed(Box::new(plain), Arc::new(form)))
            }
            (form, Self::Integer | Self::Number | Self::Decimal(..)) => match NumberFormat::from_example(form) {
                Some(format) => Ok(Self::FormedNumber(Box::new(plain), format)),
                None => Err(format!(
                    "{form:?} is no form of numbers; write 1234.5 as the column has it, such as 1234,5 or 1.234,5"
                )),
            },
            (form, _) => Err(format!("{form:?} is no part of a type; only types of times and of numbers have a form")),
        }
    }

    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Self::String => DataType::Utf8,
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
            Self::Boolean => DataType::Boolean,
            Self::Date => DataType::Date32,
            Self::Timestamp => TEXT_TIMESTAMP,
            Self::Instant => TEXT_INSTANT.clone(),
            Self::Formed(plain, _) | Self::FormedNumber(plain, _) => plain.data_type(),
        }
    }

    /// The type without a form.
    pub(crate) fn plain(&self) -> &Self {
        match self {
            Self::Formed(plain, _) | Self::FormedNumber(plain, _) => plain,
            plain => plain,
        }
    }

    /// The declared format of numbers.
    pub(crate) fn number_format(&self) -> Option<NumberFormat> {
        match self {
            Self::FormedNumber(_, format) => Some(*format),
            _ => None,
        }
    }

    /// The declared form of times.
    pub(crate) fn form(&self) -> Option<&Arc<EntryTimeFormat>> {
        match self {
            Self::Formed(_, form) => Some(form),
            _ => None,
        }
    }
}

/// The form of a column of this type.
fn read_form(form: &str, column: &ColumnType) -> Result<EntryTimeFormat, String> {
    let format = EntryTimeFormat::parse(form).map_err(|error| error.to_string())?;
    let parts = format.parts();
    if !parts.has_year {
        return Err(format!("the form {form:?} has no year; write YYYY where the year is"));
    }
    if *column == ColumnType::Instant && !parts.has_zone {
        return Err(format!(
            "the form {form:?} has no offset from UTC, such as TZH; write timestamp for times without one"
        ));
    }
    Ok(format)
}

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
    fn names_and_forms_are_parsed() {
        assert_eq!(ColumnType::parse("decimal(10, 2)"), Ok(ColumnType::Decimal(10, 2)));
        assert_eq!(ColumnType::parse("bigint"), Ok(ColumnType::Integer));
        assert_eq!(ColumnType::parse("date"), Ok(ColumnType::Date));
        let formed = ColumnType::parse("date DD.MM.YYYY").unwrap();
        assert_eq!(formed, ColumnType::parse("date %d.%m.%Y").unwrap());
        assert_eq!((formed.data_type(), formed.form().is_some()), (DataType::Date32, true));
        let formed = ColumnType::parse("decimal(10,2) 1.234,5").unwrap();
        assert_eq!(formed.number_format(), Some(NumberFormat { decimal: ',', thousands: Some('.') }));
        assert_eq!(formed.plain(), &ColumnType::Decimal(10, 2));
        assert_eq!(ColumnType::parse("timestamptz YYYY-MM-DD HH24:MI TZH").unwrap().data_type(), *TEXT_INSTANT);
        for (wrong, part) in [
            ("", "there is no type \"\""),
            ("moment", "there are string (text), integer (bigint)"),
            ("smallint", "there is no type \"smallint\""),
            ("decimal(3,4)", "there is no type"),
            ("boolean DD", "\"DD\" is no part of a type"),
            ("integer DD", "\"DD\" is no form of numbers; write 1234.5 as the column has it"),
            ("date DD.MM.JJJJ", "has an unknown letter at character 7"),
            ("date DD.MM.", "has no year"),
            ("date any", "has no year"),
            ("timestamp HH:MI", "has no month and day"),
            ("timestamptz DD.MM.YYYY HH:MI", "has no offset from UTC"),
        ] {
            let error = ColumnType::parse(wrong).unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

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
