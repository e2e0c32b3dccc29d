//! The sources of logs and metrics of a configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::AllowedNames;
use tidegate_query::Database;
use tidegate_runtime::SnapshotBuilder;
use tidegate_tools::{
    LogSources, MetricSources, ToolServices, register_investigation, register_log_tools, register_metric_tools,
};

use super::problems::Problems;
use super::{LoadedConfig, logs, metrics};
use crate::metric_recorder::{MetricRecording, RunningRecorder};

/// The sources of logs and metrics.
pub(super) struct TelemetrySources {
    pub(super) logs: LogSources,
    pub(super) metrics: MetricSources,
    /// The recorder of the server's own metrics, if a source uses it.
    pub(super) recording: Option<RunningRecorder>,
    /// What was recognised, a line for each.
    pub(super) notes: Vec<String>,
}

impl TelemetrySources {
    /// Adds the tools and the prompt that read the sources to `entries`, as far as `allowed` includes their names.
    pub(super) fn register(
        &self,
        entries: SnapshotBuilder,
        services: &Arc<ToolServices>,
        allowed: &AllowedNames,
    ) -> SnapshotBuilder {
        let entries = register_log_tools(entries, services, &self.logs, allowed);
        let entries = register_metric_tools(entries, services, &self.metrics, allowed);
        register_investigation(entries, services, &self.logs, &self.metrics, allowed)
    }
}

/// Builds the sources, and checks their tables and columns in `databases`.
pub(super) async fn build_sources(
    loaded: &LoadedConfig,
    databases: &[Arc<dyn Database>],
    recording: &MetricRecording,
    problems: &Problems,
) -> TelemetrySources {
    let logs = logs::build_log_sources(&loaded.config, databases, problems).await;
    let metrics = metrics::build_metric_sources(loaded, databases, recording, problems).await;
    let notes = logs.notes.into_iter().chain(metrics.notes).collect();
    TelemetrySources { logs: logs.sources, metrics: metrics.sources, recording: metrics.recording, notes }
}

/// Checks the names of the sources below `key`: their characters, and that each is used once. `kind` is what messages call
/// a source.
pub(super) fn check_names<'a>(key: &str, kind: &str, names: impl Iterator<Item = &'a str>, problems: &Problems) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, name) in names.enumerate() {
        let path = format!("{key}[{index}].name");
        let is_word = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        if name.is_empty() || !name.chars().all(is_word) {
            let message = format!("{name:?} is no name of a {kind}: letters, digits, dots, _ and -");
            problems.add(path, message);
        } else if let Some(first) = seen.get(name) {
            let message = format!("{name} is the name of another");
            problems.add_related(path, format_args!("{key}[{first}].name"), message);
        } else {
            seen.insert(name, index);
        }
    }
}
