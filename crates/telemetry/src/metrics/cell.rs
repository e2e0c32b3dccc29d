//! What is kept of the samples of one bucket of a series, or of the values that several series have in a bucket.

use super::aggregation::{LabelAggregation, TimeAggregation};
use super::model::Sample;
use super::value_set::ValueSet;

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// The state of one bucket. It has a fixed size, except for the values of percentiles.
#[derive(Debug, Clone, Default)]
pub(super) enum Cell {
    /// No samples.
    #[default]
    Empty,
    /// For averages, sums and counts, and the growth that increments add up to.
    Total { sum: f64, count: u64 },
    /// The smallest or largest value.
    Extreme(f64),
    /// The latest sample.
    Last(Sample),
    /// The growth of a counter, and the time in which it was measured.
    Growth { increase: f64, measured_ns: f64 },
    /// All values, or a sketch of them.
    Values(Box<ValueSet>),
    /// The percentile of values that are not in memory any more.
    Closed { value: f64, is_approximate: bool },
}

impl Cell {
    /// Adds a sample of a bucket. Returns the growth of the memory beside the cell itself, in bytes.
    pub(super) fn add_sample(&mut self, aggregation: TimeAggregation, sample: Sample) -> usize {
        match aggregation {
            // Increments are added up. Counters add pairs of samples with `add_growth`.
            TimeAggregation::Average
            | TimeAggregation::Sum
            | TimeAggregation::Count
            | TimeAggregation::Rate
            | TimeAggregation::Increase => self.add_to_total(sample.value),
            TimeAggregation::Min => self.keep_extreme(sample.value, f64::min),
            TimeAggregation::Max => self.keep_extreme(sample.value, f64::max),
            TimeAggregation::Median | TimeAggregation::Percentile(_) => return self.add_value(sample.value),
            TimeAggregation::Last => self.keep_latest(sample),
        }
        0
    }

    /// Adds the growth of a counter between two samples.
    pub(super) fn add_growth(&mut self, growth: f64, between_ns: u64) {
        let (increase, measured_ns) = match self {
            Self::Growth { increase, measured_ns } => (*increase, *measured_ns),
            _ => (0.0, 0.0),
        };
        *self = Self::Growth { increase: increase + growth, measured_ns: measured_ns + between_ns as f64 };
    }

    /// Adds the value that one of several series has in the bucket.
    pub(super) fn add_series_value(&mut self, aggregation: LabelAggregation, value: f64) -> usize {
        match aggregation {
            LabelAggregation::Sum | LabelAggregation::Average => self.add_to_total(value),
            LabelAggregation::Min => self.keep_extreme(value, f64::min),
            LabelAggregation::Max => self.keep_extreme(value, f64::max),
            LabelAggregation::Percentile(_) => return self.add_value(value),
        }
        0
    }

    fn add_to_total(&mut self, value: f64) {
        match self {
            Self::Total { sum, count } => (*sum, *count) = (*sum + value, *count + 1),
            _ => *self = Self::Total { sum: value, count: 1 },
        }
    }

    fn keep_extreme(&mut self, value: f64, choose: fn(f64, f64) -> f64) {
        match self {
            Self::Extreme(extreme) => *extreme = choose(*extreme, value),
            _ => *self = Self::Extreme(value),
        }
    }

    fn keep_latest(&mut self, sample: Sample) {
        match self {
            Self::Last(latest) if latest.time_ns > sample.time_ns => {}
            _ => *self = Self::Last(sample),
        }
    }

    fn add_value(&mut self, value: f64) -> usize {
        if !matches!(self, Self::Values(_)) {
            *self = Self::Values(Box::default());
        }
        let Self::Values(values) = self else { return 0 };
        let before = if values.is_empty() { 0 } else { values.memory_bytes() };
        values.add(value);
        values.memory_bytes().saturating_sub(before)
    }

    /// Replaces the values of a percentile by their result. Returns the freed memory in bytes.
    pub(super) fn close(&mut self, aggregation: TimeAggregation) -> usize {
        let Self::Values(values) = self else { return 0 };
        let (freed_bytes, is_approximate) = (values.memory_bytes(), values.is_approximate());
        let percentile = std::mem::take(values).percentile(aggregation.percentage().unwrap_or_default());
        *self = percentile.map_or(Self::Empty, |value| Self::Closed { value, is_approximate });
        freed_bytes
    }

    /// Whether the value is approximate.
    pub(super) fn is_approximate(&self) -> bool {
        match self {
            Self::Values(values) => values.is_approximate(),
            Self::Closed { is_approximate, .. } => *is_approximate,
            _ => false,
        }
    }

    /// The value over time; `None` without samples.
    pub(super) fn time_value(self, aggregation: TimeAggregation) -> Option<f64> {
        let value = match self {
            Self::Total { count, .. } if aggregation == TimeAggregation::Count => Some(count as f64),
            Self::Total { sum, count } if aggregation == TimeAggregation::Average => Some(sum / count as f64),
            Self::Growth { increase, measured_ns } if aggregation == TimeAggregation::Rate => {
                (measured_ns > 0.0).then(|| increase / (measured_ns / NANOSECONDS_PER_SECOND))
            }
            cell => cell.plain_value(aggregation.percentage().unwrap_or_default()),
        };
        value.filter(is_number)
    }

    /// The value over several series; `None` if none of them has a value.
    pub(super) fn series_value(self, aggregation: LabelAggregation) -> Option<f64> {
        let value = match (self, aggregation) {
            (Self::Total { sum, count }, LabelAggregation::Average) => Some(sum / count as f64),
            (cell, LabelAggregation::Percentile(percentage)) => cell.plain_value(percentage),
            (cell, _) => cell.plain_value(0.0),
        };
        value.filter(is_number)
    }

    fn plain_value(self, percentage: f64) -> Option<f64> {
        match self {
            Self::Empty => None,
            Self::Total { sum, .. } => Some(sum),
            Self::Extreme(value) | Self::Closed { value, .. } => Some(value),
            Self::Last(sample) => Some(sample.value),
            Self::Growth { increase, .. } => Some(increase),
            Self::Values(values) => values.percentile(percentage),
        }
    }
}

/// Infinite values of both signs have no sum and no average.
fn is_number(value: &f64) -> bool {
    !value.is_nan()
}
