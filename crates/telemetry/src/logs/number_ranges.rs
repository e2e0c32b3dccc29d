//! The values of a numeric field as ranges with round bounds, counted in one pass without knowing the values before.
//!
//! Values are counted in cells whose width is a power of ten. When there are too many cells, ten become one. At the end,
//! the cells are joined to ranges whose width is 1, 2 or 5 times a power of ten.

use std::collections::HashMap;

use foldhash::fast::RandomState;

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

    pub(super) fn add_missing(&mut self, rows: u64) {
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
