//! Data points of each kind as cells.

use super::super::attributes::attributes_json;
use super::super::messages::common::KeyValue;
use super::super::messages::metrics::{
    Buckets, ExponentialHistogramDataPoint, HistogramDataPoint, NumberDataPoint, Sum, SummaryDataPoint,
};
use super::super::{check_items, enumeration};
use super::MetricColumns;
use super::exemplars::exemplars_json;
use crate::error::RecordError;
use crate::limits::TelemetryLimits;
use crate::rows::{Cell, RowBudget, TableRows};
use crate::text::{count, nanoseconds};

/// The names of `AggregationTemporality`, by their numbers.
const TEMPORALITIES: &[&str] = &["UNSPECIFIED", "DELTA", "CUMULATIVE"];
/// The flag of a data point that marks a missing value.
const NO_RECORDED_VALUE: u32 = 1;

/// The columns that data points of all kinds have.
struct PointColumns {
    start_time: Option<i64>,
    time: Option<i64>,
    attributes: String,
    flags: u32,
}

impl PointColumns {
    fn new(
        start_time: u64,
        time: u64,
        attributes: &[KeyValue],
        flags: u32,
        limits: &TelemetryLimits,
    ) -> Result<Self, RecordError> {
        Ok(Self {
            start_time: nanoseconds("start_time_unix_nano", start_time)?,
            time: nanoseconds("time_unix_nano", time)?,
            attributes: attributes_json(attributes, limits)?,
            flags,
        })
    }

    fn cells(&self) -> [Cell<'_>; 4] {
        [
            Cell::from_option(self.start_time, Cell::Time),
            Cell::from_option(self.time, Cell::Time),
            Cell::Text(&self.attributes),
            Cell::Int64(self.flags.into()),
        ]
    }
}

/// The columns `value` and `value_int`: an integer has both, the first as the nearest float.
fn value_cells(point: &NumberDataPoint) -> Result<[Cell<'static>; 2], RecordError> {
    match (point.as_double, point.as_int) {
        (Some(value), None) => Ok([Cell::Double(value), Cell::Null]),
        (None, Some(value)) => Ok([Cell::Double(value as f64), Cell::Int64(value)]),
        (None, None) if point.flags & NO_RECORDED_VALUE != 0 => Ok([Cell::Null, Cell::Null]),
        (None, None) => RecordError::rejected("it has no value, and no flag that says so"),
        (Some(_), Some(_)) => RecordError::rejected("it has two values"),
    }
}

fn number_columns(point: &NumberDataPoint, limits: &TelemetryLimits) -> Result<PointColumns, RecordError> {
    PointColumns::new(point.start_time_unix_nano, point.time_unix_nano, &point.attributes, point.flags, limits)
}

pub(super) fn push_gauge(
    table: &mut TableRows,
    budget: &mut RowBudget,
    metric: &MetricColumns<'_>,
    point: &NumberDataPoint,
    limits: &TelemetryLimits,
) -> Result<(), RecordError> {
    let columns = number_columns(point, limits)?;
    let [value, value_int] = value_cells(point)?;
    let exemplars = exemplars_json(&point.exemplars, limits)?;
    table.push(budget, &metric.cells(&columns.cells(), &[value, value_int, Cell::Text(&exemplars)]))
}

pub(super) fn push_sum(
    table: &mut TableRows,
    budget: &mut RowBudget,
    metric: &MetricColumns<'_>,
    sum: &Sum,
    point: &NumberDataPoint,
    limits: &TelemetryLimits,
) -> Result<(), RecordError> {
    let columns = number_columns(point, limits)?;
    let [value, value_int] = value_cells(point)?;
    let temporality = enumeration(TEMPORALITIES, sum.aggregation_temporality);
    let exemplars = exemplars_json(&point.exemplars, limits)?;
    let own = [value, value_int, Cell::Boolean(sum.is_monotonic), Cell::Text(&temporality), Cell::Text(&exemplars)];
    table.push(budget, &metric.cells(&columns.cells(), &own))
}

pub(super) fn push_histogram(
    table: &mut TableRows,
    budget: &mut RowBudget,
    metric: &MetricColumns<'_>,
    temporality: i32,
    point: &HistogramDataPoint,
    limits: &TelemetryLimits,
) -> Result<(), RecordError> {
    let columns =
        PointColumns::new(point.start_time_unix_nano, point.time_unix_nano, &point.attributes, point.flags, limits)?;
    let bucket_counts = bucket_counts(&point.bucket_counts, limits)?;
    check_bounds(&point.explicit_bounds, bucket_counts.len())?;
    let temporality = enumeration(TEMPORALITIES, temporality);
    let exemplars = exemplars_json(&point.exemplars, limits)?;
    let own = [
        Cell::Int64(count("count", point.count)?),
        Cell::from_option(point.sum, Cell::Double),
        Cell::from_option(point.min, Cell::Double),
        Cell::from_option(point.max, Cell::Double),
        Cell::Int64List(&bucket_counts),
        Cell::DoubleList(&point.explicit_bounds),
        Cell::Text(&temporality),
        Cell::Text(&exemplars),
    ];
    table.push(budget, &metric.cells(&columns.cells(), &own))
}

pub(super) fn push_exponential_histogram(
    table: &mut TableRows,
    budget: &mut RowBudget,
    metric: &MetricColumns<'_>,
    temporality: i32,
    point: &ExponentialHistogramDataPoint,
    limits: &TelemetryLimits,
) -> Result<(), RecordError> {
    let columns =
        PointColumns::new(point.start_time_unix_nano, point.time_unix_nano, &point.attributes, point.flags, limits)?;
    let none = Buckets::default();
    let positive = point.positive.as_ref().unwrap_or(&none);
    let negative = point.negative.as_ref().unwrap_or(&none);
    let positive_counts = bucket_counts(&positive.bucket_counts, limits)?;
    let negative_counts = bucket_counts(&negative.bucket_counts, limits)?;
    let temporality = enumeration(TEMPORALITIES, temporality);
    let exemplars = exemplars_json(&point.exemplars, limits)?;
    let own = [
        Cell::Int64(count("count", point.count)?),
        Cell::from_option(point.sum, Cell::Double),
        Cell::from_option(point.min, Cell::Double),
        Cell::from_option(point.max, Cell::Double),
        Cell::Int32(point.scale),
        Cell::Int64(count("zero_count", point.zero_count)?),
        Cell::Double(point.zero_threshold),
        Cell::Int32(positive.offset),
        Cell::Int64List(&positive_counts),
        Cell::Int32(negative.offset),
        Cell::Int64List(&negative_counts),
        Cell::Text(&temporality),
        Cell::Text(&exemplars),
    ];
    table.push(budget, &metric.cells(&columns.cells(), &own))
}

pub(super) fn push_summary(
    table: &mut TableRows,
    budget: &mut RowBudget,
    metric: &MetricColumns<'_>,
    point: &SummaryDataPoint,
    limits: &TelemetryLimits,
) -> Result<(), RecordError> {
    let columns =
        PointColumns::new(point.start_time_unix_nano, point.time_unix_nano, &point.attributes, point.flags, limits)?;
    check_items("quantiles", point.quantile_values.len(), limits)?;
    let quantiles: Vec<f64> = point.quantile_values.iter().map(|value| value.quantile).collect();
    let values: Vec<f64> = point.quantile_values.iter().map(|value| value.value).collect();
    let own = [
        Cell::Int64(count("count", point.count)?),
        Cell::Double(point.sum),
        Cell::DoubleList(&quantiles),
        Cell::DoubleList(&values),
    ];
    table.push(budget, &metric.cells(&columns.cells(), &own))
}

fn bucket_counts(counts: &[u64], limits: &TelemetryLimits) -> Result<Vec<i64>, RecordError> {
    check_items("buckets", counts.len(), limits)?;
    counts.iter().map(|value| count("a bucket count", *value)).collect()
}

/// There is one bucket more than bounds, or no bucket at all; and bounds increase.
fn check_bounds(bounds: &[f64], buckets: usize) -> Result<(), RecordError> {
    let is_empty = buckets == 0 && bounds.is_empty();
    if !is_empty && buckets != bounds.len() + 1 {
        return RecordError::rejected(format!(
            "it has {buckets} buckets and {} bounds; there is one bucket more than bounds",
            bounds.len()
        ));
    }
    if bounds.iter().any(|bound| bound.is_nan()) || bounds.array_windows().any(|[lower, upper]| lower >= upper) {
        return RecordError::rejected("the bounds of its buckets do not increase");
    }
    Ok(())
}
