//! `opentelemetry.proto.logs.v1`.

use serde::Deserialize;

use super::common::{ANY_VALUE, AnyValue, InstrumentationScope, KEY_VALUE, KeyValue, RESOURCE, Resource, SCOPE};
use crate::message_size::{FieldShape, MessageShape};
use crate::otlp::json_fields;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ResourceLogs {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) scope_logs: Vec<ScopeLogs>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) schema_url: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ScopeLogs {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) log_records: Vec<LogRecord>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) schema_url: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LogRecord {
    #[prost(fixed64, tag = "1")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) time_unix_nano: u64,
    #[prost(fixed64, tag = "11")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) observed_time_unix_nano: u64,
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) severity_number: i32,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) severity_text: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) body: Option<AnyValue>,
    #[prost(message, repeated, tag = "6")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "7")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) dropped_attributes_count: u32,
    #[prost(fixed32, tag = "8")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) flags: u32,
    #[prost(bytes = "vec", tag = "9")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "10")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) span_id: Vec<u8>,
    #[prost(string, tag = "12")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) event_name: String,
}

pub(super) static RESOURCE_LOGS: MessageShape = MessageShape {
    bytes: size_of::<ResourceLogs>(),
    fields: &[(1, FieldShape::Message(&RESOURCE)), (2, FieldShape::Message(&SCOPE_LOGS))],
};
static SCOPE_LOGS: MessageShape = MessageShape {
    bytes: size_of::<ScopeLogs>(),
    fields: &[(1, FieldShape::Message(&SCOPE)), (2, FieldShape::Message(&LOG_RECORD))],
};
static LOG_RECORD: MessageShape = MessageShape {
    bytes: size_of::<LogRecord>(),
    fields: &[(5, FieldShape::Message(&ANY_VALUE)), (6, FieldShape::Message(&KEY_VALUE))],
};
