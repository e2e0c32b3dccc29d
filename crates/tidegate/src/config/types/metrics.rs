//! Metric sources.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{SecretText, Time};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricSourceConfig {
    /// Letters, digits, dots, _ and -.
    pub(crate) name: String,
    /// database.table: plant.sensors. Default: none.
    pub(crate) table: Option<String>,
    /// Table: column with the time of a sample. Default: recognised by names and types.
    pub(crate) time: Option<String>,
    /// One sample a row: column with its metric. Default: recognised by names.
    pub(crate) metric: Option<String>,
    /// Table: column with the value of a sample. Default: recognised by names.
    pub(crate) value: Option<String>,
    /// One sample a row: column with its unit. Default: recognised by names, if there is one.
    pub(crate) unit: Option<String>,
    /// One column a metric: these columns. Default: all columns with numbers, if no column has the name of the metric.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// Table: columns that distinguish series. Default: all other columns with text or booleans, and those with whole
    /// numbers, or with the usual name of a label, that are no metrics.
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    /// Base URL without /api/v1: http://127.0.0.1:9090. VictoriaMetrics, Thanos and Mimir have this API. Default: none.
    pub(crate) prometheus: Option<String>,
    /// Prometheus: bearer token. Default: none.
    pub(crate) token: Option<SecretText>,
    /// Metrics of this server, recorded every ten seconds. {} keeps them in memory for a day. Default: none.
    pub(crate) node: Option<RecordedMetricsConfig>,
    /// Access names that callers need, all of them, besides the right to the database. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RecordedMetricsConfig {
    /// Folder that keeps the metrics across restarts. Default: none; they are kept in memory.
    pub(crate) folder: Option<String>,
    /// How long they are kept. Default: 1 day in memory, 30 days in a folder.
    pub(crate) keep: Option<Time>,
}
