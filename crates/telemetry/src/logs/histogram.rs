//! The number of rows over time, in bars of a round width, in one pass without knowing the times before.
//!
//! Unless both ends of the range of time are known, rows are counted in short cells, which are joined when there are
//! too many of them. Each cell divides the round widths that are possible at the end.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::time::TimeRange;
use super::value::CodeScale;

/// The maximum number of bars of a histogram.
pub const BARS_MAX: usize = 1_000;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// The first Monday after the beginning of 1970, where weeks begin.
const MONDAY: i64 = 4 * DAY;

/// The widths of a second and more.
const LONG_WIDTHS: [i64; 23] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    WEEK,
    2 * WEEK,
    5 * WEEK,
    10 * WEEK,
    20 * WEEK,
    50 * WEEK,
    100 * WEEK,
    200 * WEEK,
];

/// Widths of which each divides the next one, and one of which divides each round width that is longer.
const CELL_WIDTHS: [i64; 17] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    SECOND,
    5 * SECOND,
    MINUTE,
    5 * MINUTE,
    HOUR,
    DAY,
    WEEK,
    10 * WEEK,
];

/// Units of which each divides the next one, and each of which divides all round widths that are longer than one of its
/// multiples.
const COUNTING_UNITS: [i64; 13] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, SECOND, MINUTE, HOUR, DAY];

/// The width of the bars of a histogram over time. Bars begin at multiples of it since 1970 in UTC, and weeks on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarWidth(i64);

impl BarWidth {
    /// One nanosecond.
    pub const SHORTEST: Self = Self(1);

    /// The width of cells that is at `index` in [`CELL_WIDTHS`].
    fn from_cell(index: usize) -> Option<Self> {
        CELL_WIDTHS.get(index).copied().map(Self)
    }

    /// The largest round width that gives at least `bars` bars from the time `first` to the time `last`, both included,
    /// but never more than [`BARS_MAX`]. Times are nanoseconds UTC.
    pub fn choose(first: i64, last: i64, bars: usize) -> Self {
        let bars = bars.clamp(1, BARS_MAX) as u64;
        let mut chosen = Self::SHORTEST;
        for width in round_widths().map(Self) {
            let count = width.bar_count(first, last);
            let is_needed = chosen.bar_count(first, last) > BARS_MAX as u64;
            if count < bars && !is_needed {
                break;
            }
            chosen = width;
        }
        chosen
    }

    /// The width in nanoseconds.
    pub fn nanos(self) -> i64 {
        self.0
    }

    /// A unit of time that is never in two bars of this width, or of a longer one. Databases count rows in it.
    pub fn counting_unit(self) -> i64 {
        COUNTING_UNITS.into_iter().rev().find(|unit| self.0 % unit == 0).unwrap_or(1)
    }

    /// The number of the bar that contains the time in nanoseconds UTC.
    pub fn index(self, time: i64) -> i64 {
        // Not below the origin of weeks minus 2^63.
        let shifted = i128::from(time) - i128::from(self.origin());
        i64::try_from(shifted.div_euclid(i128::from(self.0))).unwrap_or(i64::MIN)
    }

    /// The start of the bar `index`. The first one may begin before the first time that 64 bits can express.
    pub fn start(self, index: i64) -> i64 {
        index.saturating_mul(self.0).saturating_add(self.origin())
    }

    fn bar_count(self, first: i64, last: i64) -> u64 {
        self.index(last).abs_diff(self.index(first)) + 1
    }

    fn origin(self) -> i64 {
        if self.0 % WEEK == 0 { MONDAY } else { 0 }
    }
}

/// All widths, shortest first.
fn round_widths() -> impl Iterator<Item = i64> {
    let powers = (0..9).map(|exponent| 10i64.pow(exponent));
    powers.flat_map(|power| [power, 2 * power, 5 * power]).chain(LONG_WIDTHS)
}

/// The maximum number of series in an answer, without the one for other values.
pub const HISTOGRAM_SERIES_MAX: usize = 30;
/// The number of values of the field that are counted as series; the first ones that occur.
const TRACKED_SERIES_MAX: usize = 32;
/// The maximum number of cells. It exceeds the maximum number of bars as often as a cell fits into the next longer one.
const CELLS_MAX: usize = 12_100;

/// The number of rows over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHistogram {
    /// The width of a bar in nanoseconds.
    pub width: i64,
    /// The series, those with the most rows first, and [`SeriesName::Other`] last.
    pub series: Vec<HistogramSeries>,
    /// The bars in the order of time, also those without rows.
    pub bars: Vec<HistogramBar>,
    /// The number of rows that match and have no time.
    pub rows_without_time: u64,
    /// Whether a value with many rows may be among the others, because the field has more values than are counted.
    pub is_ranking_inexact: bool,
}

/// A series of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSeries {
    /// What it counts.
    pub name: SeriesName,
    /// A name to show beside the value, such as `info` for priority 6.
    pub display_name: Option<&'static str>,
    /// The number of its rows.
    pub rows: u64,
}

/// What a series of a histogram counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesName {
    /// All rows: the histogram has no field.
    All,
    /// Rows with this value in its display form.
    Value(String),
    /// Rows with other values than those of the other series.
    Other,
}

/// The rows of a part of the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramBar {
    /// The first time of the bar in nanoseconds UTC.
    pub start: i64,
    /// The number of rows for each series.
    pub rows: Vec<u64>,
}

/// The times of one cell: `end` is the first time after it.
struct Cell {
    index: i64,
    start: i64,
    end: i64,
}

impl Cell {
    const EMPTY: Self = Self { index: 0, start: 0, end: 0 };
}

/// Counts rows over time.
#[derive(Debug)]
pub(super) struct HistogramCounter {
    range: TimeRange,
    bars: usize,
    series_max: usize,
    scale: Option<CodeScale>,
    width: BarWidth,
    /// The index of the width among those of cells; `None` if it is final.
    cell: Option<usize>,
    cells: HashMap<i64, Vec<u64>, RandomState>,
    /// The number of each value's series; series 0 counts other values, or all rows.
    series: HashMap<Box<str>, usize, RandomState>,
    seen: Option<(i64, i64)>,
    rows_without_time: u64,
    has_untracked_values: bool,
}

impl HistogramCounter {
    pub(super) fn new(range: TimeRange, bars: usize, series_max: usize, scale: Option<CodeScale>) -> Self {
        let fixed = range.start.zip(range.end).map(|(start, end)| BarWidth::choose(start, end.saturating_sub(1), bars));
        Self {
            range,
            bars,
            series_max: series_max.clamp(1, HISTOGRAM_SERIES_MAX),
            scale,
            width: fixed.unwrap_or(BarWidth::SHORTEST),
            cell: fixed.is_none().then_some(0),
            cells: HashMap::default(),
            series: HashMap::default(),
            seen: None,
            rows_without_time: 0,
            has_untracked_values: false,
        }
    }

    /// The number of the series for a value; 0 if it is counted among the others.
    pub(super) fn series(&mut self, value: &str) -> usize {
        if let Some(series) = self.series.get(value) {
            return *series;
        }
        if self.series.len() >= TRACKED_SERIES_MAX {
            self.has_untracked_values = true;
            return 0;
        }
        let series = self.series.len() + 1;
        self.series.insert(value.into(), series);
        series
    }

    /// Adds rows of one batch: their times, and the number of the series of each.
    pub(super) fn add(&mut self, rows: impl Iterator<Item = (Option<i64>, usize)>) {
        // Rows that follow each other are mostly in the same cell, so that its counts are added together.
        let mut counts: Vec<u64> = Vec::new();
        let mut cell = Cell::EMPTY;
        for (time, series) in rows {
            let Some(time) = time else {
                self.rows_without_time += 1;
                continue;
            };
            let (first, last) = self.seen.unwrap_or((time, time));
            self.seen = Some((first.min(time), last.max(time)));
            if time < cell.start || time >= cell.end {
                self.add_counts(cell.index, &mut counts);
                // After the counts were added, because that may change the width.
                let index = self.width.index(time);
                cell = Cell { index, start: self.width.start(index), end: self.width.start(index.saturating_add(1)) };
            }
            add_to(&mut counts, series, 1);
        }
        self.add_counts(cell.index, &mut counts);
    }

    /// Adds rows that were counted together: those of one series at times that are all in the bar of `time`.
    pub(super) fn add_counted(&mut self, time: i64, series: usize, rows: u64) {
        self.note_times(time, time);
        let mut counts = vec![0; series + 1];
        if let Some(count) = counts.last_mut() {
            *count = rows;
        }
        self.add_counts(self.width.index(time), &mut counts);
    }

    /// Includes rows without a time.
    pub(super) fn add_without_time(&mut self, rows: u64) {
        self.rows_without_time += rows;
    }

    /// Extends the time that the histogram covers.
    pub(super) fn note_times(&mut self, first: i64, last: i64) {
        let (seen_first, seen_last) = self.seen.unwrap_or((first, last));
        self.seen = Some((seen_first.min(first), seen_last.max(last)));
    }

    /// Moves counts to a cell.
    fn add_counts(&mut self, index: i64, counts: &mut Vec<u64>) {
        if counts.is_empty() {
            return;
        }
        let cell = self.cells.entry(index).or_default();
        counts.drain(..).enumerate().for_each(|(series, count)| add_to(cell, series, count));
        while self.cells.len() > CELLS_MAX && self.cell.is_some() {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.cell = self.cell.map(|cell| cell + 1).filter(|cell| BarWidth::from_cell(*cell).is_some());
        let Some(width) = self.cell.and_then(BarWidth::from_cell) else { return };
        self.join_cells(width);
    }

    fn join_cells(&mut self, width: BarWidth) {
        let mut joined: HashMap<i64, Vec<u64>, RandomState> = HashMap::default();
        for (index, counts) in self.cells.drain() {
            let bar = joined.entry(width.index(self.width.start(index))).or_default();
            counts.into_iter().enumerate().for_each(|(series, count)| add_to(bar, series, count));
        }
        self.cells = joined;
        self.width = width;
    }

    pub(super) fn finish(mut self, has_field: bool) -> LogHistogram {
        let first = self.range.start.or(self.seen.map(|(first, _)| first));
        let last = self.range.end.map(|end| end.saturating_sub(1)).or(self.seen.map(|(_, last)| last));
        // A bound of the range may be on the other side of all rows.
        let ends = first.zip(last).filter(|(first, last)| first <= last);
        if let (Some((first, last)), Some(_)) = (ends, self.cell) {
            let width = BarWidth::choose(first, last, self.bars);
            self.join_cells(width);
        }
        let (series, order) = self.ranked_series(has_field);
        let bars = ends.map_or_else(Vec::new, |(first, last)| {
            let bar = |index| {
                let mut rows = vec![0; series.len()];
                for (count, place) in self.cells.get(&index).into_iter().flatten().zip(&order) {
                    add_to(&mut rows, *place, *count);
                }
                HistogramBar { start: self.width.start(index), rows }
            };
            (self.width.index(first)..=self.width.index(last)).map(bar).collect()
        });
        LogHistogram {
            width: self.width.nanos(),
            series,
            bars,
            rows_without_time: self.rows_without_time,
            is_ranking_inexact: self.has_untracked_values,
        }
    }

    /// The series of the answer, and the place in it of each series that was counted.
    fn ranked_series(&self, has_field: bool) -> (Vec<HistogramSeries>, Vec<usize>) {
        let mut totals = vec![0; self.series.len() + 1];
        for counts in self.cells.values() {
            counts.iter().enumerate().for_each(|(series, count)| add_to(&mut totals, series, *count));
        }
        let total = |series: usize| totals.get(series).copied().unwrap_or(0);
        if !has_field {
            return (vec![HistogramSeries { name: SeriesName::All, display_name: None, rows: total(0) }], vec![0]);
        }
        let mut values: Vec<(&str, usize)> = self.series.iter().map(|(value, series)| (&**value, *series)).collect();
        values.sort_unstable_by(|(value, series), (other, other_series)| {
            total(*other_series).cmp(&total(*series)).then_with(|| value.cmp(other))
        });
        let mut order = vec![values.len().min(self.series_max); totals.len()];
        let mut ranked = Vec::new();
        let mut other = total(0);
        for (place, (value, series)) in values.into_iter().enumerate() {
            let rows = total(series);
            if place >= self.series_max {
                other += rows;
                continue;
            }
            if let Some(entry) = order.get_mut(series) {
                *entry = place;
            }
            let display_name = self.scale.and_then(|scale| scale.display_name(value));
            ranked.push(HistogramSeries { name: SeriesName::Value(value.to_owned()), display_name, rows });
        }
        if other > 0 {
            ranked.push(HistogramSeries { name: SeriesName::Other, display_name: None, rows: other });
        }
        (ranked, order)
    }
}

/// Adds to a count. A list that is too short becomes longer, so that cells have no counts for series they lack.
fn add_to(counts: &mut Vec<u64>, index: usize, count: u64) {
    if counts.len() <= index && count > 0 {
        counts.resize(index + 1, 0);
    }
    if let Some(place) = counts.get_mut(index) {
        *place += count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_are_the_largest_that_give_enough_bars() {
        let width = |span, bars| BarWidth::choose(0, span - 1, bars).nanos();
        assert_eq!(width(HOUR, 60), MINUTE);
        assert_eq!(width(HOUR, 61), 30 * SECOND);
        assert_eq!(width(DAY, 150), 5 * MINUTE);
        assert_eq!(width(30 * DAY, 30), DAY);
        assert_eq!(width(SECOND, 100), 10_000_000);
        assert_eq!(width(1, 100), 1);
        // One hour has 720 bars of 5 s and 3,600 of 1 s.
        assert_eq!(width(HOUR, 1_000), 5 * SECOND);
    }

    #[test]
    fn weeks_begin_on_monday() {
        let week = BarWidth(WEEK);
        // 2026-03-02 is a Monday.
        let monday = 1_772_409_600 * SECOND;
        assert_eq!(week.start(week.index(monday)), monday);
        assert_eq!(week.index(monday - 1), week.index(monday) - 1);
    }

    #[test]
    fn cells_divide_each_other_and_the_widths() {
        assert!(CELL_WIDTHS.windows(2).all(|pair| pair[1] % pair[0] == 0));
        assert!(round_widths().zip(round_widths().skip(1)).all(|(width, next)| width < next));
        for width in round_widths() {
            for cell in CELL_WIDTHS.iter().filter(|cell| 12 * **cell < width) {
                assert_eq!(width % cell, 0, "{width} {cell}");
            }
        }
    }

    #[test]
    fn counting_units_divide_longer_widths_too() {
        for (index, width) in round_widths().enumerate() {
            let unit = BarWidth(width).counting_unit();
            assert!(round_widths().skip(index).all(|longer| longer % unit == 0), "{width} {unit}");
            assert!(width / unit <= 1_400, "{width} {unit}");
            // A week begins at the begin of a day.
            assert_eq!(BarWidth(width).origin() % unit, 0);
        }
    }

    proptest! {
        #[test]
        fn there_are_never_too_many_bars(first in any::<i64>(), span in any::<i64>(), bars in 0usize..2_000) {
            let last = first.saturating_add(span.saturating_abs());
            let width = BarWidth::choose(first, last, bars);
            prop_assert!(width.bar_count(first, last) <= BARS_MAX as u64);
            prop_assert!(width.start(width.index(first)) <= first || width.index(first) == i64::MIN);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        /// More times than cells, so that cells are joined while rows are added.
        #[test]
        fn each_row_is_in_its_bar(
            start in any::<i64>(),
            spread in prop::sample::select(vec![1i64, 7, 1_000_003, 61_000_000_007, 3_600_000_000_000, 600_000_000_000_000]),
            bars in 1usize..1_000,
            step in 1i64..30_011,
        ) {
            // The steps have no factor in common with the number of rows, so that times come in no order.
            let time = |row: i64| start.saturating_add(((row * step) % 30_011).saturating_mul(spread));
            let mut histogram = HistogramCounter::new(TimeRange::default(), bars, 5, None);
            for batch in 0..30 {
                histogram.add((batch * 1_000..(batch + 1) * 1_000).map(|row| (Some(time(row)), 0)));
            }
            prop_assert!(histogram.cells.len() <= CELLS_MAX);
            let histogram = histogram.finish(false);
            let mut times: Vec<i64> = (0..30_000).map(time).collect();
            times.sort_unstable();
            for bar in &histogram.bars {
                let before = |end: i64| times.partition_point(|time| *time < end) as u64;
                let end = bar.start.checked_add(histogram.width);
                let expected = end.map_or(times.len() as u64, before) - before(bar.start);
                prop_assert_eq!(bar.rows[0], expected, "{:?}", bar);
            }
            prop_assert_eq!(histogram.series[0].rows, 30_000);
            let width = BarWidth::choose(times[0], times[29_999], bars);
            prop_assert_eq!(histogram.width, width.nanos());
        }
    }
}
