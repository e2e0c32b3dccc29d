//! The answer to a query: one value for each series and bucket, and what is not in it. The values of series become the
//! series of the answer: aggregated over labels, ordered, and bounded in number.

use std::collections::HashMap;

use super::aggregation::{LabelAggregation, TimeAggregation};
use super::cell::Cell;
use super::model::Labels;
use super::time_grid::TimeGrid;

/// The points of all answered series.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricAnswer {
    /// The name of the metric.
    pub metric: String,
    /// The unit of the metric, if it is known. A rate is in this unit per second.
    pub unit: Option<String>,
    /// How the samples of a bucket became one value.
    pub aggregation: TimeAggregation,
    /// How the values of several series became one, if they did.
    pub label_aggregation: Option<LabelAggregation>,
    /// The buckets.
    pub grid: TimeGrid,
    /// The series, that with the largest contribution first.
    pub series: Vec<AnsweredSeries>,
    /// The series that are not in the answer, if there are any.
    pub left_out: Option<LeftOutSeries>,
    /// What was read.
    pub counts: SampleCounts,
    /// Whether some percentile comes from a sketch, because its bucket had more values than are kept exactly.
    pub is_approximate: bool,
    /// What a reader should know, in sentences.
    pub notes: Vec<String>,
}

/// One series of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnsweredSeries {
    /// Its labels; with an aggregation over labels, only those that it was grouped by.
    pub labels: Labels,
    /// A value for each bucket; `None` where there are no samples.
    pub values: Vec<Option<f64>>,
    /// The sum of the absolute values, by which series are ordered. An infinite value makes it the largest number.
    pub contribution: f64,
}

/// The series that an answer leaves out, because it has a bound on them: those with the smallest contributions.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutSeries {
    /// Their number.
    pub count: usize,
    /// The share (0 to 1) that they have in the contributions of all series.
    pub share: f64,
    /// The labels of the largest of them.
    pub largest: Vec<Labels>,
}

/// What was read for an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// Series that fulfil the conditions.
    pub series: u64,
    /// Samples of these series within the window. Those before it, which counters need, do not count.
    pub samples: u64,
    /// Samples that are no number.
    pub nan: u64,
    /// Samples of counters that arrived too late to be put in order. They are not in the values.
    pub out_of_order: u64,
    /// Series with several samples at the time of their last one. They may be several series without the label that
    /// distinguishes these.
    pub with_simultaneous: u64,
}

/// The contribution of a series.
fn contribution(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().map(|value| value.abs()).sum::<f64>().min(f64::MAX)
}

/// The number of left-out series that an answer names.
const NAMED_SERIES_MAX: usize = 20;

/// Receives the values of one series after the other.
#[derive(Debug)]
pub(super) struct SeriesCollector {
    grouping: Option<Grouping>,
    series_max: usize,
    answered: Vec<AnsweredSeries>,
    left_out: Vec<(f64, Labels)>,
    is_approximate: bool,
}

#[derive(Debug)]
struct Grouping {
    by: Vec<String>,
    aggregation: LabelAggregation,
    groups: HashMap<Labels, Vec<Cell>>,
}

impl SeriesCollector {
    /// A collector that keeps the `series_max` series with the largest contributions. With `grouping`, series with the
    /// same values of these labels become one.
    pub(super) fn new(grouping: Option<(Vec<String>, LabelAggregation)>, series_max: usize) -> Self {
        let grouping = grouping.map(|(by, aggregation)| Grouping { by, aggregation, groups: HashMap::new() });
        Self { grouping, series_max, answered: Vec::new(), left_out: Vec::new(), is_approximate: false }
    }

    /// Adds a series. Returns the growth of the memory, in bytes.
    pub(super) fn add(&mut self, labels: Labels, values: Vec<Option<f64>>) -> usize {
        let Some(grouping) = &mut self.grouping else {
            let bytes = labels.memory_bytes() + values.len() * size_of::<Option<f64>>();
            self.answer(labels, values);
            return bytes;
        };
        let mut bytes = 0;
        let key = labels.restricted_to(&grouping.by);
        let cells = grouping.groups.entry(key).or_insert_with(|| {
            bytes += values.len() * size_of::<Cell>();
            vec![Cell::Empty; values.len()]
        });
        for (cell, value) in cells.iter_mut().zip(values) {
            if let Some(value) = value {
                bytes += cell.add_series_value(grouping.aggregation, value);
            }
        }
        bytes
    }

    fn answer(&mut self, labels: Labels, values: Vec<Option<f64>>) {
        let contribution = contribution(&values);
        self.answered.push(AnsweredSeries { labels, values, contribution });
        // Twice the bound, so that sorting is rare.
        if self.answered.len() >= self.series_max.saturating_mul(2).saturating_add(16) {
            self.leave_out_smallest();
        }
    }

    fn leave_out_smallest(&mut self) {
        self.answered.sort_by(|first, second| {
            second.contribution.total_cmp(&first.contribution).then_with(|| first.labels.cmp(&second.labels))
        });
        let kept = self.series_max.min(self.answered.len());
        self.left_out.extend(self.answered.drain(kept..).map(|series| (series.contribution, series.labels)));
    }

    /// The series of the answer, those left out, and whether a percentile over series is approximate.
    pub(super) fn finish(mut self) -> (Vec<AnsweredSeries>, Option<LeftOutSeries>, bool) {
        if let Some(Grouping { aggregation, groups, .. }) = self.grouping.take() {
            for (labels, cells) in groups {
                self.is_approximate |= cells.iter().any(Cell::is_approximate);
                let values = cells.into_iter().map(|cell| cell.series_value(aggregation)).collect();
                self.answer(labels, values);
            }
        }
        self.leave_out_smallest();
        let kept: f64 = self.answered.iter().map(|series| series.contribution).sum();
        let left_out = summarize_left_out(self.left_out, kept);
        (self.answered, left_out, self.is_approximate)
    }
}

fn summarize_left_out(mut series: Vec<(f64, Labels)>, kept: f64) -> Option<LeftOutSeries> {
    if series.is_empty() {
        return None;
    }
    series.sort_by(|(first, labels), (second, others)| second.total_cmp(first).then_with(|| labels.cmp(others)));
    let count = series.len();
    let left_out: f64 = series.iter().map(|(contribution, _)| contribution).sum();
    let share = left_out / (left_out + kept);
    let share = if share.is_nan() { 0.0 } else { share };
    let largest = series.into_iter().take(NAMED_SERIES_MAX).map(|(_, labels)| labels).collect();
    Some(LeftOutSeries { count, share, largest })
}
