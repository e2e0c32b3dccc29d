//! An answer as both sides give it: columns with a class of type, rows of values.

use std::fmt;

use super::number::Decimal;

/// What sort of type it is: types of one class are compared by their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TypeClass {
    /// Integers of each width, numerics, floating point.
    Number,
    Text,
    Boolean,
    Date,
    Time,
    Timestamp,
    /// A timestamp with time zone.
    Instant,
    Interval,
    Bytes,
    /// `json` and `jsonb`; the other side may have text.
    Json,
    Array(Box<TypeClass>),
    /// A type without values, of a column that is all NULL.
    Nothing,
    /// Types that only one side has, such as ranges and structs.
    Other(String),
}

impl fmt::Display for TypeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(element) => write!(f, "{element}[]"),
            Self::Other(name) => f.write_str(name),
            class => f.write_str(&format!("{class:?}").to_lowercase()),
        }
    }
}

impl TypeClass {
    /// The class of the elements; the class itself if it is not an array. PostgreSQL's arrays of several dimensions
    /// have the type of one-dimensional arrays.
    pub(crate) fn leaf(&self) -> &TypeClass {
        match self {
            Self::Array(element) => element.leaf(),
            class => class,
        }
    }

    /// Whether a column of class `self` of PostgreSQL may have the class `ours`.
    pub(crate) fn agrees(&self, ours: &TypeClass) -> bool {
        match (self, ours) {
            (Self::Json | Self::Other(_), Self::Text) | (_, Self::Nothing) => true,
            (Self::Array(_), Self::Array(_)) => self.leaf().agrees(ours.leaf()),
            (theirs, ours) => theirs == ours,
        }
    }
}

/// One value. Dates and times are texts as PostgreSQL writes them, since that form is unique.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Exact(Decimal),
    /// Floating point, with the relative difference that its type allows.
    Float(f64, f64),
    Plain(String),
    Json(serde_json::Value),
    /// Months, days and microseconds.
    Interval(i64, i64, i128),
    Array(Vec<Value>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Exact(number) => number.fmt(f),
            Self::Float(number, _) => write!(f, "{number:?}"),
            Self::Plain(text) => f.write_str(&text.escape_debug().to_string()),
            Self::Json(value) => value.fmt(f),
            Self::Interval(months, days, microseconds) => write!(f, "{months} mons {days} days {microseconds} us"),
            Self::Array(values) => {
                f.write_str("{")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A column's name and class.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) class: TypeClass,
}

/// The rows of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// Rows of an answer that are printed.
const PRINTED_ROWS_MAX: usize = 6;

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = self.columns.iter().map(|column| format!("{} {}", column.name, column.class)).collect();
        write!(f, "{} rows ({})", self.rows.len(), columns.join(", "))?;
        for row in self.rows.iter().take(PRINTED_ROWS_MAX) {
            write!(f, "\n      {}", line(row))?;
        }
        if self.rows.len() > PRINTED_ROWS_MAX {
            f.write_str("\n      …")?;
        }
        Ok(())
    }
}

/// A row on one line.
pub(crate) fn line(row: &[Value]) -> String {
    row.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ")
}
