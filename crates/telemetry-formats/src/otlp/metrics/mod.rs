//! Data points as rows of the tables `otel_metrics_…`.

mod exemplars;
mod points;

use super::attributes::attributes_json;
use super::messages::metrics::Metric;
use super::messages::services::ExportMetricsServiceRequest;
use super::source::{RecordCounter, ResourceColumns, SharedSource, SourceColumns, describe, share};
use super::{OtlpEncoding, decode_message};
use crate::error::{FormatError, RecordError, cut_text};
use crate::limits::TelemetryLimits;
use crate::rows::{Cell, TableRows};
use crate::tables::{TableBatches, TelemetryTable};

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
                Ok(resource) => share(SourceColumns::new(resource, scope.scope.as_ref(), &scope.schema_url, limits))?,
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
    source: &'a SourceColumns<'a>,
}

impl MetricColumns<'_> {
    fn new<'a>(
        metric: &'a Metric,
        source: &'a SourceColumns<'a>,
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
    fn metric(&mut self, metric: &Metric, source: &SharedSource<SourceColumns<'_>>) -> Result<(), FormatError> {
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
                points::push_gauge(&mut self.gauge, budget, metric, point, limits)
            })?;
        }
        if let Some(sum) = &metric.sum {
            for (index, point) in sum.data_points.iter().enumerate() {
                self.counter.record(&shared, position(index), |budget, metric| {
                    points::push_sum(&mut self.sum, budget, metric, sum, point, limits)
                })?;
            }
        }
        if let Some(histogram) = &metric.histogram {
            for (index, point) in histogram.data_points.iter().enumerate() {
                let temporality = histogram.aggregation_temporality;
                self.counter.record(&shared, position(index), |budget, metric| {
                    points::push_histogram(&mut self.histogram, budget, metric, temporality, point, limits)
                })?;
            }
        }
        if let Some(histogram) = &metric.exponential_histogram {
            for (index, point) in histogram.data_points.iter().enumerate() {
                let temporality = histogram.aggregation_temporality;
                self.counter.record(&shared, position(index), |budget, metric| {
                    let table = &mut self.exponential_histogram;
                    points::push_exponential_histogram(table, budget, metric, temporality, point, limits)
                })?;
            }
        }
        for (index, point) in metric.summary.iter().flat_map(|summary| &summary.data_points).enumerate() {
            self.counter.record(&shared, position(index), |budget, metric| {
                points::push_summary(&mut self.summary, budget, metric, point, limits)
            })?;
        }
        Ok(())
    }
}
