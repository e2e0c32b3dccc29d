//! The messages of OTLP, version 1 of `opentelemetry-proto`, for Protocol Buffers and JSON: the packages `common`, `resource`,
//! `logs`, `metrics`, `trace` and `collector`, in this order.
//!
//! Where the standard has a choice between fields (`oneof`), there are optional fields with the same numbers, so that a
//! record that sets two of them is noticed; `AnyValue` is the exception, for its size. Enumerations are their numbers, so
//! that a number without a name is kept.
//!
//! The types of the crate `opentelemetry-proto` are not used: their JSON has no bound of memory, and of two fields of a
//! choice they keep one without an error.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::json_fields;
use crate::formats::limits::{FieldShape, MessageShape};

/// Declares messages. A field has its number, its name, and its type:
///
/// - `text`, `identifier`, `boolean`, `double`; `one` or `many` and the name of a message;
/// - an integer of Protocol Buffers, and its type in Rust;
/// - `optional` or `many`, and a number of Protocol Buffers.
///
/// Each message has a function `shape` with what it takes in memory.
macro_rules! declare_messages {
    (@fields { $message:ident [$($declared:tt)*] [$($shape:tt)*] }) => {
        #[derive(Clone, PartialEq, prost::Message, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(crate) struct $message {
            $($declared)*
        }

        impl $message {
            pub(crate) fn shape() -> &'static $crate::formats::limits::MessageShape {
                static SHAPE: $crate::formats::limits::MessageShape =
                    $crate::formats::limits::MessageShape { bytes: size_of::<$message>(), fields: &[$($shape)*] };
                &SHAPE
            }
        }
    };
    (@fields $message:tt $number:tt $name:ident: text, $($rest:tt)*) => {
        declare_messages!(@add $message $number $name [string] ["json_fields::text"] [String] [] $($rest)*);
    };
    (@fields $message:tt $number:tt $name:ident: identifier, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [bytes = "vec"] ["json_fields::identifier"] [Vec<u8>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: boolean, $($rest:tt)*) => {
        declare_messages!(@add $message $number $name [bool] ["json_fields::boolean"] [bool] [] $($rest)*);
    };
    (@fields $message:tt $number:tt $name:ident: double, $($rest:tt)*) => {
        declare_messages!(@add $message $number $name [double] ["json_fields::double"] [f64] [] $($rest)*);
    };
    (@fields $message:tt $number:tt $name:ident: optional double, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [double, optional] ["json_fields::optional_double"] [Option<f64>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: optional sfixed64, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [sfixed64, optional] ["json_fields::optional_integer"] [Option<i64>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: many double, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [double, repeated] ["json_fields::doubles"] [Vec<f64>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: many fixed64, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [fixed64, repeated] ["json_fields::integers"] [Vec<u64>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: many uint64, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [uint64, repeated] ["json_fields::integers"] [Vec<u64>]
            [Integers(size_of::<u64>())] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: one $type:ident, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [message, optional] [] [Option<$type>] [Message($type::shape)] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: many $type:ident, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [message, repeated] ["json_fields::list"] [Vec<$type>]
            [Message($type::shape)] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: $integer:ident $type:ident, $($rest:tt)*) => {
        declare_messages!(@add $message $number $name [$integer] ["json_fields::integer"] [$type] [] $($rest)*);
    };
    (
        @add { $message:ident [$($declared:tt)*] [$($shape:tt)*] }
        $number:tt $name:ident [$($wire:tt)*] [$($json:tt)?] [$($type:tt)*] [$($size:ident($($part:tt)*))?] $($rest:tt)*
    ) => {
        declare_messages!(
            @fields {
                $message
                [
                    $($declared)*
                    #[prost($($wire)*, tag = $number)]
                    $(#[serde(deserialize_with = $json)])?
                    pub(crate) $name: $($type)*,
                ]
                [$($shape)* $(($number, $crate::formats::limits::FieldShape::$size($($part)*)),)?]
            }
            $($rest)*
        );
    };
    ($($message:ident { $($fields:tt)* })*) => {
        $(declare_messages!(@fields { $message [] [] } $($fields)*);)*
    };
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) value: Option<Value>,
}

impl AnyValue {
    pub(crate) fn shape() -> &'static MessageShape {
        static SHAPE: MessageShape = MessageShape {
            bytes: size_of::<AnyValue>(),
            fields: &[(5, FieldShape::Message(ArrayValue::shape)), (6, FieldShape::Message(KeyValueList::shape))],
        };
        &SHAPE
    }
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
    #[prost(message, tag = "6")]
    Members(KeyValueList),
    #[prost(bytes = "vec", tag = "7")]
    Bytes(Vec<u8>),
}

declare_messages! {
    ArrayValue {
        1 values: many AnyValue,
    }
    KeyValueList {
        1 values: many KeyValue,
    }
    KeyValue {
        1 key: text,
        2 value: one AnyValue,
    }
    InstrumentationScope {
        1 name: text,
        2 version: text,
        3 attributes: many KeyValue,
        4 dropped_attributes_count: uint32 u32,
    }
    Resource {
        1 attributes: many KeyValue,
        2 dropped_attributes_count: uint32 u32,
    }
}

/// The fields of a value in JSON, of which at most one is set.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ValueFields {
    string_value: Option<String>,
    bool_value: Option<bool>,
    #[serde(deserialize_with = "json_fields::optional_integer")]
    int_value: Option<i64>,
    #[serde(deserialize_with = "json_fields::optional_double")]
    double_value: Option<f64>,
    array_value: Option<ArrayValue>,
    kvlist_value: Option<KeyValueList>,
    #[serde(deserialize_with = "json_fields::optional_bytes")]
    bytes_value: Option<Vec<u8>>,
}

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let fields = ValueFields::deserialize(input)?;
        let mut values = [
            fields.string_value.map(Value::Text),
            fields.bool_value.map(Value::Boolean),
            fields.int_value.map(Value::Integer),
            fields.double_value.map(Value::Double),
            fields.array_value.map(Value::Array),
            fields.kvlist_value.map(Value::Members),
            fields.bytes_value.map(Value::Bytes),
        ]
        .into_iter()
        .flatten();
        let value = values.next();
        if values.next().is_some() {
            return Err(D::Error::custom("a value has more than one type"));
        }
        Ok(Self { value })
    }
}

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

declare_messages! {
    ResourceMetrics {
        1 resource: one Resource,
        2 scope_metrics: many ScopeMetrics,
        3 schema_url: text,
    }
    ScopeMetrics {
        1 scope: one InstrumentationScope,
        2 metrics: many Metric,
        3 schema_url: text,
    }
    Metric {
        1 name: text,
        2 description: text,
        3 unit: text,
        5 gauge: one Gauge,
        7 sum: one Sum,
        9 histogram: one Histogram,
        10 exponential_histogram: one ExponentialHistogram,
        11 summary: one Summary,
        12 metadata: many KeyValue,
    }
    Gauge {
        1 data_points: many NumberDataPoint,
    }
    Sum {
        1 data_points: many NumberDataPoint,
        2 aggregation_temporality: int32 i32,
        3 is_monotonic: boolean,
    }
    Histogram {
        1 data_points: many HistogramDataPoint,
        2 aggregation_temporality: int32 i32,
    }
    ExponentialHistogram {
        1 data_points: many ExponentialHistogramDataPoint,
        2 aggregation_temporality: int32 i32,
    }
    Summary {
        1 data_points: many SummaryDataPoint,
    }
    NumberDataPoint {
        7 attributes: many KeyValue,
        2 start_time_unix_nano: fixed64 u64,
        3 time_unix_nano: fixed64 u64,
        4 as_double: optional double,
        6 as_int: optional sfixed64,
        5 exemplars: many Exemplar,
        8 flags: uint32 u32,
    }
    HistogramDataPoint {
        9 attributes: many KeyValue,
        2 start_time_unix_nano: fixed64 u64,
        3 time_unix_nano: fixed64 u64,
        4 count: fixed64 u64,
        5 sum: optional double,
        6 bucket_counts: many fixed64,
        7 explicit_bounds: many double,
        8 exemplars: many Exemplar,
        10 flags: uint32 u32,
        11 min: optional double,
        12 max: optional double,
    }
    ExponentialHistogramDataPoint {
        1 attributes: many KeyValue,
        2 start_time_unix_nano: fixed64 u64,
        3 time_unix_nano: fixed64 u64,
        4 count: fixed64 u64,
        5 sum: optional double,
        6 scale: sint32 i32,
        7 zero_count: fixed64 u64,
        8 positive: one Buckets,
        9 negative: one Buckets,
        10 flags: uint32 u32,
        11 exemplars: many Exemplar,
        12 min: optional double,
        13 max: optional double,
        14 zero_threshold: double,
    }
    Buckets {
        1 offset: sint32 i32,
        2 bucket_counts: many uint64,
    }
    SummaryDataPoint {
        7 attributes: many KeyValue,
        2 start_time_unix_nano: fixed64 u64,
        3 time_unix_nano: fixed64 u64,
        4 count: fixed64 u64,
        5 sum: double,
        6 quantile_values: many ValueAtQuantile,
        8 flags: uint32 u32,
    }
    ValueAtQuantile {
        1 quantile: double,
        2 value: double,
    }
    Exemplar {
        7 filtered_attributes: many KeyValue,
        2 time_unix_nano: fixed64 u64,
        3 as_double: optional double,
        6 as_int: optional sfixed64,
        4 span_id: identifier,
        5 trace_id: identifier,
    }
}

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
