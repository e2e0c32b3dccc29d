//! `opentelemetry.proto.trace.v1`.

use super::common::{InstrumentationScope, KeyValue, Resource};
use super::declare_messages;
use crate::otlp::json_fields;

declare_messages! {
    ResourceSpans {
        1 resource: one Resource,
        2 scope_spans: many ScopeSpans,
        3 schema_url: text,
    }
    ScopeSpans {
        1 scope: one InstrumentationScope,
        2 spans: many Span,
        3 schema_url: text,
    }
    Span {
        1 trace_id: identifier,
        2 span_id: identifier,
        3 trace_state: text,
        4 parent_span_id: identifier,
        16 flags: fixed32 u32,
        5 name: text,
        6 kind: int32 i32,
        7 start_time_unix_nano: fixed64 u64,
        8 end_time_unix_nano: fixed64 u64,
        9 attributes: many KeyValue,
        10 dropped_attributes_count: uint32 u32,
        11 events: many Event,
        12 dropped_events_count: uint32 u32,
        13 links: many Link,
        14 dropped_links_count: uint32 u32,
        15 status: one Status,
    }
    Event {
        1 time_unix_nano: fixed64 u64,
        2 name: text,
        3 attributes: many KeyValue,
        4 dropped_attributes_count: uint32 u32,
    }
    Link {
        1 trace_id: identifier,
        2 span_id: identifier,
        3 trace_state: text,
        4 attributes: many KeyValue,
        5 dropped_attributes_count: uint32 u32,
        6 flags: fixed32 u32,
    }
    Status {
        2 message: text,
        3 code: int32 i32,
    }
}
