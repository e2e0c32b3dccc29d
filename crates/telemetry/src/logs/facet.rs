//! The values of a field with the number of rows that have each, in bounded memory: as texts, as ranges of numbers with
//! round bounds, or as names of codes.
//!
//! Ranges are counted in one pass without knowing the values before. Values are counted in cells whose width is a power
//! of ten. When there are too many cells, ten become one. At the end, the cells are joined to ranges whose width is 1,
//! 2 or 5 times a power of ten.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::request::FacetRequest;
use super::scan::FacetAnswer;
use super::value::{CodeScale, MISSING, is_missing};

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

/// The maximum number of ranges of one field in an answer.
pub const NUMBER_RANGES_MAX: usize = 100;
/// The maximum number of cells while values are counted.
const CELLS_MAX: usize = 10_000;
/// The width of the first cells is ten to this power.
const FIRST_EXPONENT: i32 = -9;
/// The maximum index of a cell; larger indexes are no exact floats.
const INDEX_MAX: f64 = 9_007_199_254_740_992.0;

/// The values of a numeric field in ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberRanges {
    /// The field.
    pub field: String,
    /// The ranges from the smallest value to the largest, also those without rows.
    pub ranges: Vec<NumberRange>,
    /// The number of rows where the value is missing.
    pub missing_rows: u64,
    /// The number of rows where the value is no finite number.
    pub not_numeric_rows: u64,
}

/// A range of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberRange {
    /// The smallest number of the range.
    pub from: f64,
    /// The first number after the range.
    pub to: f64,
    /// The number of rows. Integers beyond 2^53 are counted as the nearest float.
    pub rows: u64,
}

/// Counts the numbers of one field.
#[derive(Debug)]
pub(super) struct NumberRangeCounter {
    cells: HashMap<i64, u64, RandomState>,
    exponent: i32,
    /// Whether a number is no integer; without one, ranges have integers as bounds.
    has_fraction: bool,
    missing_rows: u64,
    not_numeric_rows: u64,
}

impl NumberRangeCounter {
    pub(super) fn new() -> Self {
        let exponent = FIRST_EXPONENT;
        Self { cells: HashMap::default(), exponent, has_fraction: false, missing_rows: 0, not_numeric_rows: 0 }
    }

    fn add_missing(&mut self, rows: u64) {
        self.missing_rows += rows;
    }

    /// Adds rows with a number in its display form.
    pub(super) fn add(&mut self, text: &str, rows: u64) {
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let (Some(number), true) = (number, rows > 0) else {
            self.not_numeric_rows += rows;
            return;
        };
        self.has_fraction |= number.fract() != 0.0;
        while scaled(number, self.exponent).abs() >= INDEX_MAX {
            self.coarsen();
        }
        *self.cells.entry(cell_index(number, self.exponent)).or_default() += rows;
        while self.cells.len() > CELLS_MAX {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.exponent += 1;
        let mut cells: HashMap<i64, u64, RandomState> = HashMap::default();
        for (index, rows) in self.cells.drain() {
            *cells.entry(index.div_euclid(10)).or_default() += rows;
        }
        self.cells = cells;
    }

    pub(super) fn finish(mut self, field: String, ranges_max: usize) -> NumberRanges {
        while !self.has_fraction && self.exponent < 0 {
            self.coarsen();
        }
        let (missing_rows, not_numeric_rows) = (self.missing_rows, self.not_numeric_rows);
        // Zero is always a bound, so that numbers of both signs need two ranges.
        let ranges = self.into_ranges(ranges_max.clamp(2, NUMBER_RANGES_MAX));
        NumberRanges { field, ranges, missing_rows, not_numeric_rows }
    }

    fn into_ranges(mut self, ranges_max: usize) -> Vec<NumberRange> {
        loop {
            let (Some(first), Some(last)) = (self.cells.keys().min().copied(), self.cells.keys().max().copied()) else {
                return Vec::new();
            };
            for factor in [1, 2, 5] {
                let (start, end) = (first.div_euclid(factor), last.div_euclid(factor));
                if end.abs_diff(start) < ranges_max as u64 {
                    return self.join(factor, start, end);
                }
            }
            self.coarsen();
        }
    }

    fn join(&self, factor: i64, start: i64, end: i64) -> Vec<NumberRange> {
        let bound = |index: i64| bound((index * factor) as f64, self.exponent);
        let empty = |index| NumberRange { from: bound(index), to: bound(index + 1), rows: 0 };
        let mut ranges: Vec<NumberRange> = (start..=end).map(empty).collect();
        for (index, rows) in &self.cells {
            let place = usize::try_from(index.div_euclid(factor) - start).ok();
            if let Some(range) = place.and_then(|place| ranges.get_mut(place)) {
                range.rows += rows;
            }
        }
        ranges
    }
}

/// `number` in units of ten to the power of `exponent`.
fn scaled(number: f64, exponent: i32) -> f64 {
    if exponent < 0 { number * 10f64.powi(-exponent) } else { number / 10f64.powi(exponent) }
}

/// The lower bound of the cell `index`, as its decimal form is read.
fn bound(index: f64, exponent: i32) -> f64 {
    if exponent < 0 { index / 10f64.powi(-exponent) } else { index * 10f64.powi(exponent) }
}

/// The cell that contains `number`. The product may be rounded across a bound, which the comparisons correct.
fn cell_index(number: f64, exponent: i32) -> i64 {
    let mut index = scaled(number, exponent).floor();
    if bound(index, exponent) > number {
        index -= 1.0;
    } else if bound(index + 1.0, exponent) <= number {
        index += 1.0;
    }
    // Its magnitude is at most `INDEX_MAX`.
    index as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn ranges(numbers: &[f64], count: usize) -> Vec<NumberRange> {
        let mut counter = NumberRangeCounter::new();
        numbers.iter().for_each(|number| counter.add(&format!("{number:?}"), 1));
        counter.finish("f".to_owned(), count).ranges
    }

    #[test]
    fn bounds_are_round() {
        let of = |numbers: &[f64]| -> Vec<(f64, f64, u64)> {
            ranges(numbers, 5).iter().map(|range| (range.from, range.to, range.rows)).collect()
        };
        assert_eq!(
            of(&[0.1, 0.29, 0.3]),
            [(0.1, 0.15, 1), (0.15, 0.2, 0), (0.2, 0.25, 0), (0.25, 0.3, 1), (0.3, 0.35, 1)]
        );
        assert_eq!(of(&[200.0, 404.0, 500.0]).first(), Some(&(200.0, 300.0, 1)));
        assert_eq!(of(&[-3.0]), [(-3.0, -2.0, 1)]);
        assert_eq!(of(&[]), []);
    }

    #[test]
    fn text_and_infinities_are_no_numbers() {
        let mut counter = NumberRangeCounter::new();
        ["x", "NaN", "Infinity", "5"].iter().for_each(|text| counter.add(text, 1));
        counter.add_missing(2);
        let ranges = counter.finish("f".to_owned(), 10);
        assert_eq!((ranges.not_numeric_rows, ranges.missing_rows, ranges.ranges.len()), (3, 2, 1));
    }

    proptest! {
        #[test]
        fn each_number_is_in_its_range(
            numbers in prop::collection::vec(prop_oneof![-1e4..1e4f64, any::<f64>(), (-500i32..500).prop_map(|n| f64::from(n) / 100.0)], 1..40),
            count in 1usize..20,
        ) {
            let numbers: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
            let ranges = ranges(&numbers, count);
            prop_assert!(ranges.len() <= count.max(2));
            for range in &ranges {
                let expected = numbers.iter().filter(|number| range.from <= **number && **number < range.to).count();
                prop_assert_eq!(range.rows, expected as u64, "{:?}", range);
            }
            prop_assert_eq!(ranges.iter().map(|range| range.rows).sum::<u64>(), numbers.len() as u64);
        }
    }
}
