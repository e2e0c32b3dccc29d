//! What one scan of a log computes.

use thiserror::Error;

use super::facet::FACET_VALUES_MAX;
use super::page::{EntryKey, LogCursor, LogDirection};
use super::patterns::PATTERNS_MAX;
use super::search::LogCondition;
use super::selection::FieldSelections;
use super::time::TimeRange;

/// The maximum number of entries in a page.
pub const PAGE_ENTRIES_MAX: usize = 10_000;
/// The maximum number of fields with facets in one request.
pub const FACET_FIELDS_MAX: usize = 50;

/// What one scan of a log computes. Everything but `context` is about the rows that match the range, the condition and
/// the selections.
#[derive(Debug, Clone, Default)]
pub struct LogScanRequest {
    /// The column with the time of an entry.
    pub time_column: String,
    /// The column with the text of an entry; patterns need it.
    pub message_column: Option<String>,
    /// The range of time. Rows without a time match only if it is unbounded.
    pub range: TimeRange,
    /// The full-text query and other conditions over columns.
    pub condition: Option<LogCondition>,
    /// The selected values of fields.
    pub selections: FieldSelections,
    /// The fields whose values are counted.
    pub facets: Vec<FacetRequest>,
    /// The number of rows over time.
    pub histogram: Option<HistogramRequest>,
    /// A page of entries.
    pub page: Option<PageRequest>,
    /// The maximum number of patterns of messages; `None` for no patterns.
    pub patterns: Option<usize>,
    /// The entries around one entry, whether they match or not.
    pub context: Option<ContextRequest>,
    /// The columns of the entries; `None` for all. Names that do not exist are ignored.
    pub columns: Option<Vec<String>>,
}

/// A field whose values are counted over the rows that match the selections of every other field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetRequest {
    /// The field.
    pub field: String,
    /// The maximum number of values in the answer.
    pub values_max: usize,
    /// For a numeric field, the maximum number of ranges into which its values are grouped, at least 2; `None` for single values.
    pub ranges: Option<usize>,
}

/// The number of rows over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramRequest {
    /// The field whose values are series; `None` for one series with all rows.
    pub field: Option<String>,
    /// The least number of bars, where round widths and the maximum allow it.
    pub bars: usize,
    /// The maximum number of series.
    pub series_max: usize,
}

/// A page of entries.
#[derive(Debug, Clone, Default)]
pub struct PageRequest {
    /// The direction. A cursor must have the same one.
    pub direction: LogDirection,
    /// The maximum number of entries. A page of more than [`PAGE_BYTES_MAX`](super::PAGE_BYTES_MAX) bytes has fewer.
    pub limit: usize,
    /// Where the page begins; `None` for the newest or the oldest entry.
    pub cursor: Option<LogCursor>,
}

/// The entries before and after one entry of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRequest {
    /// The entry.
    pub key: EntryKey,
    /// Its number among the entries with the same key.
    pub ordinal: u64,
    /// The maximum number of entries before it.
    pub before: usize,
    /// The maximum number of entries after it.
    pub after: usize,
}

/// A request that cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogRequestError {
    /// A number exceeds its maximum.
    #[error("{name} is {value}; the maximum is {max}")]
    TooMany {
        /// What the number is.
        name: &'static str,
        /// The number.
        value: usize,
        /// The maximum.
        max: usize,
    },
    /// The cursor has another direction than the page.
    #[error("the cursor goes {cursor}, and direction is {direction}; leave direction out, or the cursor")]
    Direction {
        /// The direction of the cursor.
        cursor: &'static str,
        /// The direction of the request.
        direction: &'static str,
    },
    /// Patterns need the text of entries.
    #[error("patterns need a column with the message, and the source has none")]
    NoMessage,
}

impl LogScanRequest {
    /// Checks the bounds of the request.
    pub(super) fn validate(&self) -> Result<(), LogRequestError> {
        let page = self.page.as_ref().map_or(0, |page| page.limit);
        let context = self.context.as_ref().map_or(0, |context| context.before.max(context.after));
        let values = self.facets.iter().map(|facet| facet.values_max).max().unwrap_or(0);
        let bounds = [
            ("limit", page, PAGE_ENTRIES_MAX),
            ("context", context, PAGE_ENTRIES_MAX),
            ("the number of facets", self.facets.len(), FACET_FIELDS_MAX),
            ("the number of values", values, FACET_VALUES_MAX),
            ("the number of patterns", self.patterns.unwrap_or(0), PATTERNS_MAX),
        ];
        if let Some((name, value, max)) = bounds.into_iter().find(|(_, value, max)| value > max) {
            return Err(LogRequestError::TooMany { name, value, max });
        }
        if self.patterns.is_some() && self.message_column.is_none() {
            return Err(LogRequestError::NoMessage);
        }
        let page = self.page.as_ref();
        match page.and_then(|page| Some((page.direction, page.cursor.as_ref()?.direction()))) {
            Some((direction, cursor)) if direction != cursor => {
                Err(LogRequestError::Direction { cursor: direction_name(cursor), direction: direction_name(direction) })
            }
            _ => Ok(()),
        }
    }
}

fn direction_name(direction: LogDirection) -> &'static str {
    match direction {
        LogDirection::Backward => "backward",
        LogDirection::Forward => "forward",
    }
}
