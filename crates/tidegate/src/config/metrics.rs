//! Metric sources: tables and their columns, servers, and the metrics of the node itself.

use std::sync::Arc;

use tidegate_core::{ErrorKind, Principal};
use tidegate_query::Database;
use tidegate_tools::{MetricSource, MetricSourceKind, MetricSources, MetricTable, PrometheusServer};

use super::LoadedConfig;
use super::logs::{split_table, unknown_database};
use super::problems::Problems;
use super::telemetry_sources::check_names;
use super::types::{MetricSourceConfig, RecordedMetricsConfig};
use crate::metric_recorder::{MetricRecording, RecordingOptions, RunningRecorder};

/// What was found out about the metric sources.
#[derive(Debug, Default)]
pub(super) struct MetricSourceReport {
    pub(super) sources: MetricSources,
    /// The recorder of the node's metrics, if a source uses it.
    pub(super) recording: Option<RunningRecorder>,
    /// What was recognised, a line for each table.
    pub(super) notes: Vec<String>,
}

/// Builds the sources of the configuration, and checks their tables and columns in `databases`. A database that is
/// unreachable is a warning.
pub(super) async fn build_metric_sources(
    loaded: &LoadedConfig,
    databases: &[Arc<dyn Database>],
    recording: &MetricRecording,
    problems: &Problems,
) -> MetricSourceReport {
    let mut report = MetricSourceReport::default();
    let names = loaded.config.metrics.iter().map(|entry| entry.name.as_str());
    check_names("metrics", "metric source", names, problems);
    let mut sources = Vec::new();
    for (index, entry) in loaded.config.metrics.iter().enumerate() {
        let problems = &problems.at(format_args!("metrics[{index}]"));
        let kind = match (&entry.table, &entry.prometheus, &entry.node) {
            (Some(table), None, None) => table_source(entry, table, databases, problems).await.map(|(table, note)| {
                report.notes.extend(note.map(|note| format!("metric source {}: {note}", entry.name)));
                MetricSourceKind::Table(Box::new(table))
            }),
            (None, Some(url), None) => server_source(entry, url, problems),
            (None, None, Some(options)) if report.recording.is_none() => {
                let options = recording_options(options, loaded);
                match recording.prepare(&options) {
                    Ok(recorder) => {
                        report.recording = Some((options, recorder.clone()));
                        Some(MetricSourceKind::Node(recorder))
                    }
                    Err(error) => {
                        problems.add("node.folder", error);
                        None
                    }
                }
            }
            (None, None, Some(_)) => {
                problems.add("", "is a second source of the server's own metrics");
                None
            }
            _ => {
                problems.add("", "needs exactly one of table, prometheus and node");
                None
            }
        };
        sources.extend(kind.map(|kind| MetricSource { name: entry.name.clone(), access: entry.access.clone(), kind }));
    }
    report.sources = MetricSources::new(sources);
    report
}

async fn table_source(
    entry: &MetricSourceConfig,
    table: &str,
    databases: &[Arc<dyn Database>],
    problems: &Problems,
) -> Option<(MetricTable, Option<String>)> {
    let Some((database, table)) = split_table(table, databases) else {
        problems.add("table", unknown_database(table, databases));
        return None;
    };
    let source = MetricTable {
        database: database.name().to_owned(),
        table,
        time: entry.time.clone(),
        metric: entry.metric.clone(),
        value: entry.value.clone(),
        unit: entry.unit.clone(),
        columns: entry.columns.clone(),
        labels: entry.labels.clone(),
        ..MetricTable::default()
    };
    let mut note = None;
    match source.recognize_columns(&**database, &Principal::process_user()).await {
        Ok(Ok(columns)) => note = Some(columns.to_string()),
        Ok(Err(found)) => found.into_iter().for_each(|found| problems.add(found.key, found.message)),
        Err(error)
            if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut)
                || error.is_configuration_fault() =>
        {
            problems.warn([format!("metric source {}: {error}", entry.name)]);
        }
        Err(error) => problems.add("table", error.to_string()),
    }
    Some((source, note))
}

fn server_source(entry: &MetricSourceConfig, url: &str, problems: &Problems) -> Option<MetricSourceKind> {
    match PrometheusServer::new(url, entry.token.as_ref().map(|token| token.0.expose())) {
        Ok(server) => Some(MetricSourceKind::Prometheus(Arc::new(server))),
        Err(message) => {
            problems.add("prometheus", message);
            None
        }
    }
}

fn recording_options(entry: &RecordedMetricsConfig, loaded: &LoadedConfig) -> RecordingOptions {
    RecordingOptions {
        folder: entry.folder.as_ref().map(|folder| loaded.resolve(folder)),
        keep: entry.keep.map(|keep| keep.0),
    }
}
