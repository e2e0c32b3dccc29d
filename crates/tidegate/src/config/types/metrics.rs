//! Metric sources.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{SecretText, Time};

/// A metric source, for the tools list_metrics, query_metrics and compare_metrics. Exactly one of table, prometheus and
/// node sets its kind.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricSourceConfig {
    /// Name of the source: letters, digits, dots, _ and -. Required.
    pub(crate) name: String,
    /// A table with samples, with its database: plant.sensors. Default: none.
    pub(crate) table: Option<String>,
    /// Table: column with the time of a sample. Default: recognised by names and types.
    pub(crate) time: Option<String>,
    /// Table: column with the name of the metric, if each row is one sample. Default: recognised by names.
    pub(crate) metric: Option<String>,
    /// Table: column with the value of a sample. Default: recognised by names.
    pub(crate) value: Option<String>,
    /// Table: column with the unit of the metric, if each row is one sample. Default: recognised by names, if there is one.
    pub(crate) unit: Option<String>,
    /// Table: columns that are metrics, if each metric has a column of its own. Default: all columns with numbers, if no
    /// column has the name of the metric.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// Table: columns that are labels, which distinguish series. Default: all other columns with text or booleans,
    /// and those with whole numbers, or with the usual name of a label, that are no metrics.
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    /// Base URL of a server with the HTTP API of Prometheus, without /api/v1: http://127.0.0.1:9090. VictoriaMetrics,
    /// Thanos and Mimir have this API. Default: none.
    pub(crate) prometheus: Option<String>,
    /// Prometheus: bearer token. Write it as ${VARIABLE}. Default: none.
    pub(crate) token: Option<SecretText>,
    /// The metrics of this server itself, recorded every ten seconds while it runs. {} keeps them in memory for a day.
    /// Default: none.
    pub(crate) node: Option<RecordedMetricsConfig>,
    /// Access names that a caller must hold, all of them, besides the right to the database. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
}

/// How the metrics of the server are kept.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RecordedMetricsConfig {
    /// Folder for the metrics, relative to this file, so that they remain after a restart. Default: none; they are kept in
    /// memory.
    pub(crate) folder: Option<String>,
    /// How long they are kept. Default: 1 day in memory, 30 days in a folder.
    pub(crate) keep: Option<Time>,
}
