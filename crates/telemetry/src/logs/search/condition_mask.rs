//! Conditions over record batches: which rows match.

use arrow::array::{Array, AsArray, GenericStringArray, OffsetSizeTrait, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;

use super::condition::LogCondition;
use super::text_matcher::{TextMatcher, find_all};
use crate::logs::value::{EncodedColumn, MISSING, borrowed_text, is_missing};

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
