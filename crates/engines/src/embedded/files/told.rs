//! What an owner tells of a table of text files, so that it need not be found out.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::kind::kind_of;
use super::widen::TEXT_TIMESTAMP;

/// Bytes that the text for null may have.
const NULL_BYTES_MAX: usize = 15;

/// What an owner tells of a table of CSV files. What is not told is found out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextTable {
    /// What stands between values.
    pub delimiter: Option<u8>,
    /// What stands around values; `"` unless told.
    pub quote: Option<u8>,
    /// Whether the first line names the columns; it does unless told. Without names they are `column_1`, `column_2`, …
    pub has_header: Option<bool>,
    /// The text that means null, at most 15 bytes, beside the empty one.
    pub null: Option<String>,
    /// Lines that begin with it are skipped.
    pub comment: Option<u8>,
    /// Types of columns by their names. A value that does not fit is an error then, and never changes the type.
    pub columns: BTreeMap<String, ColumnType>,
}

/// The type of a column of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    String,
    /// A whole number of 64 bits.
    Integer,
    /// A floating number of 64 bits.
    Number,
    /// A decimal number of so many digits, so many of them behind the point.
    Decimal(u8, i8),
    /// True or false.
    Boolean,
    /// A day.
    Date,
    /// A moment.
    Timestamp,
}

impl ColumnType {
    /// Reads `string`, `integer`, `number`, `boolean`, `date`, `timestamp` or `decimal(P,S)`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "date" => Self::Date,
            "timestamp" => Self::Timestamp,
            _ => {
                let (precision, scale) = text.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
                let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
                if !(1..=38).contains(&precision) || !(0..=precision).contains(&scale) {
                    return None;
                }
                Self::Decimal(precision, i8::try_from(scale).ok()?)
            }
        })
    }

    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::String => DataType::Utf8,
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(precision, scale),
            Self::Boolean => DataType::Boolean,
            Self::Date => DataType::Date32,
            Self::Timestamp => TEXT_TIMESTAMP,
        }
    }
}

/// How the values of a CSV file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CsvDialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    pub(crate) has_header: bool,
    pub(crate) comment: Option<u8>,
    null: NullText,
}

/// The text for null; empty for none beside the empty one. Copied with each look, so it is of fixed size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct NullText {
    bytes: [u8; NULL_BYTES_MAX],
    length: u8,
}

impl CsvDialect {
    /// The dialect that `told` describes, with `delimiter` where it tells none.
    pub(crate) fn new(delimiter: u8, told: &TextTable) -> Self {
        let mut null = NullText::default();
        if let Some(text) = told.null.as_ref().filter(|text| text.len() <= NULL_BYTES_MAX) {
            null.bytes[..text.len()].copy_from_slice(text.as_bytes());
            null.length = u8::try_from(text.len()).unwrap_or_default();
        }
        Self {
            delimiter: told.delimiter.unwrap_or(delimiter),
            quote: told.quote.unwrap_or(b'"'),
            has_header: told.has_header.unwrap_or(true),
            comment: told.comment,
            null,
        }
    }

    /// The text for null, if there is one.
    pub(crate) fn null(&self) -> Option<&str> {
        let bytes = &self.null.bytes[..usize::from(self.null.length)];
        std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty())
    }
}

/// What is told of each table, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told(Arc<BTreeMap<String, Arc<TextTable>>>);

impl Told {
    pub(crate) fn new(tables: BTreeMap<String, TextTable>) -> Self {
        Self(Arc::new(tables.into_iter().map(|(name, table)| (name, Arc::new(table))).collect()))
    }

    /// What is told of the table that the file at `location` belongs to: a table is called like its file, or like
    /// the folder that it is in, with points between the names of folders.
    pub(crate) fn about(&self, location: &str) -> Arc<TextTable> {
        let stem = kind_of(location).map_or(location, |(stem, _)| stem).replace('/', ".");
        let is_meant = |name: &str| stem == name || stem.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let found = self.0.iter().rev().find(|(name, _)| is_meant(name));
        found.map(|(_, table)| table.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read() {
        assert_eq!(ColumnType::parse("decimal(10, 2)"), Some(ColumnType::Decimal(10, 2)));
        assert_eq!(ColumnType::parse("date"), Some(ColumnType::Date));
        for wrong in ["", "int", "decimal", "decimal(39,2)", "decimal(3,4)", "decimal(3,-1)", "decimal(3)"] {
            assert_eq!(ColumnType::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_belongs_to_the_table_of_its_name_or_folder() {
        let named = |null: &str| TextTable { null: Some(null.to_owned()), ..TextTable::default() };
        let told = Told::new([("a", named("1")), ("a.b", named("2"))].map(|(n, t)| (n.to_owned(), t)).into());
        let about = |location: &str| told.about(location).null.clone();
        assert_eq!(about("a.csv"), Some("1".to_owned()));
        assert_eq!(about("a/x.csv.gz"), Some("1".to_owned()));
        assert_eq!(about("a/b/x.csv"), Some("2".to_owned()));
        assert_eq!(about("ab.csv"), None);
    }
}
