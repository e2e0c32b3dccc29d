//! `opentelemetry.proto.logs.v1`.

use super::common::{AnyValue, InstrumentationScope, KeyValue, Resource};
use super::declare_messages;
use crate::otlp::json_fields;

declare_messages! {
    ResourceLogs {
        1 resource: one Resource,
        2 scope_logs: many ScopeLogs,
        3 schema_url: text,
    }
    ScopeLogs {
        1 scope: one InstrumentationScope,
        2 log_records: many LogRecord,
        3 schema_url: text,
    }
    LogRecord {
        1 time_unix_nano: fixed64 u64,
        11 observed_time_unix_nano: fixed64 u64,
        2 severity_number: int32 i32,
        3 severity_text: text,
        5 body: one AnyValue,
        6 attributes: many KeyValue,
        7 dropped_attributes_count: uint32 u32,
        8 flags: fixed32 u32,
        9 trace_id: identifier,
        10 span_id: identifier,
        12 event_name: text,
    }
}
