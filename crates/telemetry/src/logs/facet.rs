//! The values of a field with the number of rows that have each, in bounded memory.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::code_scale::CodeScale;
use super::number_ranges::NumberRangeCounter;
use super::request::FacetRequest;
use super::scan::FacetAnswer;
use super::value::{MISSING, is_missing};

/// The maximum number of distinct values of a field that are counted.
pub const FACET_DISTINCT_MAX: usize = 100_000;
/// The maximum size of the distinct values of a field in bytes. With many fields, each has less.
pub const FACET_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum size of the distinct values of all fields of a request in bytes.
pub const FACETS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The memory that a value needs beside its text: its entry in the table, and the overhead of the allocation.
const VALUE_OVERHEAD_BYTES: usize = 64;
/// The maximum number of values of a field in an answer.
pub const FACET_VALUES_MAX: usize = 1_000;

/// The values of a field, most frequent first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFacet {
    /// The field.
    pub field: String,
    /// The most frequent values; values with the same number of rows are in the order of their text.
    pub values: Vec<FacetValue>,
    /// The number of distinct values that were counted.
    pub distinct_values: u64,
    /// Whether a missing value is one of them.
    pub has_missing: bool,
    /// The number of counted values that are not in `values`.
    pub left_out_values: u64,
    /// The number of rows that have them.
    pub left_out_rows: u64,
    /// The number of rows whose value was not counted, because the field has more values than are kept. If it is not
    /// zero, there may be further values, each with at most this number of rows. The numbers of `values` are exact
    /// nevertheless.
    pub uncounted_rows: u64,
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetValue {
    /// The value in its display form; `-` if it is missing.
    pub value: String,
    /// A name to show beside the value, such as `info` for priority 6.
    pub display_name: Option<&'static str>,
    /// The number of rows.
    pub rows: u64,
}

/// Counts the values of one field. A value that is counted is counted from its first row on, so that its number is
/// always exact; once a bound is reached, new values only add to the number of uncounted rows.
#[derive(Debug)]
pub(super) struct FacetCounter {
    counts: HashMap<Box<str>, u64, RandomState>,
    bytes: usize,
    is_full: bool,
    uncounted_rows: u64,
    rare: RareValues,
    distinct_max: usize,
    bytes_max: usize,
}

/// Values that a database counted and did not return, because they are the least frequent ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RareValues {
    /// The number of distinct values.
    pub values: u64,
    /// The number of rows that have them.
    pub rows: u64,
    /// The maximum number of rows of one of them.
    pub rows_max: u64,
}

impl FacetCounter {
    /// The counter of one of `fields` fields.
    pub(super) fn new(fields: usize) -> Self {
        Self::with_bounds(FACET_DISTINCT_MAX, FACET_BYTES_MAX.min(FACETS_BYTES_MAX / fields.max(1)))
    }

    fn with_bounds(distinct_max: usize, bytes_max: usize) -> Self {
        let (counts, rare) = (HashMap::default(), RareValues::default());
        Self { counts, bytes: 0, is_full: false, uncounted_rows: 0, rare, distinct_max, bytes_max }
    }

    /// Adds the values that a database left out. No other rows may have them.
    pub(super) fn add_rare(&mut self, rare: RareValues) {
        self.rare.values += rare.values;
        self.rare.rows += rare.rows;
        self.rare.rows_max = self.rare.rows_max.max(rare.rows_max);
    }

    /// Adds rows with `value`.
    pub(super) fn add(&mut self, value: &str, rows: u64) {
        if rows == 0 {
            return;
        }
        if let Some(count) = self.counts.get_mut(value) {
            *count += rows;
            return;
        }
        // After the first value that did not fit, no other is admitted: it may have had rows before.
        let bytes = self.bytes + value.len() + VALUE_OVERHEAD_BYTES;
        self.is_full |= self.counts.len() >= self.distinct_max || bytes > self.bytes_max;
        if self.is_full {
            self.uncounted_rows += rows;
        } else {
            self.bytes = bytes;
            self.counts.insert(value.into(), rows);
        }
    }

    pub(super) fn finish(self, field: String, values_max: usize, scale: Option<CodeScale>) -> FieldFacet {
        let distinct_values = self.counts.len() as u64;
        let has_missing = self.counts.contains_key(MISSING);
        let mut counts: Vec<(Box<str>, u64)> = self.counts.into_iter().collect();
        counts
            .sort_unstable_by(|(value, rows), (other, other_rows)| other_rows.cmp(rows).then_with(|| value.cmp(other)));
        let left_out = counts.split_off(values_max.min(counts.len()));
        // A rare value cannot belong among those returned if each of these has more rows.
        let is_ranking_exact = !self.is_full && counts.last().is_some_and(|(_, rows)| *rows > self.rare.rows_max);
        let (rare, uncounted_rows) =
            if is_ranking_exact { (self.rare, 0) } else { (RareValues::default(), self.rare.rows) };
        let values = counts.into_iter().map(|(value, rows)| FacetValue {
            display_name: scale.and_then(|scale| scale.display_name(&value)),
            value: value.into(),
            rows,
        });
        FieldFacet {
            field,
            values: values.collect(),
            distinct_values: distinct_values + rare.values,
            has_missing,
            left_out_values: left_out.len() as u64 + rare.values,
            left_out_rows: left_out.iter().map(|(_, rows)| rows).sum::<u64>() + rare.rows,
            uncounted_rows: self.uncounted_rows + uncounted_rows,
        }
    }
}

/// The counter of one facet: of single values, or of ranges of numbers.
#[derive(Debug)]
pub(super) enum AnyFacetCounter {
    Values(FacetCounter),
    Ranges(NumberRangeCounter),
}

impl AnyFacetCounter {
    pub(super) fn add(&mut self, value: &str, rows: u64) {
        match self {
            Self::Values(counter) => counter.add(value, rows),
            Self::Ranges(counter) if is_missing(value) => counter.add_missing(rows),
            Self::Ranges(counter) => counter.add(value, rows),
        }
    }

    pub(super) fn finish(self, request: FacetRequest) -> FacetAnswer {
        match self {
            Self::Values(counter) => {
                let scale = CodeScale::from_column_name(&request.field);
                FacetAnswer::Values(counter.finish(request.field, request.values_max, scale))
            }
            Self::Ranges(counter) => FacetAnswer::Ranges(counter.finish(request.field, request.ranges.unwrap_or(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_counter_stays_exact_for_what_it_counts() {
        let mut counter = FacetCounter::with_bounds(2, 1_000);
        for value in ["b", "a", "c", "a", "c", "b", "b"] {
            counter.add(value, 1);
        }
        let facet = counter.finish("f".to_owned(), 1, None);
        assert_eq!(facet.values, [FacetValue { value: "b".to_owned(), display_name: None, rows: 3 }]);
        assert_eq!((facet.distinct_values, facet.left_out_values, facet.left_out_rows), (2, 1, 2));
        assert_eq!(facet.uncounted_rows, 2);
    }

    #[test]
    fn rare_values_are_left_out_exactly_or_uncounted() {
        let counter = |rows_max| {
            let mut counter = FacetCounter::new(1);
            counter.add("a", 5);
            counter.add("b", 3);
            counter.add_rare(RareValues { values: 4, rows: 7, rows_max });
            counter.finish("f".to_owned(), 1, None)
        };
        let exact = counter(3);
        assert_eq!((exact.distinct_values, exact.left_out_values, exact.left_out_rows), (6, 5, 10));
        assert_eq!(exact.uncounted_rows, 0);
        let tied = counter(5);
        assert_eq!((tied.left_out_values, tied.left_out_rows, tied.uncounted_rows), (1, 3, 7));
    }

    #[test]
    fn a_long_value_closes_the_counter() {
        let mut counter = FacetCounter::new(1);
        counter.add(&"x".repeat(FACET_BYTES_MAX + 1), 1);
        counter.add("short", 1);
        assert_eq!(counter.finish("f".to_owned(), 10, None).uncounted_rows, 2);
    }

    #[test]
    fn equal_numbers_are_in_the_order_of_the_text() {
        let mut counter = FacetCounter::new(1);
        ["6", "3", "-"].iter().for_each(|value| counter.add(value, 2));
        let facet = counter.finish("PRIORITY".to_owned(), 10, CodeScale::from_column_name("PRIORITY"));
        let values: Vec<_> = facet.values.iter().map(|value| (value.value.as_str(), value.display_name)).collect();
        assert_eq!(values, [("-", None), ("3", Some("error")), ("6", Some("info"))]);
    }
}
