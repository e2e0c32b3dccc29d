//! What changed most between a baseline window and a window of interest.
//!
//! For each series, two numbers describe the change:
//!
//! - the Kolmogorov–Smirnov **distance** of the values of both windows, 0 to 1, which also shows changes of the spread;
//! - the **relative change** of the mean, `(interest − baseline) / |baseline|`.
//!
//! The score is `max(0, distance − noise) × (1 + share) / 2`. The noise is `1.36 × √(1/n + 1/m)`, at most 1: the distance
//! that two windows with n and m values exceed by chance in one of twenty cases if nothing changed. So few values give a
//! low score. The share is the change of the mean in relation to the larger of both means, 0 to 1. A series that exists
//! in one window only has distance and share 1, and only its own values count for the noise. Identical windows have the
//! score 0.
//!
//! A counter is compared by its rates: the growth between two successive samples of a window, per second.

use std::collections::HashMap;

use super::counter::{CounterGrowth, CounterState};
use super::distribution::{Distribution, DistributionSummary, kolmogorov_smirnov_distance};
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
