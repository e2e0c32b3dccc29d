//! Data points of each kind as rows of the tables `otel_metrics_…`, with their exemplars as JSON text.

use std::fmt::Write;

use super::messages::{
    Buckets, Exemplar, ExponentialHistogramDataPoint, ExportMetricsServiceRequest, HistogramDataPoint, KeyValue,
    Metric, NumberDataPoint, Sum, SummaryDataPoint,
};
use super::scope::{
    RecordCounter, ResourceColumns, ScopeColumns, SharedColumns, attributes_json, describe, share, write_attributes,
};
use super::{OtlpEncoding, check_items, decode_message, enumeration};
use crate::formats::error::{FormatError, RecordError, cut_text};
use crate::formats::limits::TelemetryLimits;
use crate::formats::tables::{Cell, RowBudget, TableBatches, TableRows, TelemetryTable};
use crate::formats::text::{count, nanoseconds, time_text, write_double};

/// The longest name of a metric that a reason contains, in bytes.
const REPORTED_NAME_BYTES_MAX: usize = 100;

/// The rows of an `ExportMetricsServiceRequest`, the body of `/v1/metrics`.
///
/// # Errors
/// `Malformed` if the body is not such a message; `TooLarge` and `OutOfMemory` if it exceeds `limits`.
pub fn decode_metrics(
    body: &[u8],
    encoding: OtlpEncoding,
    limits: &TelemetryLimits,
) -> Result<TableBatches, FormatError> {
    let request: ExportMetricsServiceRequest =
        decode_message(body, encoding, ExportMetricsServiceRequest::shape(), limits)?;
    let mut decoder = MetricsDecoder::new(limits);
    for metrics in &request.resource_metrics {
        let resource = share(ResourceColumns::new(metrics.resource.as_ref(), &metrics.schema_url, limits))?;
        for scope in &metrics.scope_metrics {
            let source = match &resource {
                Ok(resource) => share(ScopeColumns::new(resource, scope.scope.as_ref(), &scope.schema_url, limits))?,
                Err(reason) => Err(reason.clone()),
            };
            for metric in &scope.metrics {
                decoder.metric(metric, &source)?;
            }
        }
    }
    decoder.counter.finish([
        decoder.gauge,
        decoder.sum,
        decoder.histogram,
        decoder.exponential_histogram,
        decoder.summary,
    ])
}

/// The columns that all data points of a metric share.
struct MetricColumns<'a> {
    metric: &'a Metric,
    metadata: String,
    source: &'a ScopeColumns<'a>,
}

impl MetricColumns<'_> {
    fn new<'a>(
        metric: &'a Metric,
        source: &'a ScopeColumns<'a>,
        limits: &TelemetryLimits,
    ) -> Result<MetricColumns<'a>, RecordError> {
        if metric.name.is_empty() {
            return RecordError::rejected("the metric has no name");
        }
        let kinds = [
            metric.gauge.is_some(),
            metric.sum.is_some(),
            metric.histogram.is_some(),
            metric.exponential_histogram.is_some(),
            metric.summary.is_some(),
        ];
        if kinds.into_iter().filter(|is_set| *is_set).count() > 1 {
            return RecordError::rejected("the metric has data of more than one kind");
        }
        let metadata = attributes_json(&metric.metadata, limits).map_err(|error| describe("the metadata", error))?;
        Ok(MetricColumns { metric, metadata, source })
    }

    /// A row: the columns of the metric, those of the data point, those of the source.
    fn cells<'b>(&'b self, start: &[Cell<'b>; 4], own: &[Cell<'b>]) -> Vec<Cell<'b>> {
        let metric = [
            Cell::Text(&self.metric.name),
            Cell::non_empty(&self.metric.description),
            Cell::non_empty(&self.metric.unit),
            Cell::Text(&self.metadata),
        ];
        [&metric[..], start, own, &self.source.cells()].concat()
    }
}

struct MetricsDecoder<'a> {
    limits: &'a TelemetryLimits,
    counter: RecordCounter,
    gauge: TableRows,
    sum: TableRows,
    histogram: TableRows,
    exponential_histogram: TableRows,
    summary: TableRows,
}

impl<'a> MetricsDecoder<'a> {
    fn new(limits: &'a TelemetryLimits) -> Self {
        Self {
            limits,
            counter: RecordCounter::new(limits),
            gauge: TableRows::new(TelemetryTable::Gauge),
            sum: TableRows::new(TelemetryTable::Sum),
            histogram: TableRows::new(TelemetryTable::Histogram),
            exponential_histogram: TableRows::new(TelemetryTable::ExponentialHistogram),
            summary: TableRows::new(TelemetryTable::Summary),
        }
    }

    /// Appends the data points of a metric. Those of a metric that is wrong are rejected one by one.
    fn metric(&mut self, metric: &Metric, source: &SharedColumns<ScopeColumns<'_>>) -> Result<(), FormatError> {
        let limits = self.limits;
        let shared = match source {
            Ok(source) => share(MetricColumns::new(metric, source, limits))?,
            Err(reason) => Err(reason.clone()),
        };
        let position = |index: usize| {
            let name = cut_text(&metric.name, REPORTED_NAME_BYTES_MAX);
            move || format!("metric {name:?}, data point {index}")
        };
        for (index, point) in metric.gauge.iter().flat_map(|gauge| &gauge.data_points).enumerate() {
            self.counter.record(&shared, position(index), |budget, metric| {
                push_gauge(&mut self.gauge, budget, metric, point, limits)
            })?;
        }
        if let Some(sum) = &metric.sum {
            for (index, point) in sum.data_points.iter().enumerate() {
                self.counter.record(&shared, position(index), |budget, metric| {
                    push_sum(&mut self.sum, budget, metric, sum, point, limits)
                })?;
            }
        }
        if let Some(histogram) = &metric.histogram {
            for (index, point) in histogram.data_points.iter().enumerate() {
                let temporality = histogram.aggregation_temporality;
                self.counter.record(&shared, position(index), |budget, metric| {
                    push_histogram(&mut self.histogram, budget, metric, temporality, point, limits)
                })?;
            }
        }
        if let Some(histogram) = &metric.exponential_histogram {
            for (index, point) in histogram.data_points.iter().enumerate() {
                let temporality = histogram.aggregation_temporality;
                self.counter.record(&shared, position(index), |budget, metric| {
                    let table = &mut self.exponential_histogram;
                    push_exponential_histogram(table, budget, metric, temporality, point, limits)
                })?;
            }
        }
        for (index, point) in metric.summary.iter().flat_map(|summary| &summary.data_points).enumerate() {
            self.counter.record(&shared, position(index), |budget, metric| {
                push_summary(&mut self.summary, budget, metric, point, limits)
            })?;
        }
        Ok(())
    }
}

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

fn push_gauge(
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

fn push_sum(
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

fn push_histogram(
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

fn push_exponential_histogram(
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

fn push_summary(
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

/// Exemplars as an array of objects: `time`, `value`, `trace_id`, `span_id`, `filtered_attributes`.
fn exemplars_json(exemplars: &[Exemplar], limits: &TelemetryLimits) -> Result<String, RecordError> {
    check_items("exemplars", exemplars.len(), limits)?;
    let mut output = String::from("[");
    for (index, exemplar) in exemplars.iter().enumerate() {
        if index > 0 {
            output.push(',');
        }
        write_exemplar(&mut output, exemplar, limits).map_err(|error| describe(&format!("exemplar {index}"), error))?;
    }
    output.push(']');
    Ok(output)
}

fn write_exemplar(output: &mut String, exemplar: &Exemplar, limits: &TelemetryLimits) -> Result<(), RecordError> {
    output.push('{');
    if let Some(time) = nanoseconds("time_unix_nano", exemplar.time_unix_nano)? {
        // Writing to a text does not fail.
        _ = write!(output, "\"time\":\"{}\",", time_text(time));
    }
    output.push_str("\"value\":");
    match (exemplar.as_double, exemplar.as_int) {
        (Some(value), None) => write_double(output, value),
        (None, Some(value)) => _ = write!(output, "{value}"),
        (None, None) => output.push_str("null"),
        (Some(_), Some(_)) => return RecordError::rejected("it has two values"),
    }
    for (name, identifier) in [("trace_id", &exemplar.trace_id), ("span_id", &exemplar.span_id)] {
        if !identifier.is_empty() {
            _ = write!(output, ",\"{name}\":\"{}\"", hex::encode(identifier));
        }
    }
    output.push_str(",\"filtered_attributes\":");
    write_attributes(output, &exemplar.filtered_attributes, limits)?;
    output.push('}');
    Ok(())
}
