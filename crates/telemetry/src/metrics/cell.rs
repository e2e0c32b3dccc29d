//! What is kept of the samples of one bucket of a series, or of the values that several series have in a bucket: for
//! percentiles, exact values while they are few, then a sketch of fixed size; the growth of a counter from samples that
//! may arrive a little out of order.

use std::collections::VecDeque;
use std::f64::consts::PI;

use super::aggregation::{LabelAggregation, TimeAggregation};
use super::model::Sample;

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

/// The number of samples of a series that are held back, so that later ones with an earlier time are put in order.
const REORDERED_SAMPLES_MAX: usize = 16;

/// The state of a counter between its samples.
#[derive(Debug, Clone, Default)]
pub(super) struct CounterState {
    /// Samples by time, not yet used.
    pending: VecDeque<Sample>,
    /// The latest used sample.
    previous: Option<Sample>,
}

/// The growth of a counter up to one of its samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CounterGrowth {
    /// The time of the sample.
    pub time_ns: i64,
    /// The growth since the sample before it.
    pub growth: f64,
    /// The time since the sample before it.
    pub between_ns: u64,
}

/// A sample that is earlier than one that was already used, or has the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LateSample;

impl CounterState {
    /// Adds a sample. If enough later ones have arrived, the earliest pending one is used and its growth returned.
    /// Growth since a sample before `base_from_ns` is not known.
    pub(super) fn add(&mut self, sample: Sample, base_from_ns: i64) -> Result<Option<CounterGrowth>, LateSample> {
        if self.previous.is_some_and(|previous| sample.time_ns <= previous.time_ns) {
            return Err(LateSample);
        }
        let index = match self.pending.back() {
            Some(last) if last.time_ns >= sample.time_ns => {
                self.pending.partition_point(|other| other.time_ns < sample.time_ns)
            }
            _ => self.pending.len(),
        };
        match self.pending.get_mut(index) {
            // Of two samples with the same time, the one that arrived later counts.
            Some(same) if same.time_ns == sample.time_ns => *same = sample,
            _ => self.pending.insert(index, sample),
        }
        if self.pending.len() <= REORDERED_SAMPLES_MAX {
            return Ok(None);
        }
        Ok(self.use_next(base_from_ns).flatten())
    }

    /// Uses the earliest pending sample; `None` if there is none. The growth of the first sample is not known.
    pub(super) fn use_next(&mut self, base_from_ns: i64) -> Option<Option<CounterGrowth>> {
        let sample = self.pending.pop_front()?;
        let base = self.previous.replace(sample).filter(|base| base.time_ns >= base_from_ns);
        Some(base.map(|base| CounterGrowth {
            time_ns: sample.time_ns,
            // Below the value before it, the counter has begun again at zero.
            growth: if sample.value < base.value { sample.value } else { sample.value - base.value },
            between_ns: sample.time_ns.abs_diff(base.time_ns),
        }))
    }
}

/// The number of values that are kept exactly.
const EXACT_VALUES_MAX: usize = 512;
/// The bound on the centroids of a sketch. A centroid at the median spans at most π / this (1.6 %) of the ranks, and one
/// towards the ends less. Between centroids values are interpolated.
const CENTROIDS_MAX: f64 = 200.0;
/// The number of values that a sketch collects before it merges them.
const PENDING_VALUES_MAX: usize = 256;

/// Values whose percentiles can be computed. Up to 512 values they are exact. With more values it becomes a t-digest (Dunning): sorted centroids, small at the ends and large in the middle.
#[derive(Debug, Clone, Default)]
pub struct ValueSet {
    /// Values in the order of their arrival; with centroids, those that are not merged yet.
    values: Vec<f64>,
    centroids: Vec<Centroid>,
    min: f64,
    max: f64,
}

/// Neighbouring values, as their mean and their number.
#[derive(Debug, Clone, Copy)]
struct Centroid {
    mean: f64,
    weight: f64,
}

impl ValueSet {
    /// Adds a value. `NaN` is ignored.
    pub fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        let is_first = self.is_empty();
        self.min = if is_first { value } else { self.min.min(value) };
        self.max = if is_first { value } else { self.max.max(value) };
        self.values.push(value);
        let values_max = if self.centroids.is_empty() { EXACT_VALUES_MAX } else { PENDING_VALUES_MAX };
        if self.values.len() > values_max {
            self.merge();
        }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.centroids.is_empty()
    }

    /// Whether percentiles are approximate.
    pub fn is_approximate(&self) -> bool {
        !self.centroids.is_empty()
    }

    /// The memory that the values take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.values.capacity() * size_of::<f64>()
            + self.centroids.capacity() * size_of::<Centroid>()
    }

    /// The value below which `percentage` (0 to 100) of the values lie: with the values sorted and numbered from 0, the
    /// one at `percentage / 100 × (n − 1)`, interpolated linearly. `None` without values.
    pub fn percentile(mut self, percentage: f64) -> Option<f64> {
        let fraction = (percentage / 100.0).clamp(0.0, 1.0);
        if self.centroids.is_empty() {
            self.values.sort_unstable_by(f64::total_cmp);
            return interpolate_sorted(&self.values, fraction);
        }
        self.merge();
        Some(self.interpolate_centroids(fraction))
    }

    /// Merges the collected values into the centroids. Neighbours become one centroid while it spans at most one unit
    /// of the scale `CENTROIDS_MAX / 2π × asin(2q − 1)`, which limits their number to about `CENTROIDS_MAX`.
    fn merge(&mut self) {
        let mut all = std::mem::take(&mut self.centroids);
        all.extend(self.values.drain(..).map(|mean| Centroid { mean, weight: 1.0 }));
        self.values.shrink_to(PENDING_VALUES_MAX + 1);
        all.sort_by(|first, second| first.mean.total_cmp(&second.mean));
        let total: f64 = all.iter().map(|centroid| centroid.weight).sum();
        let scale = |weight_before: f64| {
            let quantile = (weight_before / total).clamp(0.0, 1.0);
            CENTROIDS_MAX / (2.0 * PI) * (2.0 * quantile - 1.0).asin()
        };
        let mut weight_before = 0.0;
        for centroid in all {
            if let Some(last) = self.centroids.last_mut() {
                let weight = last.weight + centroid.weight;
                // An infinite value is not averaged with a finite one: the mean would be infinite for all of them.
                let is_mergeable = last.mean == centroid.mean || (last.mean.is_finite() && centroid.mean.is_finite());
                if is_mergeable && scale(weight_before + weight) - scale(weight_before) <= 1.0 {
                    if last.mean != centroid.mean {
                        last.mean += (centroid.mean - last.mean) * (centroid.weight / weight);
                    }
                    last.weight = weight;
                    continue;
                }
                weight_before += last.weight;
            }
            self.centroids.push(centroid);
        }
    }

    /// Each centroid lies at the middle of its ranks, and the smallest and the largest value at the ends.
    fn interpolate_centroids(&self, fraction: f64) -> f64 {
        let total: f64 = self.centroids.iter().map(|centroid| centroid.weight).sum();
        let rank = fraction * (total - 1.0);
        let (mut lower_rank, mut lower_value) = (0.0, self.min);
        let mut weight_before = 0.0;
        for centroid in &self.centroids {
            let middle = weight_before + (centroid.weight - 1.0) / 2.0;
            if rank <= middle {
                return interpolate(lower_value, centroid.mean, (rank - lower_rank) / (middle - lower_rank));
            }
            (lower_rank, lower_value) = (middle, centroid.mean);
            weight_before += centroid.weight;
        }
        interpolate(lower_value, self.max, (rank - lower_rank) / (total - 1.0 - lower_rank))
    }
}

/// The value at `fraction` of the ranks of sorted values.
pub(super) fn interpolate_sorted(sorted: &[f64], fraction: f64) -> Option<f64> {
    let rank = fraction * sorted.len().saturating_sub(1) as f64;
    let lower = rank.floor() as usize;
    let lower_value = sorted.get(lower).copied()?;
    let upper_value = sorted.get(lower + 1).copied().unwrap_or(lower_value);
    Some(interpolate(lower_value, upper_value, rank - lower as f64))
}

/// Also right for infinite values, and never outside of the two values.
fn interpolate(lower: f64, upper: f64, share: f64) -> f64 {
    if share.is_nan() || share <= 0.0 || lower == upper {
        return lower;
    }
    if share >= 1.0 {
        return upper;
    }
    let value = lower * (1.0 - share) + upper * share;
    if value.is_nan() { lower } else { value.clamp(lower.min(upper), lower.max(upper)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn percentile(values: impl IntoIterator<Item = f64>, percentage: f64) -> Option<f64> {
        let mut set = ValueSet::default();
        values.into_iter().for_each(|value| set.add(value));
        set.percentile(percentage)
    }

    #[test]
    fn known_percentiles() {
        assert_eq!(percentile([3.0, 1.0, 2.0, 4.0], 50.0), Some(2.5));
        assert_eq!(percentile([3.0, 1.0, 2.0, 4.0], 100.0), Some(4.0));
        assert_eq!(percentile([10.0, 20.0, 30.0, 40.0, 50.0], 90.0), Some(46.0));
        assert_eq!(percentile([7.0], 1.0), Some(7.0));
        assert_eq!(percentile([f64::NAN], 50.0), None);
        assert_eq!(percentile([f64::NEG_INFINITY, 1.0, f64::INFINITY], 50.0), Some(1.0));
    }

    #[test]
    fn a_sketch_is_small_and_close() {
        let mut set = ValueSet::default();
        // Every number below 100,003 once, in an order without pattern.
        (0..100_003_u64).for_each(|index| set.add((index * 7_919 % 100_003) as f64));
        assert!(set.is_approximate());
        assert!(set.memory_bytes() < 20_000, "{}", set.memory_bytes());
        for percentage in [0.0, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            let value = set.clone().percentile(percentage).unwrap();
            let error = (value - percentage / 100.0 * 100_002.0).abs() / 100_003.0;
            assert!(error < 0.005, "{percentage}: {value}");
        }
        assert_eq!((set.clone().percentile(0.0), set.percentile(100.0)), (Some(0.0), Some(100_002.0)));
    }

    #[test]
    fn a_sketch_holds_infinite_and_equal_values() {
        let values = (0..3_000).map(|index| if index % 3 == 0 { f64::INFINITY } else { 1.0 });
        assert_eq!(percentile(values.clone(), 50.0), Some(1.0));
        assert_eq!(percentile(values, 99.0), Some(f64::INFINITY));
        let opposite = (0..2_000).map(|index| if index % 2 == 0 { f64::INFINITY } else { f64::NEG_INFINITY });
        assert_eq!(percentile(opposite, 10.0), Some(f64::NEG_INFINITY));
    }

    proptest! {
        #[test]
        fn few_values_are_exact(values in prop::collection::vec(-1e6_f64..1e6, 1..400), percentage in 0.0_f64..=100.0) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = percentage / 100.0 * (sorted.len() - 1) as f64;
            let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
            let expected = low + (high - low) * rank.fract();
            prop_assert!((percentile(values, percentage).unwrap() - expected).abs() < 1e-6);
        }

        #[test]
        fn many_values_have_a_small_error_of_rank(values in prop::collection::vec(-1e3_f64..1e3, 600..4_000), percentage in 0.0_f64..=100.0) {
            let value = percentile(values.iter().copied(), percentage).unwrap();
            let below = values.iter().filter(|other| **other < value).count() as f64;
            let at_most = values.iter().filter(|other| **other <= value).count() as f64;
            let rank = percentage / 100.0 * (values.len() - 1) as f64;
            let error = (below - rank - 1.0).max(rank - at_most).max(0.0) / values.len() as f64;
            prop_assert!(error < 0.01, "{error}");
        }
    }
}
