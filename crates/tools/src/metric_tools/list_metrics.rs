//! `list_metrics`: the metrics of a source, grouped by the beginning of their names where there are too many; and the
//! time that a source covers, for calls with a window in which it has no samples.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_core::{Error, ErrorKind, Violation};
use tidegate_runtime::{Answer, Job, RunningCall, Tool};
use tidegate_telemetry::metrics::{
    CatalogFilter, LabelSelection, MetricListing, MetricSummary, TimeWindow, window_violation,
};

use super::answer::listing_json;
use super::{MetricContext, labels_schema, read_window, reject, with_source_and_time};
use crate::arguments::{now_nanos, parse_arguments};
use crate::metric_sources::{MetricSource, MetricSourceKind, PrometheusMetrics, TableMetrics};
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};

/// The number of metrics and groups in an answer.
const LIMIT_DEFAULT: usize = 40;
const LIMIT_MAX: usize = 1_000;
/// The time in which a server is asked for metrics, if the call names none.
const SERVER_WINDOW_NS: i64 = 3_600_000_000_000;

pub(super) fn tool(context: &Arc<MetricContext>) -> Tool {
    let schema = with_source_and_time(InputSchemaBuilder::new())
        .with("pattern", json!({"type": "string", "description": "Words, or a glob: http_*"}))
        .with("labels", labels_schema())
        .with("limit", json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT}));
    read_only_tool(
        "list_metrics",
        "List metrics",
        "Metrics with kind, unit, labels (number of values) and time covered. Begin here, then query_metrics.",
        schema,
        context_handler(context, handle),
    )
}

#[derive(Debug, Deserialize)]
struct Arguments {
    source: Option<String>,
    after: Option<Value>,
    before: Option<Value>,
    #[serde(default)]
    pattern: String,
    #[serde(default)]
    labels: serde_json::Map<String, Value>,
    limit: Option<usize>,
}

async fn handle(context: Arc<MetricContext>, call: RunningCall) -> Result<Answer, Error> {
    let arguments: Arguments = parse_arguments(&call)?;
    let visible = context.sources.visible_to(&context.services.databases, call.principal());
    if let (None, [_, _, ..]) = (&arguments.source, visible.as_slice()) {
        return Ok(answer_sources(&visible));
    }
    let source = context.sources.find(arguments.source.as_deref(), &context.services.databases, call.principal())?;
    let mut violations = Vec::new();
    let selection = LabelSelection::parse(&arguments.labels, None).unwrap_or_else(|more| {
        violations.extend(more);
        LabelSelection::default()
    });
    let now = now_nanos();
    let named = arguments.after.is_some() || arguments.before.is_some();
    let (after, before) = read_window(&arguments.after, &arguments.before, (now, SERVER_WINDOW_NS), &mut violations);
    if named {
        let windows: Vec<Violation> = window_violation(after, before, now).into_iter().collect();
        violations.extend(with_covered_time(windows, &context, source, call.job()).await?);
    }
    reject(violations)?;
    let window = TimeWindow::new(after, before);
    let filter = CatalogFilter::new(&arguments.pattern, arguments.labels.keys().cloned().collect());
    let (metrics, left_out, mut notes) = match &source.kind {
        MetricSourceKind::Table(table) => {
            let metrics = TableMetrics::open(source, table, &context.services, call.job()).await?;
            let notes: Vec<String> = metrics.columns.note_without_role().into_iter().collect();
            let (metrics, left_out) = metrics.catalog(&selection, named.then_some(window)).await?;
            (metrics, left_out, notes)
        }
        MetricSourceKind::Prometheus(api) => {
            let server = PrometheusMetrics::new(&**api);
            let (metrics, warnings) = server.catalog(&selection, window, |metric| filter.accepts(metric)).await?;
            (metrics, 0, warnings)
        }
        MetricSourceKind::Node(recorder) => (recorder.read().store().catalog(selection), 0, Vec::new()),
    };
    let metrics: Vec<MetricSummary> = metrics.into_iter().filter(|metric| covers(metric, window, named)).collect();
    if metrics.is_empty() && named {
        notes.push(no_samples_note(&context, source, call.job()).await?);
    }
    let listing = MetricListing::new(&metrics, &filter, arguments.limit.unwrap_or(LIMIT_DEFAULT));
    let mut json = listing_json(&listing);
    if left_out > 0 {
        json.insert("not_listed".to_owned(), left_out.into());
    }
    if !notes.is_empty() {
        json.insert("notes".to_owned(), notes.into());
    }
    Ok(Answer::json(json))
}

/// Whether a metric has samples in the window that the call names, as far as that is known.
fn covers(metric: &MetricSummary, window: TimeWindow, is_named: bool) -> bool {
    let Some(covered) = metric.covers.filter(|_| is_named) else { return true };
    covered.after_ns < window.before_ns && covered.before_ns > window.after_ns
}

/// Without `source`, the sources are the answer.
fn answer_sources(visible: &[&MetricSource]) -> Answer {
    let source = |source: &&MetricSource| match &source.kind {
        MetricSourceKind::Table(table) => {
            json!({"name": source.name, "kind": "table", "table": format!("{}.{}", table.database, table.table)})
        }
        kind => json!({"name": source.name, "kind": kind.name()}),
    };
    let sources: Vec<Value> = visible.iter().map(source).collect();
    let text = "Name one of them as source.";
    Answer::json([("sources".to_owned(), sources.into()), ("next".to_owned(), text.into())].into_iter().collect())
}

/// How long the search for the first and the last sample may take.
const COVERED_TIME_TIMEOUT: Duration = Duration::from_secs(5);

/// Adds the time that `source` covers to problems of a window. It is only searched if there are any.
///
/// # Errors
/// If the call was cancelled.
pub(super) async fn with_covered_time(
    mut violations: Vec<Violation>,
    context: &MetricContext,
    source: &MetricSource,
    job: &Arc<Job>,
) -> Result<Vec<Violation>, Error> {
    if violations.is_empty() {
        return Ok(violations);
    }
    if let Some(covered) = covered_time(context, source, job).await? {
        violations.iter_mut().for_each(|violation| violation.message.push_str(&format!("; {covered}")));
    }
    Ok(violations)
}

/// The note for an answer without samples.
///
/// # Errors
/// If the call was cancelled.
pub(super) async fn no_samples_note(
    context: &MetricContext,
    source: &MetricSource,
    job: &Arc<Job>,
) -> Result<String, Error> {
    Ok(match covered_time(context, source, job).await? {
        Some(covered) => format!("Nothing that is selected has samples in this time; {covered}."),
        None => "Nothing that is selected has samples in this time.".to_owned(),
    })
}

/// The time that `source` covers, as a clause; `None` if it has no samples, or it cannot be found in time.
async fn covered_time(context: &MetricContext, source: &MetricSource, job: &Arc<Job>) -> Result<Option<String>, Error> {
    match tokio::time::timeout(COVERED_TIME_TIMEOUT, search(context, source, job)).await {
        Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => Err(error),
        Ok(found) => Ok(found.unwrap_or_default()),
        Err(_) => Ok(None),
    }
}

async fn search(context: &MetricContext, source: &MetricSource, job: &Arc<Job>) -> Result<Option<String>, Error> {
    let of_source = |window: TimeWindow| format!("the source has samples from {window}");
    Ok(match &source.kind {
        MetricSourceKind::Table(table) => {
            let metrics = TableMetrics::open(source, table, &context.services, job).await?;
            metrics.covered_time().await?.map(of_source)
        }
        MetricSourceKind::Prometheus(api) => {
            let covered = PrometheusMetrics::new(&**api).covered_time_of_any(now_nanos()).await?;
            covered.map(|(metric, window)| format!("its metric {metric:?} has samples from {window}"))
        }
        MetricSourceKind::Node(recorder) => {
            let metrics = recorder.read().store().catalog(LabelSelection::default());
            metrics.into_iter().filter_map(|metric| metric.covers).reduce(TimeWindow::union).map(of_source)
        }
    })
}
