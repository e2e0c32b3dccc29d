//! `opentelemetry.proto.trace.v1`.

use serde::Deserialize;

use super::common::{InstrumentationScope, KEY_VALUE, KeyValue, RESOURCE, Resource, SCOPE};
use crate::message_size::{FieldShape, MessageShape};
use crate::otlp::json_fields;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) scope_spans: Vec<ScopeSpans>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) schema_url: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) spans: Vec<Span>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) schema_url: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) parent_span_id: Vec<u8>,
    #[prost(fixed32, tag = "16")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) flags: u32,
    #[prost(string, tag = "5")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) name: String,
    #[prost(int32, tag = "6")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "10")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) dropped_attributes_count: u32,
    #[prost(message, repeated, tag = "11")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) events: Vec<Event>,
    #[prost(uint32, tag = "12")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) dropped_events_count: u32,
    #[prost(message, repeated, tag = "13")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) links: Vec<Link>,
    #[prost(uint32, tag = "14")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) dropped_links_count: u32,
    #[prost(message, optional, tag = "15")]
    pub(crate) status: Option<Status>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Event {
    #[prost(fixed64, tag = "1")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) time_unix_nano: u64,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "3")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "4")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) dropped_attributes_count: u32,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) trace_state: String,
    #[prost(message, repeated, tag = "4")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "5")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) dropped_attributes_count: u32,
    #[prost(fixed32, tag = "6")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) flags: u32,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) message: String,
    #[prost(int32, tag = "3")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) code: i32,
}

pub(super) static RESOURCE_SPANS: MessageShape = MessageShape {
    bytes: size_of::<ResourceSpans>(),
    fields: &[(1, FieldShape::Message(&RESOURCE)), (2, FieldShape::Message(&SCOPE_SPANS))],
};
static SCOPE_SPANS: MessageShape = MessageShape {
    bytes: size_of::<ScopeSpans>(),
    fields: &[(1, FieldShape::Message(&SCOPE)), (2, FieldShape::Message(&SPAN))],
};
static SPAN: MessageShape = MessageShape {
    bytes: size_of::<Span>(),
    fields: &[
        (9, FieldShape::Message(&KEY_VALUE)),
        (11, FieldShape::Message(&EVENT)),
        (13, FieldShape::Message(&LINK)),
        (15, FieldShape::Message(&STATUS)),
    ],
};
static EVENT: MessageShape =
    MessageShape { bytes: size_of::<Event>(), fields: &[(3, FieldShape::Message(&KEY_VALUE))] };
static LINK: MessageShape = MessageShape { bytes: size_of::<Link>(), fields: &[(4, FieldShape::Message(&KEY_VALUE))] };
static STATUS: MessageShape = MessageShape { bytes: size_of::<Status>(), fields: &[] };
