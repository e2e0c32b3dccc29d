//! The bodies of answers.

use prost::Message;
use serde_json::json;

use super::OtlpEncoding;
use super::messages::services::{ExportPartialSuccess, ExportServiceResponse};
use crate::error::cut_text;

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
