//! The declared types of columns of text files and sheets.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use tidegate_log_formats::EntryTimeFormat;
use tidegate_query::DeclaredType;

use super::number_format::NumberFormat;
use super::type_widening::{TEXT_INSTANT, TEXT_TIMESTAMP};

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
}
