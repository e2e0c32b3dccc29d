//! Bodies that are refused, and rows that are rejected.

use std::fmt;

use tidegate_core::MemoryRefusal;

use crate::value::cut_at;

/// The largest text of a rejected row that is kept, in bytes.
pub const REJECTED_TEXT_BYTES_MAX: usize = 1_024;
/// How many rejected rows an error has at most. Others are only counted.
pub const REPORTED_ROWS_MAX: usize = 100;

/// Where a row is in its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowPosition {
    /// The line that the row begins in, in NDJSON and CSV. The first line is 1.
    Line(u64),
    /// The number of the row, in a JSON array, Arrow and Parquet. The first row is 0.
    Index(u64),
}

/// A row that does not fit its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRow {
    /// Where the row is.
    pub position: RowPosition,
    /// The column that does not fit, with the path within it, such as `tags[3].name`. Nothing if it is no single column.
    pub column: Option<String>,
    /// Why it does not fit, for the sender.
    pub reason: String,
    /// The row as it was written: the first [`REJECTED_TEXT_BYTES_MAX`] bytes. Empty in Arrow and Parquet.
    pub text: String,
}

/// Why a body is refused. No row of it may be stored, also not those that were decoded before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The table or the options cannot be used with the format.
    #[error("{0}")]
    Options(String),
    /// The bytes are not in the coding or in the format, so that the rest has no rows.
    #[error("{0}")]
    Malformed(String),
    /// The body ends before it is complete.
    #[error("{0}")]
    Incomplete(String),
    /// The body exceeds one of [`crate::BodyLimits`].
    #[error("{0}")]
    TooLarge(String),
    /// The memory that the rows need is not available.
    #[error("the rows of the body need memory: {0}")]
    Memory(MemoryRefusal),
    /// The columns of the body do not fit the table.
    #[error("{0}")]
    Columns(String),
    /// Rows do not fit, and [`crate::RejectMode::All`] applies.
    #[error("{}", describe_rejected(.rows, *.count))]
    Rejected {
        /// The first of them, at most [`REPORTED_ROWS_MAX`].
        rows: Vec<RejectedRow>,
        /// How many there are up to the place where reading ended.
        count: u64,
    },
    /// The spooled file of a Parquet body cannot be read.
    #[error("the spooled body cannot be read: {0}")]
    Spool(String),
}

/// A value that does not fit its column. It is made for one value of many, so it may be large.
#[derive(Debug)]
pub(crate) struct CellError {
    pub(crate) path: String,
    pub(crate) reason: String,
    /// Whether the text itself is wrong, so that no column is to blame.
    pub(crate) is_syntax: bool,
}

pub(crate) type CellResult<T> = Result<T, Box<CellError>>;

impl CellError {
    pub(crate) fn new(reason: impl Into<String>) -> Box<Self> {
        Box::new(Self { path: String::new(), reason: reason.into(), is_syntax: false })
    }

    /// The same error for the column or member with this name.
    pub(crate) fn in_member(mut self: Box<Self>, name: &str) -> Box<Self> {
        let name = cut_at(name, REJECTED_TEXT_BYTES_MAX);
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{separator}{}", self.path);
        self
    }

    /// The same error for an item of a list.
    pub(crate) fn in_item(mut self: Box<Self>, index: usize) -> Box<Self> {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("[{index}]{separator}{}", self.path);
        self
    }
}

impl From<crate::json::JsonSyntaxError> for Box<CellError> {
    fn from(error: crate::json::JsonSyntaxError) -> Self {
        let reason = format!("the JSON is malformed at byte {} of the row: {}", error.position + 1, error.reason);
        Box::new(CellError { path: String::new(), reason, is_syntax: true })
    }
}

impl RejectedRow {
    pub(crate) fn new(position: RowPosition, error: CellError, text: &[u8]) -> Self {
        let text = text.get(..REJECTED_TEXT_BYTES_MAX.saturating_mul(2)).unwrap_or(text);
        let text = String::from_utf8_lossy(text);
        let column = (!error.is_syntax && !error.path.is_empty()).then_some(error.path);
        Self { position, column, reason: error.reason, text: cut_at(&text, REJECTED_TEXT_BYTES_MAX).to_owned() }
    }
}

impl fmt::Display for RowPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(formatter, "line {line}"),
            Self::Index(index) => write!(formatter, "row {index}"),
        }
    }
}

impl fmt::Display for RejectedRow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(formatter, "{}, column \"{column}\": {}", self.position, self.reason),
            None => write!(formatter, "{}: {}", self.position, self.reason),
        }
    }
}

fn describe_rejected(rows: &[RejectedRow], count: u64) -> String {
    let first = rows.first().map(ToString::to_string).unwrap_or_default();
    match count {
        0 | 1 => first,
        _ => format!("{first} ({count} rows are rejected)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_code() {
        let error = CellError::new("it does not fit").in_member("name").in_item(3).in_member("tags");
        assert_eq!(error.path, "tags[3].name");
        let row = RejectedRow::new(RowPosition::Line(7), *error, b"{}");
        assert_eq!(row.to_string(), "line 7, column \"tags[3].name\": it does not fit");
        let error = BodyError::Rejected { rows: vec![row], count: 2 };
        assert_eq!(error.to_string(), "line 7, column \"tags[3].name\": it does not fit (2 rows are rejected)");
    }
}
