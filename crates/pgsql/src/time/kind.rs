//! PostgreSQL's types of times, as Arrow has them.

use arrow::datatypes::DataType;

/// The kind of a value for the functions of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeKind {
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Integer,
    /// A number that may have a fraction.
    Number,
    Text,
    Null,
    Other,
}

impl TimeKind {
    pub(crate) fn from_data_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Time32(_) | DataType::Time64(_) => Self::Time,
            DataType::Timestamp(_, None) => Self::Timestamp,
            DataType::Timestamp(_, Some(_)) => Self::Timestamptz,
            DataType::Interval(_) | DataType::Duration(_) => Self::Interval,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Dictionary(_, values) if matches!(Self::from_data_type(values), Self::Text) => Self::Text,
            DataType::Null => Self::Null,
            integer if integer.is_integer() => Self::Integer,
            number if number.is_numeric() => Self::Number,
            _ => Self::Other,
        }
    }

    /// Whether it is a point in time with a date.
    pub(crate) fn is_moment(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp | Self::Timestamptz)
    }

    /// Whether the value may be an untyped literal.
    pub(crate) fn accepts_untyped_literal(self) -> bool {
        matches!(self, Self::Text | Self::Null)
    }

    /// Returns the type's name in PostgreSQL.
    pub(crate) fn name(self, data_type: &DataType) -> String {
        let name = match self {
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timestamptz => "timestamp with time zone",
            Self::Interval => "interval",
            Self::Integer => "integer",
            Self::Text => "text",
            Self::Null => "unknown",
            Self::Number if data_type.is_floating() => "double precision",
            Self::Number => "numeric",
            Self::Other => return data_type.to_string(),
        };
        name.to_owned()
    }
}
