//! `opentelemetry.proto.collector.*.v1`: the requests and the answers.

use serde::Deserialize;

use super::logs::{RESOURCE_LOGS, ResourceLogs};
use super::metrics::{RESOURCE_METRICS, ResourceMetrics};
use super::traces::{RESOURCE_SPANS, ResourceSpans};
use crate::message_size::{FieldShape, MessageShape};
use crate::otlp::json_fields;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExportLogsServiceRequest {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) resource_logs: Vec<ResourceLogs>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExportMetricsServiceRequest {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) resource_spans: Vec<ResourceSpans>,
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

pub(crate) static LOGS_REQUEST: MessageShape =
    MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&RESOURCE_LOGS))] };
pub(crate) static METRICS_REQUEST: MessageShape =
    MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&RESOURCE_METRICS))] };
pub(crate) static TRACES_REQUEST: MessageShape =
    MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&RESOURCE_SPANS))] };
