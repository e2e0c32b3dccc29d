//! Sources of logs and metrics, receivers of telemetry, and messages of MQTT brokers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{SecretText, Time};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSourceConfig {
    /// Letters, digits, dots, _ and -.
    pub(crate) name: String,
    /// database.table: shop.events.
    pub(crate) table: String,
    /// Column with the time of an entry. Default: recognised by names and types.
    pub(crate) time: Option<String>,
    /// Column with the text of an entry. Default: recognised by names and types.
    pub(crate) message: Option<String>,
    /// Column with the severity of an entry. Default: recognised by names and types.
    pub(crate) severity: Option<String>,
    /// Further columns that callers can see and search. Default: all.
    #[serde(default)]
    pub(crate) fields: Vec<String>,
    /// Access names that callers need, all of them, besides the right to the database. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
}

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

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReceiversConfig {
    /// Database for POST /v1/logs, /v1/metrics and /v1/traces. Its tables otel_* are log and metric sources. Callers
    /// have the tool get_trace. Default: none.
    pub(crate) otlp: Option<String>,
    /// Database for POST /api/v1/write. Its table prometheus_samples is a metric source. Default: none.
    pub(crate) prometheus: Option<String>,
    /// Database for POST /_bulk and /{index}/_bulk. Each index is a table. Default: none.
    pub(crate) bulk: Option<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MqttConfig {
    /// mqtts://host:8883, or mqtt://host:1883 without TLS.
    pub(crate) broker: String,
    /// File of trusted authorities (PEM). Default: those of the system.
    pub(crate) authorities: Option<String>,
    /// Topic filters: plant/+/data.
    pub(crate) topics: Vec<String>,
    /// database.table: plant.sensors.
    pub(crate) table: String,
    /// 1: at least once. 0: at most once. Default: 1.
    pub(crate) qos: Option<u64>,
    /// Name of the session, unique at the broker and constant.
    pub(crate) client_id: String,
    /// User name. Default: none.
    pub(crate) username: Option<String>,
    /// Password. Default: none.
    pub(crate) password: Option<SecretText>,
    /// Format of messages. Default: json.
    #[serde(default)]
    pub(crate) format: MqttFormat,
    /// Columns with a topic level, from 0: {site: 1}. Default: none.
    #[serde(default)]
    pub(crate) topic_columns: BTreeMap<String, usize>,
    /// Column with the whole topic. Default: none.
    pub(crate) topic: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MqttFormat {
    /// One JSON document: an object, or an array of objects.
    #[default]
    Json,
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values with a head in each message.
    Csv,
    /// A stream of Arrow IPC.
    Arrow,
}
