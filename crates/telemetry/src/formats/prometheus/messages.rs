//! The messages of remote write: `prometheus.WriteRequest` of version 1.0, `io.prometheus.write.v2.Request` of version 2.0.
//!
//! Native histograms are not stored, so that only their number is decoded.

use crate::formats::limits::{FieldShape, MessageShape};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) timeseries: Vec<TimeSeries>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) metadata: Vec<Ignored>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) exemplars: Vec<Exemplar>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) histograms: Vec<Ignored>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Label {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// A sample of either version. Version 1.0 has no time of start.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Sample {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    #[prost(int64, tag = "2")]
    pub(crate) timestamp: i64,
    #[prost(int64, tag = "3")]
    pub(crate) start_timestamp: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
    #[prost(double, tag = "2")]
    pub(crate) value: f64,
    #[prost(int64, tag = "3")]
    pub(crate) timestamp: i64,
}

/// A message whose fields are not stored.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Ignored {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RequestV2 {
    #[prost(string, repeated, tag = "4")]
    pub(crate) symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) timeseries: Vec<TimeSeriesV2>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TimeSeriesV2 {
    #[prost(uint32, repeated, tag = "1")]
    pub(crate) labels_refs: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) histograms: Vec<Ignored>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) exemplars: Vec<ExemplarV2>,
    #[prost(message, optional, tag = "5")]
    pub(crate) metadata: Option<MetadataV2>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExemplarV2 {
    #[prost(uint32, repeated, tag = "1")]
    pub(crate) labels_refs: Vec<u32>,
    #[prost(double, tag = "2")]
    pub(crate) value: f64,
    #[prost(int64, tag = "3")]
    pub(crate) timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct MetadataV2 {
    #[prost(int32, tag = "1")]
    pub(crate) metric_type: i32,
    #[prost(uint32, tag = "3")]
    pub(crate) help_ref: u32,
    #[prost(uint32, tag = "4")]
    pub(crate) unit_ref: u32,
}

pub(crate) static WRITE_REQUEST: MessageShape = MessageShape {
    bytes: 0,
    fields: &[(1, FieldShape::Message(|| &TIME_SERIES)), (3, FieldShape::Message(|| &IGNORED))],
};
static TIME_SERIES: MessageShape = MessageShape {
    bytes: size_of::<TimeSeries>(),
    fields: &[
        (1, FieldShape::Message(|| &LABEL)),
        (2, FieldShape::Message(|| &SAMPLE)),
        (3, FieldShape::Message(|| &EXEMPLAR)),
        (4, FieldShape::Message(|| &IGNORED)),
    ],
};
static LABEL: MessageShape = MessageShape { bytes: size_of::<Label>(), fields: &[] };
static SAMPLE: MessageShape = MessageShape { bytes: size_of::<Sample>(), fields: &[] };
static EXEMPLAR: MessageShape =
    MessageShape { bytes: size_of::<Exemplar>(), fields: &[(1, FieldShape::Message(|| &LABEL))] };
static IGNORED: MessageShape = MessageShape { bytes: 1, fields: &[] };

pub(crate) static REQUEST_V2: MessageShape =
    MessageShape { bytes: 0, fields: &[(4, FieldShape::Texts), (5, FieldShape::Message(|| &TIME_SERIES_V2))] };
static TIME_SERIES_V2: MessageShape = MessageShape {
    bytes: size_of::<TimeSeriesV2>(),
    fields: &[
        (1, FieldShape::Integers(size_of::<u32>())),
        (2, FieldShape::Message(|| &SAMPLE)),
        (3, FieldShape::Message(|| &IGNORED)),
        (4, FieldShape::Message(|| &EXEMPLAR_V2)),
    ],
};
static EXEMPLAR_V2: MessageShape =
    MessageShape { bytes: size_of::<ExemplarV2>(), fields: &[(1, FieldShape::Integers(size_of::<u32>()))] };
