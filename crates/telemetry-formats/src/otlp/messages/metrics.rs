//! `opentelemetry.proto.metrics.v1`.

use super::common::{InstrumentationScope, KeyValue, Resource};
use super::declare_messages;
use crate::otlp::json_fields;

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
