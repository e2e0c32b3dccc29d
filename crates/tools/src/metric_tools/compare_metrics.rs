//! `compare_metrics`: the series that changed most between a window and the time before it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, Violation};
use tidegate_runtime::{Answer, RunningCall, Tool};
use tidegate_telemetry::metrics::{
    CatalogFilter, ComparisonOptions, ComparisonSeries, LabelSelection, Labels, MetricKind, MetricListing,
    MetricRequest, MetricSummary, Sample, SampleSink, TimeWindow, WindowComparison, window_violation,
};

use super::answer::comparison_json;
use super::list_metrics::{no_samples_note, with_covered_time};
use super::{MetricContext, labels_schema, read_window, reject, with_source_and_time};
use crate::arguments::{now_nanos, parse_arguments, read_time};
use crate::metric_sources::{DeclaredKind, MetricSourceKind, PrometheusMetrics, SampleOrder, TableMetrics};
use crate::tool_definition::{InputSchemaBuilder, any_of, context_handler, read_only_tool};

/// The window, if the call names none.
const WINDOW_NS: i64 = 900_000_000_000;
/// The length of the baseline as a multiple of the window.
const BASELINE_WINDOWS: i64 = 4;
const LIMIT_DEFAULT: usize = 20;
const LIMIT_MAX: usize = 200;
/// The maximum number of metrics that one call compares.
const METRICS_MAX: usize = 500;
/// The maximum number of metrics of a server, each of which is a request.
const SERVER_METRICS_MAX: usize = 50;
/// The points with which a server answers for each series.
const SERVER_POINTS: i64 = 250;
/// The series with which a server answers for each metric.
const SERVER_SERIES: i64 = 200;

pub(super) fn tool(context: &Arc<MetricContext>) -> Tool {
    let time = || any_of(&["string", "number"], "");
    let schema = with_source_and_time(InputSchemaBuilder::new())
        .with("baseline_after", time())
        .with("baseline_before", time())
        .with("pattern", json!({"type": "string", "description": "Words, or a glob: http_*"}))
        .with("labels", labels_schema())
        .with("limit", json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT}));
    read_only_tool(
        "compare_metrics",
        "Compare metrics",
        "Ranks the series that changed most in a window against the time before it.",
        schema,
        context_handler(context, handle),
    )
}

#[derive(Debug, Deserialize)]
struct Arguments {
    source: Option<String>,
    after: Option<Value>,
    before: Option<Value>,
    baseline_after: Option<Value>,
    baseline_before: Option<Value>,
    #[serde(default)]
    pattern: String,
    #[serde(default)]
    labels: Map<String, Value>,
    limit: Option<usize>,
}

async fn handle(context: Arc<MetricContext>, call: RunningCall) -> Result<Answer, Error> {
    let arguments: Arguments = parse_arguments(&call)?;
    let source = context.sources.find(arguments.source.as_deref(), &context.services.databases, call.principal())?;
    let mut violations = Vec::new();
    let selection = LabelSelection::parse(&arguments.labels, None).unwrap_or_else(|more| {
        violations.extend(more);
        LabelSelection::default()
    });
    let (options, windows) = read_windows(&arguments, &mut violations);
    violations.extend(with_covered_time(windows, &context, source, call.job()).await?);
    reject(violations)?;
    let both = options.baseline.union(options.interest);
    let filter = CatalogFilter::new(&arguments.pattern, Vec::new());
    let mut comparison = WindowComparison::new(options);
    let mut notes = Vec::new();
    let skipped = match &source.kind {
        MetricSourceKind::Table(table) => {
            let metrics = TableMetrics::open(source, table, &context.services, call.job()).await?;
            notes.extend(metrics.columns.note_without_role());
            let catalog = metrics.catalog(&selection, Some(both)).await?.0;
            let (requested, skipped) = select(&catalog, &filter, METRICS_MAX)?;
            for metric in requested {
                compare_in_table(&metrics, metric, &selection, both, &mut comparison).await?;
            }
            skipped
        }
        MetricSourceKind::Prometheus(api) => {
            let server = PrometheusMetrics::new(&**api);
            let catalog = server.catalog(&selection, both, |_| false).await?.0;
            let (requested, skipped) = select(&catalog, &filter, SERVER_METRICS_MAX)?;
            for metric in requested {
                compare_on_server(&server, metric, &arguments.labels, both, &mut comparison).await?;
            }
            skipped
        }
        MetricSourceKind::Node(recorder) => {
            let recorder = recorder.read();
            let catalog = recorder.store().catalog(selection.clone());
            let (requested, skipped) = select(&catalog, &filter, METRICS_MAX)?;
            for metric in requested {
                let mut sink =
                    ComparisonSink { comparison: &mut comparison, metric, selection: &selection, declared_kind: None };
                recorder.read(&metric.name, &selection, both, |labels, samples| -> Result<(), Error> {
                    let Some(series) = sink.series(&metric.name, labels)? else { return Ok(()) };
                    for sample in samples {
                        sink.push(series, sample)?;
                    }
                    Ok(())
                })?;
            }
            skipped
        }
    };
    let answer = comparison.finish();
    let mut json = comparison_json(&answer);
    if skipped > 0 {
        notes.push(format!("{skipped} metrics are not compared; name fewer with pattern"));
    }
    if answer.compared == 0 {
        notes.push(no_samples_note(&context, source, call.job()).await?);
    }
    if !notes.is_empty() {
        json.insert("notes".to_owned(), notes.into());
    }
    Ok(Answer::json(json))
}

/// The window and its baseline, which by default is four times as long and ends where the window begins, and what is
/// wrong with them.
fn read_windows(arguments: &Arguments, violations: &mut Vec<Violation>) -> (ComparisonOptions, Vec<Violation>) {
    let now = now_nanos();
    let (after, before) = read_window(&arguments.after, &arguments.before, (now, WINDOW_NS), violations);
    let length = before.saturating_sub(after);
    let end = read_time("baseline_before", &arguments.baseline_before, (now, after), violations);
    let start = end.saturating_sub(length.saturating_mul(BASELINE_WINDOWS));
    let start = read_time("baseline_after", &arguments.baseline_after, (now, start), violations);
    let mut windows: Vec<Violation> = window_violation(after, before, now).into_iter().collect();
    // A baseline without arguments is wrong only because the window is.
    if arguments.baseline_after.is_some() || arguments.baseline_before.is_some() {
        let of_baseline = |wrong: Violation| Violation { path: format!("baseline_{}", wrong.path), ..wrong };
        windows.extend(window_violation(start, end, now).map(of_baseline));
    }
    let limit = arguments.limit.unwrap_or(LIMIT_DEFAULT);
    let (baseline, interest) = (TimeWindow::new(start, end), TimeWindow::new(after, before));
    (ComparisonOptions { baseline, interest, ranked_max: limit }, windows)
}

/// The first `max` metrics that fulfil the filter, and how many more there are.
///
/// # Errors
/// The nearest names, if no metric fulfils the filter.
fn select<'a>(
    catalog: &'a [MetricSummary],
    filter: &CatalogFilter,
    max: usize,
) -> Result<(Vec<&'a MetricSummary>, usize), Error> {
    let mut requested: Vec<&MetricSummary> = catalog.iter().filter(|metric| filter.accepts(metric)).collect();
    if requested.is_empty() && !catalog.is_empty() {
        let nearest = MetricListing::new(catalog, filter, 1).nearest;
        let advice = if nearest.is_empty() { String::new() } else { format!("; nearest: {}", nearest.join(", ")) };
        let message = format!("no metric of both windows matches{advice}");
        reject(vec![Violation { path: "pattern".to_owned(), message }])?;
    }
    let skipped = requested.len().saturating_sub(max);
    requested.truncate(max);
    Ok((requested, skipped))
}

struct ComparisonSink<'a> {
    comparison: &'a mut WindowComparison,
    metric: &'a MetricSummary,
    selection: &'a LabelSelection,
    /// Where each series declares a kind of its own, if it does.
    declared_kind: Option<&'a DeclaredKind>,
}

impl SampleSink for ComparisonSink<'_> {
    type Series = ComparisonSeries;

    fn series(&mut self, metric: &str, labels: &Labels) -> Result<Option<ComparisonSeries>, Error> {
        // A database may compare names without case, and checks only some of the conditions on labels.
        if metric != self.metric.name || !self.selection.accepts(labels) {
            return Ok(None);
        }
        let kind = self.declared_kind.map_or(self.metric.kind, |declared| declared.of_series(metric, labels));
        Ok(self.comparison.series(metric, kind, labels))
    }

    fn push(&mut self, series: ComparisonSeries, sample: Sample) -> Result<(), Error> {
        self.comparison.push(series, sample);
        Ok(())
    }
}

/// Compares the samples of a table. The series of a metric that has no kind as a whole, such as one with totals and
/// increments, are compared each by its own kind.
async fn compare_in_table(
    metrics: &TableMetrics<'_>,
    metric: &MetricSummary,
    selection: &LabelSelection,
    window: TimeWindow,
    comparison: &mut WindowComparison,
) -> Result<(), Error> {
    let columns = &metrics.columns;
    let by_series = columns.labels_with_kind().filter(|_| metric.kind == MetricKind::Unknown);
    let has_counters = metric.kind == MetricKind::Counter || by_series.is_some();
    let order = if has_counters { SampleOrder::Time } else { SampleOrder::Any };
    let declared_kind = by_series.is_some().then_some(&columns.kind);
    let mut sink = ComparisonSink { comparison, metric, selection, declared_kind };
    let labels = by_series.as_ref().unwrap_or(&columns.labels);
    metrics.read_samples(&metric.name, selection, (window, order), labels, &mut sink).await
}

/// Compares the points with which a server answers: averages, and rates of counters.
async fn compare_on_server(
    server: &PrometheusMetrics<'_>,
    metric: &MetricSummary,
    labels: &Map<String, Value>,
    window: TimeWindow,
    comparison: &mut WindowComparison,
) -> Result<(), Error> {
    let request = MetricRequest {
        metric: metric.name.clone(),
        labels: labels.clone(),
        after_ns: window.after_ns,
        before_ns: window.before_ns,
        points: Some(SERVER_POINTS),
        series: Some(SERVER_SERIES),
        ..MetricRequest::default()
    };
    let known = MetricSummary { labels: None, ..metric.clone() };
    let answer = server.evaluate(request.resolve(&[known], window.before_ns)?).await?;
    let times: Vec<i64> = answer.grid.starts_ns().collect();
    // The points are values already, of the series that the server selected.
    let values = MetricSummary { kind: MetricKind::Gauge, ..metric.clone() };
    let mut sink =
        ComparisonSink { comparison, metric: &values, selection: &LabelSelection::default(), declared_kind: None };
    for series in &answer.series {
        let Some(handle) = sink.series(&metric.name, &series.labels)? else { continue };
        for (time_ns, value) in times.iter().zip(&series.values) {
            if let Some(value) = *value {
                sink.push(handle, Sample { time_ns: *time_ns, value })?;
            }
        }
    }
    Ok(())
}
