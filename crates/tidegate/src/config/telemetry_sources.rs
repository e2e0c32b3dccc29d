//! The sources of logs and metrics of a configuration.

use std::sync::Arc;

use tidegate_query::Database;
use tidegate_tools::{LogSources, MetricSources};

use super::node_assembler::ApplyReport;
use super::problem::ConfigProblem;
use super::{LoadedConfig, logs, metrics};
use crate::metric_recorder::{MetricRecording, RunningRecorder};

/// The sources of logs and metrics.
pub(super) struct TelemetrySources {
    pub(super) logs: LogSources,
    pub(super) metrics: MetricSources,
    /// The recorder of the server's own metrics, if a source uses it.
    pub(super) recording: Option<RunningRecorder>,
}

/// Builds the sources, and checks their tables and columns in `databases`.
pub(super) async fn build_sources(
    loaded: &LoadedConfig,
    databases: &[Arc<dyn Database>],
    recording: &MetricRecording,
    problems: &mut Vec<ConfigProblem>,
    report: &mut ApplyReport,
) -> TelemetrySources {
    let logs = logs::build_log_sources(&loaded.config, databases, problems, &mut report.warnings).await;
    let metrics = metrics::build_metric_sources(loaded, databases, recording, problems, &mut report.warnings).await;
    report.notes = [logs.notes, metrics.notes].concat();
    TelemetrySources { logs: logs.sources, metrics: metrics.sources, recording: metrics.recording }
}
