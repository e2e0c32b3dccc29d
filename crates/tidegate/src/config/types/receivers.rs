//! Receivers of telemetry.

use schemars::JsonSchema;
use serde::Deserialize;

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
