//! `opentelemetry.proto.collector.*.v1`: the requests and the answers.

use super::declare_messages;
use super::logs::ResourceLogs;
use super::metrics::ResourceMetrics;
use super::traces::ResourceSpans;
use crate::otlp::json_fields;

declare_messages! {
    ExportLogsServiceRequest {
        1 resource_logs: many ResourceLogs,
    }
    ExportMetricsServiceRequest {
        1 resource_metrics: many ResourceMetrics,
    }
    ExportTraceServiceRequest {
        1 resource_spans: many ResourceSpans,
    }
}

/// `ExportLogsServiceResponse`, `ExportMetricsServiceResponse` and `ExportTraceServiceResponse`, which have the same
/// fields under the same numbers.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExportServiceResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<ExportPartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExportPartialSuccess {
    /// `rejected_log_records`, `rejected_data_points` or `rejected_spans`.
    #[prost(int64, tag = "1")]
    pub(crate) rejected: i64,
    #[prost(string, tag = "2")]
    pub(crate) error_message: String,
}
