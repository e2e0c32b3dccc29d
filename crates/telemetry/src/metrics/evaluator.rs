//! The computation of a query, in one pass over its samples.
//!
//! Samples of different series may be mixed in any way. Within a series they may arrive in any order, except for
//! counters: there a sample may be at most 16 samples late. Later ones are counted and not used.
//!
//! The memory is bounded: one small cell for each series and bucket, and the values of percentiles. If these need too
//! much, the percentiles of past buckets are computed, and further samples of such a bucket are an error.

use std::collections::HashMap;

use tidegate_core::{Error, ErrorKind};

use super::aggregation::TimeAggregation;
use super::answer::{MetricAnswer, SampleCounts, SeriesCollector};
use super::cell::{Cell, CounterGrowth, CounterState};
use super::model::{Labels, Sample, TimeWindow};
use super::request::MetricQuery;
use super::time_grid::{TimeGrid, format_duration};

/// The number of series that a query may read.
const SERIES_READ_MAX: usize = 50_000;
/// The memory that cells, values and labels may take.
const MEMORY_BYTES_MAX: usize = 96 << 20;

/// Identifies a series within one evaluator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeriesHandle(usize);

/// Computes the answer to one query.
#[derive(Debug)]
pub struct MetricEvaluator {
    query: MetricQuery,
    handles: HashMap<Labels, SeriesHandle>,
    labels: Vec<Labels>,
    series: Vec<SeriesState>,
    /// Of each series, if the aggregation needs them.
    counters: Vec<CounterState>,
    bucket: LatestBucket,
    counts: SampleCounts,
    memory_bytes: usize,
}

/// What is known of one series so far. Samples of many series follow each other, so that its size decides about the speed.
#[derive(Debug)]
struct SeriesState {
    /// One for each bucket; none before the first sample of the window.
    cells: Vec<Cell>,
    samples: u64,
    first_ns: i64,
    last_ns: i64,
    /// Whether several samples have the time `last_ns`. Of all times only this one is compared, so that the answer does not
    /// depend on the order of the samples.
    is_last_repeated: bool,
}

/// The bucket of the latest sample with its window, because the next sample is mostly in the same one.
#[derive(Debug)]
struct LatestBucket {
    index: usize,
    window: TimeWindow,
}

impl LatestBucket {
    /// The bucket of a time within the window of the query.
    fn find(&mut self, grid: &TimeGrid, time_ns: i64) -> Option<usize> {
        if !self.window.contains(time_ns) {
            self.index = grid.bucket_of(time_ns)?;
            self.window = grid.bucket(self.index);
        }
        Some(self.index)
    }
}

impl SeriesState {
    fn new() -> Self {
        Self { cells: Vec::new(), samples: 0, first_ns: i64::MAX, last_ns: i64::MIN, is_last_repeated: false }
    }

    /// Counts a sample of the window.
    fn count(&mut self, time_ns: i64) {
        self.samples += 1;
        self.first_ns = self.first_ns.min(time_ns);
        if time_ns >= self.last_ns {
            self.is_last_repeated = time_ns == self.last_ns;
            self.last_ns = time_ns;
        }
    }

    fn cell(&mut self, grid: &TimeGrid, bucket: usize) -> Option<&mut Cell> {
        if self.cells.is_empty() {
            self.cells = vec![Cell::Empty; grid.len()];
        }
        self.cells.get_mut(bucket)
    }

    fn add_growth(&mut self, grid: &TimeGrid, growth: Option<CounterGrowth>, latest: &mut LatestBucket) {
        let Some(CounterGrowth { time_ns, growth, between_ns }) = growth else { return };
        let cell = latest.find(grid, time_ns).and_then(|bucket| self.cell(grid, bucket));
        if let Some(cell) = cell {
            cell.add_growth(growth, between_ns);
        }
    }

    /// The mean time between its samples.
    fn interval_ns(&self) -> Option<u64> {
        (self.samples > 1).then(|| self.last_ns.abs_diff(self.first_ns) / (self.samples - 1))
    }
}

impl MetricEvaluator {
    /// An evaluator without samples.
    pub fn new(query: MetricQuery) -> Self {
        Self {
            query,
            handles: HashMap::new(),
            labels: Vec::new(),
            series: Vec::new(),
            counters: Vec::new(),
            bucket: LatestBucket { index: 0, window: TimeWindow::new(0, 0) },
            counts: SampleCounts::default(),
            memory_bytes: 0,
        }
    }

    /// The query.
    pub fn query(&self) -> &MetricQuery {
        &self.query
    }

    /// The series with these labels; `None` if the query does not select it.
    ///
    /// # Errors
    /// `TooLarge` if the query selects too many series.
    pub fn series(&mut self, labels: &Labels) -> Result<Option<SeriesHandle>, Error> {
        if let Some(handle) = self.handles.get(labels) {
            return Ok(Some(*handle));
        }
        if !self.query.selection.accepts(labels) {
            return Ok(None);
        }
        if self.series.len() >= SERIES_READ_MAX {
            let message = format!("the query selects more than {SERIES_READ_MAX} series");
            return Err(Error::new(ErrorKind::TooLarge, message).with_hint("Add conditions on labels."));
        }
        let handle = SeriesHandle(self.series.len());
        self.reserve(2 * labels.memory_bytes() + size_of::<(Labels, SeriesState)>())?;
        self.handles.insert(labels.clone(), handle);
        self.labels.push(labels.clone());
        self.series.push(SeriesState::new());
        if self.query.measures_growth() {
            self.counters.push(CounterState::default());
        }
        Ok(Some(handle))
    }

    /// Adds a sample of a series. Samples outside of the window are ignored, except those before it that are the base
    /// of a counter (see [`MetricQuery::read_window`]).
    ///
    /// # Errors
    /// `TooLarge` if the values of percentiles, or series times buckets, need too much memory.
    pub fn push(&mut self, series: SeriesHandle, sample: Sample) -> Result<(), Error> {
        let query = &self.query;
        let window = query.grid.window();
        let Some(state) = self.series.get_mut(series.0) else { return Ok(()) };
        let is_counter = query.measures_growth();
        let is_within = window.contains(sample.time_ns);
        if sample.value.is_nan() || (is_counter && sample.value.is_infinite()) {
            self.counts.nan += u64::from(is_within);
            return Ok(());
        }
        if is_within {
            self.counts.samples += 1;
            state.count(sample.time_ns);
        }
        let had_cells = !state.cells.is_empty();
        let mut bytes = 0;
        if let (Some(counter), true) = (self.counters.get_mut(series.0), sample.time_ns < window.before_ns) {
            match counter.add(sample, query.read_window().after_ns) {
                Ok(growth) => state.add_growth(&query.grid, growth, &mut self.bucket),
                // One before the window may be the base of the first growth in it.
                Err(_) => self.counts.out_of_order += 1,
            }
        } else if is_within
            && let Some(bucket) = self.bucket.find(&query.grid, sample.time_ns)
            && let Some(cell) = state.cell(&query.grid, bucket)
        {
            if matches!(cell, Cell::Closed { .. }) {
                return Err(unordered_samples());
            }
            bytes = cell.add_sample(query.aggregation, sample);
        }
        if !had_cells {
            bytes += state.cells.len() * size_of::<Cell>();
        }
        if bytes > 0 { self.reserve(bytes) } else { Ok(()) }
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        self.memory_bytes = self.memory_bytes.saturating_add(bytes);
        if self.memory_bytes <= MEMORY_BYTES_MAX {
            return Ok(());
        }
        // Only if much memory becomes free: closing all buckets again after few samples would take too long.
        if self.close_past_buckets() && self.memory_bytes <= MEMORY_BYTES_MAX / 4 * 3 {
            return Ok(());
        }
        let (series, points, mebibytes) = (self.series.len(), self.query.grid.len(), MEMORY_BYTES_MAX >> 20);
        let message = format!("{series} series of {points} points need more than {mebibytes} MiB of memory");
        let hint = "Request fewer points, a shorter window, or fewer series by conditions on labels.";
        Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint))
    }

    /// Computes the percentiles of all buckets but the latest two of each series, and removes their values. Returns
    /// whether the query has such values.
    fn close_past_buckets(&mut self) -> bool {
        let aggregation = self.query.aggregation;
        for state in &mut self.series {
            let latest = self.query.grid.bucket_of(state.last_ns).unwrap_or_default();
            let past = latest.saturating_sub(1);
            for cell in state.cells.iter_mut().take(past) {
                self.memory_bytes = self.memory_bytes.saturating_sub(cell.close(aggregation));
            }
        }
        aggregation.percentage().is_some()
    }

    /// The answer.
    ///
    /// # Errors
    /// `TooLarge` if the aggregation over labels needs too much memory.
    pub fn finish(mut self) -> Result<MetricAnswer, Error> {
        let notes = self.notes();
        let grouping = self.query.label_aggregation.map(|aggregation| (self.query.by.clone(), aggregation));
        let mut collector = SeriesCollector::new(grouping, self.query.series_max);
        let mut is_approximate = false;
        let base_from_ns = self.query.read_window().after_ns;
        self.handles.clear();
        let mut counters = std::mem::take(&mut self.counters).into_iter();
        for (mut state, labels) in std::mem::take(&mut self.series).into_iter().zip(std::mem::take(&mut self.labels)) {
            let mut counter = counters.next().unwrap_or_default();
            while let Some(growth) = counter.use_next(base_from_ns) {
                state.add_growth(&self.query.grid, growth, &mut self.bucket);
            }
            self.counts.series += 1;
            self.counts.with_simultaneous += u64::from(state.is_last_repeated);
            is_approximate |= state.cells.iter().any(Cell::is_approximate);
            let freed_bytes = state.cells.len() * size_of::<Cell>();
            let values = self.values(state.cells);
            // A series without values in the window is no part of the answer.
            if values.iter().any(Option::is_some) {
                let bytes = collector.add(labels, values);
                self.memory_bytes = self.memory_bytes.saturating_sub(freed_bytes);
                self.reserve(bytes)?;
            }
        }
        let (series, left_out, are_series_approximate) = collector.finish();
        Ok(MetricAnswer {
            metric: self.query.metric,
            unit: self.query.unit,
            aggregation: self.query.aggregation,
            label_aggregation: self.query.label_aggregation,
            grid: self.query.grid,
            series,
            left_out,
            counts: self.counts,
            is_approximate: is_approximate || are_series_approximate,
            notes,
        })
    }

    /// The value of each bucket.
    fn values(&self, cells: Vec<Cell>) -> Vec<Option<f64>> {
        let aggregation = self.query.aggregation;
        let is_rate_of_increments = aggregation == TimeAggregation::Rate && !self.query.measures_growth();
        let values = cells.into_iter().enumerate().map(|(index, cell)| {
            let value = cell.time_value(aggregation)?;
            let bucket = is_rate_of_increments.then(|| self.query.grid.bucket(index));
            Some(bucket.map_or(value, |bucket| value / (bucket.length_ns() as f64 / 1e9)))
        });
        values.collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut intervals_ns: Vec<u64> = self.series.iter().filter_map(SeriesState::interval_ns).collect();
        intervals_ns.sort_unstable();
        let step_ns = self.query.grid.step_ns();
        let typical_ns = intervals_ns.get(intervals_ns.len() / 2).copied().unwrap_or_default();
        // A tenth of tolerance, because the interval is a mean.
        if typical_ns > step_ns + step_ns / 10 {
            let points = (self.query.grid.window().length_ns() / typical_ns).max(1);
            notes.push(format!(
                "the samples are about {} apart, more than the step of {}: buckets without samples have no value; \
                 request at most {points} points for values without gaps",
                format_duration(round_duration(typical_ns)),
                self.query.grid.step_text()
            ));
        }
        if self.counts.out_of_order > 0 {
            let late = self.counts.out_of_order;
            notes.push(format!("{late} samples arrived too late to be put in order, and are not used"));
        }
        notes
    }
}

/// The error for a sample of a bucket that was closed.
fn unordered_samples() -> Error {
    let mebibytes = MEMORY_BYTES_MAX >> 20;
    let message =
        format!("percentiles of samples that are not in order of time need more than {mebibytes} MiB of memory");
    Error::new(ErrorKind::TooLarge, message).with_hint("Request fewer points, a shorter window, or fewer series.")
}

/// The duration in whole seconds, if it has any.
fn round_duration(duration_ns: u64) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    if duration_ns < SECOND_NS { duration_ns } else { (duration_ns + SECOND_NS / 2) / SECOND_NS * SECOND_NS }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::aggregation::LabelAggregation;
    use super::super::model::MetricKind;
    use super::super::selection::LabelSelection;
    use super::*;

    fn evaluator(percentage: f64) -> MetricEvaluator {
        MetricEvaluator::new(MetricQuery {
            metric: "m".to_owned(),
            unit: None,
            kind: MetricKind::Gauge,
            selection: LabelSelection::default(),
            grid: TimeGrid::new(TimeWindow::new(0, 100), 10),
            aggregation: TimeAggregation::Percentile(percentage),
            label_aggregation: Some(LabelAggregation::Sum),
            by: Vec::new(),
            series_max: 10,
        })
    }

    #[test]
    fn samples_of_closed_buckets_are_an_error() {
        let mut evaluator = evaluator(50.0);
        let series = evaluator.series(&Labels::default()).unwrap().unwrap();
        let mut push = |time_ns| evaluator.push(series, Sample { time_ns, value: 1.0 });
        push(5).unwrap();
        push(55).unwrap();
        assert!(evaluator.close_past_buckets());
        let mut push = |time_ns| evaluator.push(series, Sample { time_ns, value: 1.0 });
        push(45).unwrap();
        let error = push(6).unwrap_err();
        assert!(error.message().contains("not in order of time"), "{error}");
    }

    proptest! {
        /// Closing buckets at any time changes nothing for samples in order, and frees what was reserved.
        #[test]
        fn closed_buckets_keep_their_percentiles(values in prop::collection::vec((0_i64..3, -9.0..9.0, 0_u8..9), 1..300), percentage in 0.0..=100.0) {
            let (mut closing, mut whole) = (evaluator(percentage), evaluator(percentage));
            let mut time_ns = 0;
            for (wait_ns, value, action) in values {
                time_ns += wait_ns;
                for evaluator in [&mut closing, &mut whole] {
                    let series = evaluator.series(&Labels::default()).unwrap().unwrap();
                    evaluator.push(series, Sample { time_ns, value }).unwrap();
                }
                if action == 0 {
                    closing.close_past_buckets();
                }
                prop_assert!(closing.memory_bytes <= whole.memory_bytes);
            }
            prop_assert_eq!(closing.finish().unwrap().series, whole.finish().unwrap().series);
        }
    }
}
