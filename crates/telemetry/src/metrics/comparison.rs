//! What changed most between a baseline window and a window of interest.
//!
//! For each series, two numbers describe the change:
//!
//! - the Kolmogorov–Smirnov **distance** of the values of both windows, 0 to 1, which also shows changes of the spread;
//! - the **relative change** of the mean, `(interest − baseline) / |baseline|`.
//!
//! The score is `max(0, distance − noise) × (1 + share) / 2`. The noise is `1.36 × √(1/n + 1/m)`, at most 1: the
//! distance that two windows with n and m values exceed by chance in one of twenty cases if nothing changed. So few
//! values give a low score. The share is the change of the mean in relation to the larger of both means, 0 to 1. A
//! series that exists in one window only has distance and share 1, and only its own values count for the noise.
//! Identical windows have the score 0.
//!
//! A counter is compared by its rates: the growth between two successive samples of a window, per second.

use std::collections::HashMap;

use super::cell::{CounterGrowth, CounterState, interpolate_sorted};
use super::model::{Labels, MetricKind, Sample, TimeWindow};

/// The factor of the Kolmogorov–Smirnov test for one error in twenty.
const NOISE_FACTOR: f64 = 1.36;
/// Fewer values in a window are noted.
const FEW_VALUES: u64 = 10;
/// The maximum number of compared series.
const SERIES_COMPARED_MAX: usize = 10_000;

/// The windows of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparisonOptions {
    /// The window of normal operation.
    pub baseline: TimeWindow,
    /// The window in question. It may overlap the baseline; samples in both count in both.
    pub interest: TimeWindow,
    /// The number of series in the answer.
    pub ranked_max: usize,
}

/// Identifies a series within one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComparisonSeries(usize);

/// Receives samples and ranks their series.
#[derive(Debug)]
pub struct WindowComparison {
    options: ComparisonOptions,
    handles: HashMap<(String, Labels), ComparisonSeries>,
    series: Vec<SeriesDistributions>,
    not_compared: u64,
}

#[derive(Debug)]
struct SeriesDistributions {
    metric: String,
    labels: Labels,
    /// The state of a counter in each window; `None` for other kinds.
    counters: Option<[CounterState; 2]>,
    distributions: [Distribution; 2],
}

/// The ranked series of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonAnswer {
    /// The windows.
    pub options: ComparisonOptions,
    /// The series with a score above 0, the largest first.
    pub ranked: Vec<ComparedSeries>,
    /// The number of compared series.
    pub compared: usize,
    /// How many of them have the score 0.
    pub unchanged: usize,
    /// How many have a score above 0 and are not in the answer.
    pub left_out: usize,
    /// How many additions of series were refused because a comparison has at most 10,000 series.
    pub not_compared: u64,
}

/// The change of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedSeries {
    /// The name of the metric.
    pub metric: String,
    /// The labels of the series.
    pub labels: Labels,
    /// 0 (no change) to 1.
    pub score: f64,
    /// The Kolmogorov–Smirnov distance.
    pub distance: f64,
    /// The relative change of the mean; `None` if the baseline has no values or the mean 0.
    pub relative_change: Option<f64>,
    /// The values in the baseline; for a counter, rates per second.
    pub baseline: Option<DistributionSummary>,
    /// The values in the window of interest.
    pub interest: Option<DistributionSummary>,
    /// What limits the comparison.
    pub note: Option<String>,
}

impl WindowComparison {
    /// A comparison without samples.
    pub fn new(options: ComparisonOptions) -> Self {
        Self { options, handles: HashMap::new(), series: Vec::new(), not_compared: 0 }
    }

    /// The series of a metric with these labels; `None` if there are too many.
    pub fn series(&mut self, metric: &str, kind: MetricKind, labels: &Labels) -> Option<ComparisonSeries> {
        let key = (metric.to_owned(), labels.clone());
        if let Some(handle) = self.handles.get(&key) {
            return Some(*handle);
        }
        if self.series.len() >= SERIES_COMPARED_MAX {
            self.not_compared += 1;
            return None;
        }
        let handle = ComparisonSeries(self.series.len());
        self.series.push(SeriesDistributions {
            metric: key.0.clone(),
            labels: key.1.clone(),
            counters: (kind == MetricKind::Counter).then(Default::default),
            distributions: Default::default(),
        });
        self.handles.insert(key, handle);
        Some(handle)
    }

    /// Adds a sample. Within a counter, samples may be out of order as for [`super::MetricEvaluator`].
    pub fn push(&mut self, series: ComparisonSeries, sample: Sample) {
        let Some(state) = self.series.get_mut(series.0) else { return };
        for (index, window) in [self.options.baseline, self.options.interest].into_iter().enumerate() {
            if !window.contains(sample.time_ns) || !sample.value.is_finite() {
                continue;
            }
            let Some(distribution) = state.distributions.get_mut(index) else { continue };
            match state.counters.as_mut().and_then(|counters| counters.get_mut(index)) {
                None => distribution.add(sample.value),
                Some(counter) => {
                    // A late sample of a counter is not used; one of several hundred does not change the result.
                    if let Ok(Some(growth)) = counter.add(sample, i64::MIN) {
                        distribution.add(per_second(growth));
                    }
                }
            }
        }
    }

    /// The ranked series.
    pub fn finish(self) -> ComparisonAnswer {
        let compared = self.series.into_iter().filter_map(SeriesDistributions::compare);
        let mut all: Vec<ComparedSeries> = compared.collect();
        let compared = all.len();
        all.retain(|series| series.score > 0.0);
        let unchanged = compared - all.len();
        all.sort_by(|first, second| {
            let change = |series: &ComparedSeries| series.relative_change.map_or(f64::INFINITY, f64::abs);
            let by_change = || change(second).total_cmp(&change(first));
            let by_name = || (&first.metric, &first.labels).cmp(&(&second.metric, &second.labels));
            second.score.total_cmp(&first.score).then_with(by_change).then_with(by_name)
        });
        let left_out = all.len().saturating_sub(self.options.ranked_max);
        all.truncate(self.options.ranked_max);
        let (options, not_compared) = (self.options, self.not_compared);
        ComparisonAnswer { options, ranked: all, compared, unchanged, left_out, not_compared }
    }
}

fn per_second(growth: CounterGrowth) -> f64 {
    growth.growth / (growth.between_ns as f64 / 1e9)
}

impl SeriesDistributions {
    /// `None` if neither window has values.
    fn compare(mut self) -> Option<ComparedSeries> {
        for (counter, distribution) in self.counters.iter_mut().flatten().zip(&mut self.distributions) {
            while let Some(growth) = counter.use_next(i64::MIN) {
                growth.into_iter().for_each(|growth| distribution.add(per_second(growth)));
            }
        }
        let [baseline, interest] = self.distributions.map(Distribution::finish);
        let kept = |side: &Option<(DistributionSummary, Vec<f64>)>| side.as_ref().map_or(0, |(_, kept)| kept.len());
        let counts = (kept(&baseline), kept(&interest));
        let noise = noise(counts.0, counts.1)?;
        let (distance, share) = match (&baseline, &interest) {
            (Some((before, before_values)), Some((after, after_values))) => {
                (kolmogorov_smirnov_distance(before_values, after_values), mean_share(before.mean, after.mean))
            }
            _ => (1.0, 1.0),
        };
        let score = (distance - noise).max(0.0) * f64::midpoint(1.0, share);
        let (baseline, interest) = (baseline.map(|(summary, _)| summary), interest.map(|(summary, _)| summary));
        let note = note(baseline, interest);
        let relative_change = relative_change(baseline, interest);
        let (metric, labels) = (self.metric, self.labels);
        Some(ComparedSeries { metric, labels, score, distance, relative_change, baseline, interest, note })
    }
}

/// The distance that chance explains; `None` if there are no values at all.
fn noise(before: usize, after: usize) -> Option<f64> {
    let share = |count: usize| if count == 0 { 0.0 } else { 1.0 / count as f64 };
    (before + after > 0).then(|| (NOISE_FACTOR * (share(before) + share(after)).sqrt()).min(1.0))
}

/// The change of the mean in relation to the larger of both, 0 to 1.
fn mean_share(before: f64, after: f64) -> f64 {
    let larger = before.abs().max(after.abs());
    if larger == 0.0 { 0.0 } else { (after / larger - before / larger).abs().min(1.0) }
}

fn relative_change(baseline: Option<DistributionSummary>, interest: Option<DistributionSummary>) -> Option<f64> {
    let (before, after) = (baseline?.mean, interest?.mean);
    let change = (after - before) / before.abs();
    change.is_finite().then_some(change)
}

fn note(baseline: Option<DistributionSummary>, interest: Option<DistributionSummary>) -> Option<String> {
    match (baseline, interest) {
        (None, _) => Some("the series has no values in the baseline".to_owned()),
        (_, None) => Some("the series has no values in the window of interest".to_owned()),
        (Some(before), Some(after)) if before.count.min(after.count) < FEW_VALUES => {
            Some(format!("few values ({} and {}), so the score is low", before.count, after.count))
        }
        (Some(before), Some(after))
            if before.min == before.max && after.min == after.max && before.mean != after.mean =>
        {
            Some("the value is constant in each window".to_owned())
        }
        _ => None,
    }
}

/// The number of values that are kept for the distribution of a series in a window.
const VALUES_KEPT_MAX: usize = 512;

/// The values of a series in a window. Count, mean, smallest and largest value are exact. For the shape, every value is
/// kept up to a bound, then every second, every fourth and so on, in the order of arrival.
#[derive(Debug, Clone)]
struct Distribution {
    count: u64,
    mean: f64,
    min: f64,
    max: f64,
    kept: Vec<f64>,
    stride: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self { count: 0, mean: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY, kept: Vec::new(), stride: 1 }
    }
}

/// The statistics of a window, which a reader can check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistributionSummary {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest value.
    pub min: f64,
    /// The median; of a part of the values if there are more than 512.
    pub median: f64,
    /// The largest value.
    pub max: f64,
}

impl Distribution {
    /// Adds a value. Values that are not finite are ignored, because they have no mean.
    fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.count.is_multiple_of(self.stride) {
            self.kept.push(value);
        }
        self.count += 1;
        // Unlike a sum, this does not overflow.
        let share = 1.0 / self.count as f64;
        self.mean = self.mean * (1.0 - share) + value * share;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if self.kept.len() >= VALUES_KEPT_MAX {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The statistics and the kept values in order; `None` without values.
    fn finish(mut self) -> Option<(DistributionSummary, Vec<f64>)> {
        self.kept.sort_unstable_by(f64::total_cmp);
        let median = interpolate_sorted(&self.kept, 0.5)?;
        // Rounding may move the mean of equal values.
        let mean = self.mean.clamp(self.min, self.max);
        Some((DistributionSummary { count: self.count, mean, min: self.min, median, max: self.max }, self.kept))
    }
}

/// The Kolmogorov–Smirnov distance of two sorted samples: the largest difference between the shares of their values up
/// to the same value. 0 for equal samples, 1 for samples that do not overlap or if one is empty.
pub fn kolmogorov_smirnov_distance(first: &[f64], second: &[f64]) -> f64 {
    if first.is_empty() || second.is_empty() {
        return if first.len() == second.len() { 0.0 } else { 1.0 };
    }
    let (mut first_below, mut second_below, mut distance) = (0, 0, 0.0_f64);
    while let (Some(left), Some(right)) = (first.get(first_below), second.get(second_below)) {
        let value = left.min(*right);
        while first.get(first_below).is_some_and(|other| *other <= value) {
            first_below += 1;
        }
        while second.get(second_below).is_some_and(|other| *other <= value) {
            second_below += 1;
        }
        let shares = (first_below as f64 / first.len() as f64, second_below as f64 / second.len() as f64);
        distance = distance.max((shares.0 - shares.1).abs());
    }
    distance
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_distances() {
        assert_eq!(kolmogorov_smirnov_distance(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert_eq!(kolmogorov_smirnov_distance(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(kolmogorov_smirnov_distance(&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0, 5.0, 6.0]), 0.5);
        assert_eq!(kolmogorov_smirnov_distance(&[1.0], &[]), 1.0);
        assert_eq!(kolmogorov_smirnov_distance(&[5.0, 5.0, 5.0], &[5.0]), 0.0);
    }

    #[test]
    fn many_values_are_thinned() {
        let mut distribution = Distribution::default();
        (0..100_000).for_each(|value| distribution.add(f64::from(value)));
        let (summary, kept) = distribution.finish().unwrap();
        assert!(kept.len() <= VALUES_KEPT_MAX && kept.len() >= VALUES_KEPT_MAX / 2);
        assert_eq!((summary.count, summary.min, summary.max), (100_000, 0.0, 99_999.0));
        assert!((summary.mean - 49_999.5).abs() < 1e-6 && (summary.median - 50_000.0).abs() < 500.0);
    }

    proptest! {
        #[test]
        fn distance_equals_its_definition(
            mut first in prop::collection::vec(-5..5_i32, 1..40), mut second in prop::collection::vec(-5..5_i32, 1..40)
        ) {
            first.sort_unstable();
            second.sort_unstable();
            let share = |values: &[i32], bound: i32| values.iter().filter(|value| **value <= bound).count() as f64 / values.len() as f64;
            let expected = (-5..5).map(|bound| (share(&first, bound) - share(&second, bound)).abs()).fold(0.0, f64::max);
            let floats = |values: &[i32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
            prop_assert_eq!(kolmogorov_smirnov_distance(&floats(&first), &floats(&second)), expected);
        }
    }
}
