//! OTLP over HTTP: requests as rows, and the bodies of answers.

mod answer;
mod attributes;
mod json_fields;
mod logs;
mod messages;
mod metrics;
#[cfg(test)]
mod round_trips;
mod source;
mod traces;

use std::borrow::Cow;

use serde::de::DeserializeOwned;

pub use answer::{OtlpSignal, success_body};
pub use logs::decode_logs;
pub use metrics::decode_metrics;
pub use traces::decode_traces;

use crate::error::{FormatError, RecordError};
use crate::limits::TelemetryLimits;
use crate::message_size::{MessageShape, check_message_size};

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
                    true => FormatError::OutOfMemory(message),
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
