//! Prometheus remote write, versions 1.0 and 2.0: which version a request has, requests as rows, and the answers.

mod messages;
mod series;

use prost::Message;

use crate::formats::error::{FormatError, cut_text};
use crate::formats::limits::{MessageShape, TelemetryLimits, check_message_size};
use crate::formats::tables::TableBatches;
use messages::{REQUEST_V2, RequestV2, WRITE_REQUEST, WriteRequest};
use series::{SampleMetadata, SeriesDecoder, Symbols};

/// How many times larger than its compressed form a body in snappy can be: three bytes are at most 64.
const SNAPPY_EXPANSION_MAX: usize = 22;
/// The longest message of an answer, in bytes. The rest is left out.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// The rows of a request of remote write.
#[derive(Debug, Clone)]
pub struct RemoteWriteRows {
    /// Samples and exemplars, and the records that were left out. Native histograms are always left out.
    pub tables: TableBatches,
    /// Descriptions of metrics of version 1.0, which belong to no sample and are not stored.
    pub ignored_metadata: u64,
}

impl RemoteWriteRows {
    /// The text of the answer once the rows are stored: why records were left out. Empty if none were.
    #[must_use]
    pub fn rejection_message(&self) -> String {
        cut_text(&self.tables.rejected.to_string(), MESSAGE_BYTES_MAX).to_owned()
    }
}

/// The rows of a request, compressed with snappy in its block format.
///
/// # Errors
/// `Malformed` if the body is not such a message; `TooLarge` and `OutOfMemory` if it exceeds `limits`.
pub fn decode_remote_write(
    body: &[u8],
    version: RemoteWriteVersion,
    limits: &TelemetryLimits,
) -> Result<RemoteWriteRows, FormatError> {
    let message = decompress(body, limits)?;
    match version {
        RemoteWriteVersion::V1 => decode_v1(&message, limits),
        RemoteWriteVersion::V2 => decode_v2(&message, limits),
    }
}

fn decompress(body: &[u8], limits: &TelemetryLimits) -> Result<Vec<u8>, FormatError> {
    limits.check_body(body.len())?;
    let malformed = |error: snap::Error| FormatError::Malformed(format!("the body is not snappy: {error}"));
    // Checked first, because the decoder allocates as many bytes as the body announces.
    let length = snap::raw::decompress_len(body).map_err(malformed)?;
    limits.check_body(length)?;
    if length > body.len().saturating_mul(SNAPPY_EXPANSION_MAX) {
        return Err(FormatError::Malformed(format!("the body announces {length} bytes, which it cannot contain")));
    }
    let most = limits.memory_bytes();
    if length > most {
        let message = format!("the body has {length} bytes after decompression; at most {most} are accepted");
        return Err(FormatError::OutOfMemory(message));
    }
    snap::raw::Decoder::new().decompress_vec(body).map_err(malformed)
}

fn decode_message<M: Message + Default>(
    message: &[u8],
    shape: &'static MessageShape,
    limits: &TelemetryLimits,
) -> Result<M, FormatError> {
    check_message_size(message, shape, limits.memory_bytes())?;
    M::decode(message)
        .map_err(|error| FormatError::Malformed(format!("the body is no message of remote write: {error}")))
}

fn decode_v1(message: &[u8], limits: &TelemetryLimits) -> Result<RemoteWriteRows, FormatError> {
    let request: WriteRequest = decode_message(message, &WRITE_REQUEST, limits)?;
    let mut decoder = SeriesDecoder::new(limits);
    for (index, series) in request.timeseries.iter().enumerate() {
        let labels = series.labels.iter().map(|label| (label.name.as_str(), label.value.as_str()));
        let shared = decoder.series(index, Ok(labels.collect()));
        // Version 1.0 has no such field; a number in its place has no meaning.
        let samples = series.samples.iter().map(|sample| messages::Sample { start_timestamp: 0, ..*sample });
        decoder.samples(&shared, samples, SampleMetadata::default())?;
        decoder.histograms(&shared, series.histograms.len())?;
        for exemplar in &series.exemplars {
            let labels = exemplar.labels.iter().map(|label| (label.name.as_str(), label.value.as_str()));
            decoder.exemplar(&shared, Ok(labels.collect()), exemplar.value, exemplar.timestamp)?;
        }
    }
    decoder.finish(request.metadata.len())
}

fn decode_v2(message: &[u8], limits: &TelemetryLimits) -> Result<RemoteWriteRows, FormatError> {
    let request: RequestV2 = decode_message(message, &REQUEST_V2, limits)?;
    let symbols = Symbols::new(&request.symbols)?;
    let mut decoder = SeriesDecoder::new(limits);
    for (index, series) in request.timeseries.iter().enumerate() {
        let mut labels = symbols.pairs(&series.labels_refs);
        let metadata = symbols.metadata(series.metadata.unwrap_or_default());
        let metadata = metadata.unwrap_or_else(|reason| {
            labels = Err(reason);
            SampleMetadata::default()
        });
        let shared = decoder.series(index, labels);
        decoder.samples(&shared, series.samples.iter().copied(), metadata)?;
        decoder.histograms(&shared, series.histograms.len())?;
        for exemplar in &series.exemplars {
            let labels = symbols.pairs(&exemplar.labels_refs);
            decoder.exemplar(&shared, labels, exemplar.value, exemplar.timestamp)?;
        }
    }
    decoder.finish(0)
}

/// A version of remote write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteWriteVersion {
    /// 1.0: the message `prometheus.WriteRequest`.
    V1,
    /// 2.0: the message `io.prometheus.write.v2.Request`.
    V2,
}

const MEDIA_TYPE: &str = "application/x-protobuf";
const CODING: &str = "snappy";

impl RemoteWriteVersion {
    /// The version from the headers `Content-Type` and `Content-Encoding` of a request. Without a parameter `proto`, it is
    /// 1.0.
    ///
    /// # Errors
    /// `Unsupported` with the media types that are read, for an answer with status 415.
    pub fn from_headers(content_type: Option<&str>, content_encoding: Option<&str>) -> Result<Self, FormatError> {
        let coding = content_encoding.unwrap_or_default().trim();
        if !coding.eq_ignore_ascii_case(CODING) {
            let message = format!("the coding {coding:?} is not read; use Content-Encoding: {CODING}");
            return Err(FormatError::Unsupported(message));
        }
        let content_type = content_type.unwrap_or(MEDIA_TYPE);
        Self::from_content_type(content_type).ok_or_else(|| {
            let [one, two] = [Self::V1, Self::V2].map(Self::content_type);
            let message = format!("the media type {content_type:?} is not read; use {one} or {two}");
            FormatError::Unsupported(message)
        })
    }

    fn from_content_type(content_type: &str) -> Option<Self> {
        let mut parts = content_type.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(MEDIA_TYPE) {
            return None;
        }
        let mut version = None;
        for part in parts {
            let Some((name, value)) = part.split_once('=') else { continue };
            if !name.trim().eq_ignore_ascii_case("proto") {
                continue;
            }
            let message = value.trim().trim_matches('"');
            let named = [Self::V1, Self::V2].into_iter().find(|version| version.message_name() == message)?;
            if version.replace(named).is_some_and(|other| other != named) {
                return None;
            }
        }
        Some(version.unwrap_or(Self::V1))
    }

    /// The value of the parameter `proto`.
    #[must_use]
    pub const fn message_name(self) -> &'static str {
        match self {
            Self::V1 => "prometheus.WriteRequest",
            Self::V2 => "io.prometheus.write.v2.Request",
        }
    }

    /// The header `Content-Type` of requests.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::V1 => "application/x-protobuf;proto=prometheus.WriteRequest",
            Self::V2 => "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        }
    }
}

#[cfg(test)]
mod round_trips;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_have_versions() {
        let version = |content_type| RemoteWriteVersion::from_headers(content_type, Some("snappy"));
        assert_eq!(version(None), Ok(RemoteWriteVersion::V1));
        assert_eq!(version(Some("application/x-protobuf")), Ok(RemoteWriteVersion::V1));
        assert_eq!(version(Some("Application/X-Protobuf; charset=utf-8")), Ok(RemoteWriteVersion::V1));
        assert_eq!(
            version(Some("application/x-protobuf; proto=\"prometheus.WriteRequest\"")),
            Ok(RemoteWriteVersion::V1)
        );
        assert_eq!(
            version(Some("application/x-protobuf;proto=io.prometheus.write.v2.Request")),
            Ok(RemoteWriteVersion::V2)
        );
        for wrong in [
            "application/json",
            "",
            "application/x-protobuf;proto=io.prometheus.write.v3.Request",
            "application/x-protobuf;proto=prometheus.WriteRequest;proto=io.prometheus.write.v2.Request",
        ] {
            assert!(matches!(version(Some(wrong)), Err(FormatError::Unsupported(_))), "{wrong}");
        }
        for coding in [None, Some(""), Some("gzip")] {
            assert!(RemoteWriteVersion::from_headers(None, coding).is_err(), "{coding:?}");
        }
    }
}
