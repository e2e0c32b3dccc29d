//! `opentelemetry.proto.metrics.v1`.

use serde::Deserialize;

use super::common::{InstrumentationScope, KEY_VALUE, KeyValue, RESOURCE, Resource, SCOPE};
use crate::message_size::{FieldShape, MessageShape};
use crate::otlp::json_fields;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) scope_metrics: Vec<ScopeMetrics>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) schema_url: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) metrics: Vec<Metric>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) schema_url: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metric {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) description: String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) unit: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) gauge: Option<Gauge>,
    #[prost(message, optional, tag = "7")]
    pub(crate) sum: Option<Sum>,
    #[prost(message, optional, tag = "9")]
    pub(crate) histogram: Option<Histogram>,
    #[prost(message, optional, tag = "10")]
    pub(crate) exponential_histogram: Option<ExponentialHistogram>,
    #[prost(message, optional, tag = "11")]
    pub(crate) summary: Option<Summary>,
    #[prost(message, repeated, tag = "12")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) metadata: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Gauge {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) data_points: Vec<NumberDataPoint>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Sum {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) data_points: Vec<NumberDataPoint>,
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json_fields::boolean")]
    pub(crate) is_monotonic: bool,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Histogram {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) data_points: Vec<HistogramDataPoint>,
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExponentialHistogram {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) data_points: Vec<ExponentialHistogramDataPoint>,
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Summary {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) data_points: Vec<SummaryDataPoint>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NumberDataPoint {
    #[prost(message, repeated, tag = "7")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) time_unix_nano: u64,
    #[prost(double, optional, tag = "4")]
    #[serde(deserialize_with = "json_fields::optional_double")]
    pub(crate) as_double: Option<f64>,
    #[prost(sfixed64, optional, tag = "6")]
    #[serde(deserialize_with = "json_fields::optional_integer")]
    pub(crate) as_int: Option<i64>,
    #[prost(message, repeated, tag = "5")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) exemplars: Vec<Exemplar>,
    #[prost(uint32, tag = "8")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) flags: u32,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HistogramDataPoint {
    #[prost(message, repeated, tag = "9")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) count: u64,
    #[prost(double, optional, tag = "5")]
    #[serde(deserialize_with = "json_fields::optional_double")]
    pub(crate) sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    #[serde(deserialize_with = "json_fields::integers")]
    pub(crate) bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    #[serde(deserialize_with = "json_fields::doubles")]
    pub(crate) explicit_bounds: Vec<f64>,
    #[prost(message, repeated, tag = "8")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) exemplars: Vec<Exemplar>,
    #[prost(uint32, tag = "10")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) flags: u32,
    #[prost(double, optional, tag = "11")]
    #[serde(deserialize_with = "json_fields::optional_double")]
    pub(crate) min: Option<f64>,
    #[prost(double, optional, tag = "12")]
    #[serde(deserialize_with = "json_fields::optional_double")]
    pub(crate) max: Option<f64>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExponentialHistogramDataPoint {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) count: u64,
    #[prost(double, optional, tag = "5")]
    #[serde(deserialize_with = "json_fields::optional_double")]
    pub(crate) sum: Option<f64>,
    #[prost(sint32, tag = "6")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) scale: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) zero_count: u64,
    #[prost(message, optional, tag = "8")]
    pub(crate) positive: Option<Buckets>,
    #[prost(message, optional, tag = "9")]
    pub(crate) negative: Option<Buckets>,
    #[prost(uint32, tag = "10")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) flags: u32,
    #[prost(message, repeated, tag = "11")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) exemplars: Vec<Exemplar>,
    #[prost(double, optional, tag = "12")]
    #[serde(deserialize_with = "json_fields::optional_double")]
    pub(crate) min: Option<f64>,
    #[prost(double, optional, tag = "13")]
    #[serde(deserialize_with = "json_fields::optional_double")]
    pub(crate) max: Option<f64>,
    #[prost(double, tag = "14")]
    #[serde(deserialize_with = "json_fields::double")]
    pub(crate) zero_threshold: f64,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Buckets {
    #[prost(sint32, tag = "1")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) offset: i32,
    #[prost(uint64, repeated, tag = "2")]
    #[serde(deserialize_with = "json_fields::integers")]
    pub(crate) bucket_counts: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SummaryDataPoint {
    #[prost(message, repeated, tag = "7")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) count: u64,
    #[prost(double, tag = "5")]
    #[serde(deserialize_with = "json_fields::double")]
    pub(crate) sum: f64,
    #[prost(message, repeated, tag = "6")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) quantile_values: Vec<ValueAtQuantile>,
    #[prost(uint32, tag = "8")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) flags: u32,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ValueAtQuantile {
    #[prost(double, tag = "1")]
    #[serde(deserialize_with = "json_fields::double")]
    pub(crate) quantile: f64,
    #[prost(double, tag = "2")]
    #[serde(deserialize_with = "json_fields::double")]
    pub(crate) value: f64,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Exemplar {
    #[prost(message, repeated, tag = "7")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) filtered_attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) time_unix_nano: u64,
    #[prost(double, optional, tag = "3")]
    #[serde(deserialize_with = "json_fields::optional_double")]
    pub(crate) as_double: Option<f64>,
    #[prost(sfixed64, optional, tag = "6")]
    #[serde(deserialize_with = "json_fields::optional_integer")]
    pub(crate) as_int: Option<i64>,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    #[serde(deserialize_with = "json_fields::identifier")]
    pub(crate) trace_id: Vec<u8>,
}

pub(super) static RESOURCE_METRICS: MessageShape = MessageShape {
    bytes: size_of::<ResourceMetrics>(),
    fields: &[(1, FieldShape::Message(&RESOURCE)), (2, FieldShape::Message(&SCOPE_METRICS))],
};
static SCOPE_METRICS: MessageShape = MessageShape {
    bytes: size_of::<ScopeMetrics>(),
    fields: &[(1, FieldShape::Message(&SCOPE)), (2, FieldShape::Message(&METRIC))],
};
static METRIC: MessageShape = MessageShape {
    bytes: size_of::<Metric>(),
    fields: &[
        (5, FieldShape::Message(&NUMBERS)),
        (7, FieldShape::Message(&NUMBERS)),
        (9, FieldShape::Message(&HISTOGRAMS)),
        (10, FieldShape::Message(&EXPONENTIAL_HISTOGRAMS)),
        (11, FieldShape::Message(&SUMMARIES)),
        (12, FieldShape::Message(&KEY_VALUE)),
    ],
};
static NUMBERS: MessageShape = MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&NUMBER))] };
static HISTOGRAMS: MessageShape = MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&HISTOGRAM))] };
static EXPONENTIAL_HISTOGRAMS: MessageShape =
    MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&EXPONENTIAL_HISTOGRAM))] };
static SUMMARIES: MessageShape = MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&SUMMARY))] };
static NUMBER: MessageShape = MessageShape {
    bytes: size_of::<NumberDataPoint>(),
    fields: &[(7, FieldShape::Message(&KEY_VALUE)), (5, FieldShape::Message(&EXEMPLAR))],
};
static HISTOGRAM: MessageShape = MessageShape {
    bytes: size_of::<HistogramDataPoint>(),
    fields: &[(9, FieldShape::Message(&KEY_VALUE)), (8, FieldShape::Message(&EXEMPLAR))],
};
static EXPONENTIAL_HISTOGRAM: MessageShape = MessageShape {
    bytes: size_of::<ExponentialHistogramDataPoint>(),
    fields: &[
        (1, FieldShape::Message(&KEY_VALUE)),
        (8, FieldShape::Message(&BUCKETS)),
        (9, FieldShape::Message(&BUCKETS)),
        (11, FieldShape::Message(&EXEMPLAR)),
    ],
};
static BUCKETS: MessageShape =
    MessageShape { bytes: size_of::<Buckets>(), fields: &[(2, FieldShape::Integers(size_of::<u64>()))] };
static SUMMARY: MessageShape = MessageShape {
    bytes: size_of::<SummaryDataPoint>(),
    fields: &[(7, FieldShape::Message(&KEY_VALUE)), (6, FieldShape::Message(&QUANTILE))],
};
static QUANTILE: MessageShape = MessageShape { bytes: size_of::<ValueAtQuantile>(), fields: &[] };
static EXEMPLAR: MessageShape =
    MessageShape { bytes: size_of::<Exemplar>(), fields: &[(7, FieldShape::Message(&KEY_VALUE))] };
