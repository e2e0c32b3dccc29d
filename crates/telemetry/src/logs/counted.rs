//! What a database counted itself, so that its rows need not be scanned.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::facet::{AnyFacetCounter, RareValues};
use super::scan::LogScan;

/// The counts of one source. The database applies the whole request: the range, the condition, and for each facet the
/// selections of all other fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedRows {
    /// The number of rows that the database counted.
    pub evaluated: u64,
    /// The number of rows that match.
    pub matched: u64,
    /// The time of the first and the last row that was counted, in nanoseconds UTC.
    pub seen_times: Option<(i64, i64)>,
    /// The time of the first and the last row that matches, in nanoseconds UTC.
    pub matched_times: Option<(i64, i64)>,
    /// The values of each facet, in the order of the request.
    pub facets: Vec<CountedValues>,
    /// The rows of the histogram.
    pub bars: Vec<CountedBar>,
}

/// The values of a facet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedValues {
    /// The values in their display form, with their rows. A value may occur several times.
    pub values: Vec<(String, u64)>,
    /// The values that are not among them.
    pub rare: RareValues,
}

/// Rows of a histogram that have the same value, or all of them if it has no field, and times in the same unit of
/// [`BarWidth::counting_unit`](super::BarWidth::counting_unit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedBar {
    /// One of their times in nanoseconds UTC; `None` if they have none.
    pub time: Option<i64>,
    /// The value in its display form.
    pub value: String,
    /// The number of rows.
    pub rows: u64,
}

impl LogScan {
    /// Adds what a database counted. These rows must not be pushed as well, except to
    /// [`push_entries`](Self::push_entries).
    pub fn add_counts(&mut self, counted: &CountedRows) {
        self.evaluated += counted.evaluated;
        self.matched += counted.matched;
        if let Some((first, last)) = counted.seen_times {
            let (seen_first, seen_last) = self.seen_times.unwrap_or((first, last));
            self.seen_times = Some((seen_first.min(first), seen_last.max(last)));
        }
        for (counter, counted) in self.facets.iter_mut().zip(&counted.facets) {
            counted.values.iter().for_each(|(value, rows)| counter.add(value, *rows));
            if let AnyFacetCounter::Values(counter) = counter {
                counter.add_rare(counted.rare);
            }
        }
        self.add_bars(counted);
    }

    fn add_bars(&mut self, counted: &CountedRows) {
        let has_field = self.histogram_field().is_some();
        let Some(histogram) = &mut self.histogram else { return };
        if let Some((first, last)) = counted.matched_times {
            histogram.note_times(first, last);
        }
        // The series of the values with the most rows come first, because their number is limited.
        let mut series: Vec<(&str, u64)> = Vec::new();
        if has_field {
            let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
            for bar in &counted.bars {
                *totals.entry(&bar.value).or_default() += if bar.time.is_some() { bar.rows } else { 0 };
            }
            series.extend(totals);
            series.sort_by_key(|(_, rows)| Reverse(*rows));
        }
        let series: BTreeMap<&str, usize> =
            series.into_iter().map(|(value, _)| (value, histogram.series(value))).collect();
        for bar in &counted.bars {
            match bar.time {
                Some(time) => {
                    histogram.add_counted(time, series.get(bar.value.as_str()).copied().unwrap_or(0), bar.rows);
                }
                None => histogram.add_without_time(bar.rows),
            }
        }
    }
}
