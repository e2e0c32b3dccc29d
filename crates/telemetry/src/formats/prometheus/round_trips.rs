//! Any series in both versions, encoded and decoded again.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float64Type, TimestampMillisecondType};
use proptest::prelude::*;
use prost::Message;

use super::messages::{Label, RequestV2, Sample, TimeSeries, TimeSeriesV2, WriteRequest};
use super::{RemoteWriteVersion, decode_remote_write};
use crate::formats::limits::TelemetryLimits;

type Series = (BTreeMap<String, String>, Vec<(i64, u64)>);

const STALE_MARKER: u64 = 0x7ff0_0000_0000_0002;
const TIME_MS_MAX: i64 = 4_000_000_000_000;

fn any_series() -> impl Strategy<Value = Vec<Series>> {
    let labels = proptest::collection::btree_map("[a-z]{1,4}", "[^a]{1,4}", 0..4);
    let value = prop_oneof![any::<u64>(), Just(STALE_MARKER)];
    let samples = proptest::collection::vec((-TIME_MS_MAX..TIME_MS_MAX, value), 0..4);
    proptest::collection::vec((labels, samples), 0..4)
}

fn with_name(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    let labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    labels.chain([("__name__", "metric")])
}

fn samples_of(samples: &[(i64, u64)]) -> Vec<Sample> {
    let sample = |(timestamp, bits): &(i64, u64)| Sample {
        value: f64::from_bits(*bits),
        timestamp: *timestamp,
        start_timestamp: 0,
    };
    samples.iter().map(sample).collect()
}

fn encode_v1(series: &[Series]) -> Vec<u8> {
    let timeseries = series.iter().map(|(labels, samples)| TimeSeries {
        labels: with_name(labels).map(|(name, value)| Label { name: name.into(), value: value.into() }).collect(),
        samples: samples_of(samples),
        ..TimeSeries::default()
    });
    WriteRequest { timeseries: timeseries.collect(), metadata: Vec::new() }.encode_to_vec()
}

fn encode_v2(series: &[Series]) -> Vec<u8> {
    let mut symbols = vec![String::new()];
    let mut timeseries = Vec::new();
    for (labels, samples) in series {
        let mut labels_refs = Vec::new();
        for text in with_name(labels).flat_map(|(name, value)| [name, value]) {
            let position = symbols.iter().position(|symbol| symbol == text).unwrap_or_else(|| {
                symbols.push(text.to_owned());
                symbols.len() - 1
            });
            labels_refs.push(position as u32);
        }
        timeseries.push(TimeSeriesV2 { labels_refs, samples: samples_of(samples), ..TimeSeriesV2::default() });
    }
    RequestV2 { symbols, timeseries }.encode_to_vec()
}

proptest! {
    #[test]
    fn samples_keep_their_values(series in any_series()) {
        for (message, version) in
            [(encode_v1(&series), RemoteWriteVersion::V1), (encode_v2(&series), RemoteWriteVersion::V2)]
        {
            let body = snap::raw::Encoder::new().compress_vec(&message).expect("it is compressed");
            let decoded = decode_remote_write(&body, version, &TelemetryLimits::default()).expect("it is decoded");
            prop_assert_eq!(decoded.tables.rejected.count, 0, "{}", decoded.tables.rejected);
            let expected: Vec<_> = series
                .iter()
                .flat_map(|(labels, samples)| samples.iter().map(move |(time, bits)| (labels, *time, *bits)))
                .collect();
            prop_assert_eq!(decoded.tables.row_count(), expected.len());
            let Some(batch) = decoded.tables.batches.first() else { continue };
            let column = |name: &str| batch.rows.column_by_name(name).expect("the column exists");
            for (row, (labels, time, bits)) in expected.into_iter().enumerate() {
                let text = column("labels").as_string::<i32>().value(row);
                prop_assert_eq!(&serde_json::from_str::<BTreeMap<String, String>>(text).expect("it is JSON"), labels);
                prop_assert_eq!(column("time").as_primitive::<TimestampMillisecondType>().value(row), time);
                let values = column("value").as_primitive::<Float64Type>();
                let value = values.is_valid(row).then(|| values.value(row).to_bits());
                prop_assert_eq!(value, Some(bits).filter(|bits| *bits != STALE_MARKER));
            }
        }
    }
}
