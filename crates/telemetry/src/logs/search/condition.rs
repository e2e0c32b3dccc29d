//! What a query means over columns, free of any database. Conditions are evaluated over batches here, and rendered as
//! SQL elsewhere.

use arrow::array::{Array, AsArray, GenericStringArray, OffsetSizeTrait, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;

use super::text_pattern::{TextMatcher, TextPattern, find_all};
use super::{QueryNode, QueryTerm, TextQuery};
use crate::logs::value::{EncodedColumn, MISSING, borrowed_text, is_missing};

/// A condition over named columns. It is true or false for every row, never unknown: a comparison with a missing value is
/// false, and its negation is true. Values compare in their display form, in which a missing value is `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogCondition {
    /// The value contains the pattern.
    Contains {
        /// The column.
        column: String,
        /// What the value contains.
        pattern: TextPattern,
        /// Whether upper and lower case are different.
        is_case_sensitive: bool,
    },
    /// The whole value matches the pattern.
    Equals {
        /// The column.
        column: String,
        /// The pattern of the whole value.
        pattern: TextPattern,
        /// Whether upper and lower case are different.
        is_case_sensitive: bool,
    },
    /// The value is null or `-`, or the column does not exist.
    Missing {
        /// The column.
        column: String,
    },
    /// The negation.
    Not(Box<LogCondition>),
    /// All conditions hold; without conditions, it is true.
    And(Vec<LogCondition>),
    /// At least one condition holds; without conditions, it is false.
    Or(Vec<LogCondition>),
}

/// Where a query searches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchColumns {
    /// The columns with the text of an entry. Words and phrases are searched here, and `field:value` on one of these
    /// columns is true if the text contains the value.
    pub message: Vec<String>,
    /// Further columns in which words and phrases are searched: all fields, on demand.
    pub further: Vec<String>,
    /// Whether upper and lower case are different.
    pub is_case_sensitive: bool,
}

impl TextQuery {
    /// The condition that this query is over the given columns.
    pub fn to_condition(&self, columns: &SearchColumns) -> LogCondition {
        node_condition(self.root(), columns)
    }
}

impl LogCondition {
    /// Whether the condition is true for every row.
    pub fn is_always_true(&self) -> bool {
        matches!(self, Self::And(parts) if parts.iter().all(Self::is_always_true))
    }
}

fn node_condition(node: &QueryNode, columns: &SearchColumns) -> LogCondition {
    let all = |parts: &[QueryNode]| parts.iter().map(|part| node_condition(part, columns)).collect();
    match node {
        QueryNode::Term(term) => term_condition(term, columns),
        QueryNode::Not(inner) => LogCondition::Not(Box::new(node_condition(inner, columns))),
        QueryNode::And(parts) => LogCondition::And(all(parts)),
        QueryNode::Or(parts) => LogCondition::Or(all(parts)),
    }
}

fn term_condition(term: &QueryTerm, columns: &SearchColumns) -> LogCondition {
    let is_case_sensitive = columns.is_case_sensitive;
    let contains = |column: &String| {
        let (column, pattern) = (column.clone(), term.pattern.clone());
        LogCondition::Contains { column, pattern, is_case_sensitive }
    };
    let Some(column) = term.field.clone() else {
        let mut searched = columns.message.iter().chain(&columns.further).map(contains);
        return match (searched.next(), searched.next()) {
            (Some(only), None) => only,
            (first, second) => LogCondition::Or(first.into_iter().chain(second).chain(searched).collect()),
        };
    };
    if !term.is_quoted && term.pattern.as_literal() == Some(MISSING) {
        return LogCondition::Missing { column };
    }
    if columns.message.contains(&column) {
        return contains(&column);
    }
    LogCondition::Equals { column, pattern: term.pattern.clone(), is_case_sensitive }
}

/// With fewer than one candidate in this many rows, rows are searched one by one, and not as one text.
const DENSE_ROWS_FACTOR: usize = 8;

/// A compiled condition.
#[derive(Debug)]
pub struct ConditionMatcher(MatcherNode);

#[derive(Debug)]
enum MatcherNode {
    Text { column: String, matcher: TextMatcher },
    Missing { column: String },
    Not(Box<MatcherNode>),
    And(Vec<MatcherNode>),
    Or(Vec<MatcherNode>),
}

impl ConditionMatcher {
    /// Compiles `condition`.
    pub fn new(condition: &LogCondition) -> Self {
        Self(MatcherNode::new(condition))
    }

    /// The rows among `rows` that match. A column that the batch does not have is missing in all its rows.
    pub fn matching_rows(&self, batch: &RecordBatch, rows: &BooleanBuffer) -> BooleanBuffer {
        self.0.matching_rows(batch, rows)
    }
}

impl MatcherNode {
    fn new(condition: &LogCondition) -> Self {
        let all = |parts: &[LogCondition]| parts.iter().map(Self::new).collect();
        match condition {
            LogCondition::Contains { column, pattern, is_case_sensitive } => {
                Self::Text { column: column.clone(), matcher: TextMatcher::new(pattern, false, *is_case_sensitive) }
            }
            LogCondition::Equals { column, pattern, is_case_sensitive } => {
                Self::Text { column: column.clone(), matcher: TextMatcher::new(pattern, true, *is_case_sensitive) }
            }
            LogCondition::Missing { column } => Self::Missing { column: column.clone() },
            LogCondition::Not(inner) => Self::Not(Box::new(Self::new(inner))),
            LogCondition::And(parts) => Self::And(all(parts)),
            LogCondition::Or(parts) => Self::Or(all(parts)),
        }
    }

    fn matching_rows(&self, batch: &RecordBatch, rows: &BooleanBuffer) -> BooleanBuffer {
        match self {
            Self::Text { column, matcher } => match batch.column_by_name(column) {
                Some(array) => matching_text(array.as_ref(), matcher, rows),
                None => BooleanBuffer::new_unset(rows.len()),
            },
            Self::Missing { column } => EncodedColumn::from_batch(batch, column, rows).filter(rows, is_missing),
            Self::Not(inner) => rows & &!&inner.matching_rows(batch, rows),
            Self::And(parts) => {
                let start = rows.clone();
                parts.iter().fold(start, |rows, part| match rows.count_set_bits() {
                    0 => rows,
                    _ => part.matching_rows(batch, &rows),
                })
            }
            Self::Or(parts) => {
                let mut found = BooleanBuffer::new_unset(rows.len());
                for part in parts {
                    let open = rows & &!&found;
                    found = &found | &part.matching_rows(batch, &open);
                }
                found
            }
        }
    }
}

fn matching_text(array: &dyn Array, matcher: &TextMatcher, rows: &BooleanBuffer) -> BooleanBuffer {
    let found = match array.data_type() {
        DataType::Utf8 => bulk_search(array.as_string::<i32>(), matcher, rows),
        DataType::LargeUtf8 => bulk_search(array.as_string::<i64>(), matcher, rows),
        DataType::Utf8View => None,
        _ => {
            let mut buffer = String::new();
            let matches = |text: &str| !is_missing(text) && matcher.matches(text, &mut buffer);
            return EncodedColumn::new(array, rows).filter(rows, matches);
        }
    };
    found.unwrap_or_else(|| {
        let mut buffer = String::new();
        BooleanBuffer::collect_bool(rows.len(), |row| {
            let text = if rows.value(row) { borrowed_text(array, row) } else { None };
            text.is_some_and(|text| !is_missing(text) && matcher.matches(text, &mut buffer))
        })
    })
}

/// Searches the texts of all rows as one. `None` if they must be searched one by one.
fn bulk_search<O: OffsetSizeTrait>(
    array: &GenericStringArray<O>,
    matcher: &TextMatcher,
    rows: &BooleanBuffer,
) -> Option<BooleanBuffer> {
    let [first, further @ ..] = matcher.parts() else { return None };
    if rows.count_set_bits() < rows.len() / DENSE_ROWS_FACTOR {
        return None;
    }
    let offsets = array.value_offsets();
    let end_of_all = offsets.last()?.as_usize();
    let bytes = array.value_data().get(..end_of_all)?;
    let comparison = matcher.bulk_comparison(bytes.get(offsets.first()?.as_usize()..)?)?;
    let mut found = vec![false; array.len()];
    let mut from = offsets.first()?.as_usize();
    let mut row = 0;
    while let Some(start) = bytes.get(from..).and_then(|rest| first.find(rest, comparison)) {
        let start = from + start;
        // The row whose text begins last at or before the match; empty texts before it begin there too.
        row += offsets.get(row + 1..)?.partition_point(|offset| offset.as_usize() <= start);
        let (Some(end), Some(place)) = (offsets.get(row + 1), found.get_mut(row)) else { break };
        let after = start + first.len();
        let rest = bytes.get(after..end.as_usize());
        *place = rest.is_some_and(|rest| find_all(further, rest, comparison));
        // A match that crosses the end of its row may hide another one that begins later; all others settle the row.
        from = if after > end.as_usize() { start + 1 } else { end.as_usize() };
    }
    let is_dash = |row| is_missing(borrowed_text(array, row).unwrap_or(MISSING));
    let is_found = |row: usize| found.get(row).copied().unwrap_or(false) && !is_dash(row);
    Some(BooleanBuffer::collect_bool(rows.len(), |row| rows.value(row) && is_found(row)))
}
