//! OTLP over HTTP: requests as rows, and the bodies of answers.

mod json_fields;
mod logs;
mod messages;
mod metrics;
mod scope;
mod traces;

use std::borrow::Cow;

use prost::Message;
use serde::de::DeserializeOwned;
use serde_json::json;

pub use logs::decode_logs;
pub use metrics::decode_metrics;
pub use traces::decode_traces;

use crate::formats::error::{FormatError, RecordError, cut_text};
use crate::formats::limits::{MESSAGES, MessageShape, TelemetryLimits, check_message_size, out_of_memory};
use messages::{ExportPartialSuccess, ExportServiceResponse};

const TRACE_ID_BYTES: usize = 16;
const SPAN_ID_BYTES: usize = 8;

/// How messages of OTLP are written. An answer has the encoding of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OtlpEncoding {
    /// `application/x-protobuf`
    Protobuf,
    /// `application/json`
    Json,
}

impl OtlpEncoding {
    /// The encoding of a media type such as `application/json; charset=utf-8`, or nothing if it is another one.
    #[must_use]
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        [Self::Protobuf, Self::Json].into_iter().find(|encoding| essence.eq_ignore_ascii_case(encoding.media_type()))
    }

    /// The media type of requests and answers.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

fn decode_message<M: prost::Message + Default + DeserializeOwned>(
    body: &[u8],
    encoding: OtlpEncoding,
    shape: &'static MessageShape,
    limits: &TelemetryLimits,
) -> Result<M, FormatError> {
    limits.check_body(body.len())?;
    match encoding {
        OtlpEncoding::Protobuf => {
            check_message_size(body, shape, limits.memory_bytes())?;
            M::decode(body).map_err(|error| FormatError::Malformed(format!("the body is no message of OTLP: {error}")))
        }
        OtlpEncoding::Json => {
            let decoded = json_fields::with_budget(limits.memory_bytes(), || serde_json::from_slice(body));
            decoded.map_err(|error| {
                let message = error.to_string();
                match message.starts_with(json_fields::OUT_OF_MEMORY) {
                    true => out_of_memory(MESSAGES, limits.memory_bytes()),
                    false => FormatError::Malformed(format!("the body is no message of OTLP in JSON: {message}")),
                }
            })
        }
    }
}

/// The name of a number of an enumeration, or the number itself if it has none.
fn enumeration(names: &'static [&'static str], number: i32) -> Cow<'static, str> {
    let name = usize::try_from(number).ok().and_then(|index| names.get(index));
    name.map_or_else(|| Cow::Owned(number.to_string()), |name| Cow::Borrowed(*name))
}

fn check_items(name: &str, count: usize, limits: &TelemetryLimits) -> Result<(), RecordError> {
    let most = limits.items_max;
    if count <= most {
        return Ok(());
    }
    RecordError::rejected(format!("it has {count} {name}; at most {most} are accepted"))
}

/// The longest message of an answer, in bytes. The rest is left out.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// What a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OtlpSignal {
    /// Log records.
    Logs,
    /// Data points of metrics.
    Metrics,
    /// Spans.
    Traces,
}

impl OtlpSignal {
    /// The member of a partial success that has the number of rejected records.
    const fn rejected_member(self) -> &'static str {
        match self {
            Self::Logs => "rejectedLogRecords",
            Self::Metrics => "rejectedDataPoints",
            Self::Traces => "rejectedSpans",
        }
    }
}

/// The body of an answer with status 200: `ExportLogsServiceResponse` and its like. With rejected records or a message, it
/// is a partial success, which the sender does not repeat. A message without rejected records is a warning.
#[must_use]
pub fn success_body(signal: OtlpSignal, encoding: OtlpEncoding, rejected: u64, message: &str) -> Vec<u8> {
    let message = cut_text(message, MESSAGE_BYTES_MAX);
    let is_partial = rejected > 0 || !message.is_empty();
    match encoding {
        OtlpEncoding::Protobuf => {
            let rejected = i64::try_from(rejected).unwrap_or(i64::MAX);
            let partial = ExportPartialSuccess { rejected, error_message: message.to_owned() };
            ExportServiceResponse { partial_success: is_partial.then_some(partial) }.encode_to_vec()
        }
        OtlpEncoding::Json if !is_partial => b"{}".to_vec(),
        OtlpEncoding::Json => {
            let mut partial = serde_json::Map::new();
            partial.insert(signal.rejected_member().to_owned(), rejected.to_string().into());
            partial.insert("errorMessage".to_owned(), message.into());
            json!({ "partialSuccess": partial }).to_string().into_bytes()
        }
    }
}

#[cfg(test)]
mod round_trips;
