//! The time that a source covers, for calls with a window in which it has no samples.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Error, ErrorKind, Violation};
use tidegate_runtime::Job;
use tidegate_telemetry::metrics::{LabelSelection, TimeWindow};

use super::MetricContext;
use crate::arguments::now_nanos;
use crate::metric_sources::{MetricSource, MetricSourceKind, PrometheusMetrics, TableMetrics};

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
            let metrics = TableMetrics::open(source, table, &context.node, job).await?;
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
