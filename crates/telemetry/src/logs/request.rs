//! What one scan of a log computes, and the values that a caller chose for fields, as in the facets of an answer.

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::RandomState;
use thiserror::Error;

use super::facet::FACET_VALUES_MAX;
use super::page::{EntryKey, LogCursor, LogDirection};
use super::patterns::PATTERNS_MAX;
use super::search::LogCondition;
use super::time::TimeRange;
use super::value::MISSING;

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

/// The maximum number of fields with a selection in one request.
pub const SELECTED_FIELDS_MAX: usize = 32;
/// The maximum number of values that one field may have in a request.
pub const SELECTED_VALUES_MAX: usize = 1_000;

/// Values for fields: a row matches if it has one of the values in each of the fields. Values compare in their display
/// form; `-` and null select rows where the value is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelections(BTreeMap<String, SelectedValues>);

/// The values of one field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SelectedValues(HashSet<String, RandomState>);

/// Selections that are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// A field without values would match nothing.
    #[error("selections.{0} has no values; list at least one, or leave the field out")]
    Empty(String),
    /// More fields than [`SELECTED_FIELDS_MAX`].
    #[error("selections has {0} fields; the maximum is {SELECTED_FIELDS_MAX}")]
    TooManyFields(usize),
    /// More values than [`SELECTED_VALUES_MAX`].
    #[error("selections.{0} has {1} values; the maximum is {SELECTED_VALUES_MAX}")]
    TooManyValues(String, usize),
}

impl FieldSelections {
    /// Selections of fields; a value that is `None` selects missing values.
    ///
    /// # Errors
    /// If a field has no values, or there are too many fields or values.
    pub fn new(fields: impl IntoIterator<Item = (String, Vec<Option<String>>)>) -> Result<Self, SelectionError> {
        let mut selections = BTreeMap::new();
        for (field, values) in fields {
            match values.len() {
                0 => return Err(SelectionError::Empty(field)),
                count if count > SELECTED_VALUES_MAX => return Err(SelectionError::TooManyValues(field, count)),
                _ => {}
            }
            let values = values.into_iter().map(|value| value.unwrap_or_else(|| MISSING.to_owned()));
            selections.entry(field).or_insert_with(SelectedValues::default).0.extend(values);
        }
        match selections.len() {
            count if count > SELECTED_FIELDS_MAX => Err(SelectionError::TooManyFields(count)),
            _ => Ok(Self(selections)),
        }
    }

    /// The fields in the order of their names, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SelectedValues)> {
        self.0.iter().map(|(field, values)| (field.as_str(), values))
    }

    /// Whether no field has a selection.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl SelectedValues {
    /// Whether a value in its display form is selected.
    pub fn contains(&self, display_value: &str) -> bool {
        self.0.contains(display_value)
    }

    /// Whether missing values are selected.
    pub fn selects_missing(&self) -> bool {
        self.contains(MISSING)
    }

    /// The values in order.
    pub fn to_sorted(&self) -> Vec<&str> {
        let mut values: Vec<&str> = self.0.iter().map(String::as_str).collect();
        values.sort_unstable();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_dash_select_missing_values() {
        let fields = [("a".to_owned(), vec![None, Some("x".to_owned())]), ("b".to_owned(), vec![Some("-".to_owned())])];
        let selections = FieldSelections::new(fields).unwrap();
        assert!(selections.iter().all(|(_, values)| values.selects_missing()));
        let values: Vec<_> = selections.iter().map(|(field, values)| (field, values.to_sorted())).collect();
        assert_eq!(values, [("a", vec!["-", "x"]), ("b", vec!["-"])]);
    }

    #[test]
    fn bounds_are_errors() {
        let error = |fields| FieldSelections::new(fields).unwrap_err().to_string();
        assert!(error(vec![("a".to_owned(), vec![])]).starts_with("selections.a has no values"));
        assert!(error(vec![("a".to_owned(), vec![None; 1_001])]).contains("1001 values"));
        let fields = (0..33).map(|index| (index.to_string(), vec![None])).collect();
        assert!(error(fields).contains("33 fields"));
    }
}
