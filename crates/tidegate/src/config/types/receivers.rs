//! Receivers of telemetry.

use schemars::JsonSchema;
use serde::Deserialize;

/// Receivers of telemetry, each with the database of its tables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReceiversConfig {
    /// Database for OTLP over HTTP: POST /v1/logs, /v1/metrics and /v1/traces. It has an ingest folder. Its tables otel_*
    /// are log and metric sources, and callers have the tool get_trace. Default: none.
    pub(crate) otlp: Option<String>,
    /// Database for the remote write of Prometheus: POST /api/v1/write. It has an ingest folder. Its table
    /// prometheus_samples is a metric source. Default: none.
    pub(crate) prometheus: Option<String>,
    /// Database for the bulk API of Elasticsearch: POST /_bulk and /{index}/_bulk. It has an ingest folder. Each index is a
    /// table. Default: none.
    pub(crate) bulk: Option<String>,
}
