//! The answer to a query: one value for each series and bucket, and what is not in it.

use super::aggregation::{LabelAggregation, TimeAggregation};
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
pub(super) fn contribution(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().map(|value| value.abs()).sum::<f64>().min(f64::MAX)
}
