//! The result of a step, without its envelope.

use std::fmt;

use serde_json::{Map, Value};
use uuid::Uuid;

/// Longer texts are reduced to their ends, their length and a checksum of all bytes.
const TEXT_BYTES_MAX: usize = 1_000;
const PRINTED_ENDS: usize = 12;

/// The result of a step on one channel.
#[derive(Debug, Clone)]
pub(super) struct StepResult {
    pub(super) outcome: Outcome,
    /// The complete result or error of an MCP message except `_meta`: the same for each channel of a revision.
    pub(super) raw: Option<Value>,
}

/// An answer or a refusal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    Answered(Value),
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    /// The error kind; `None` where the envelope does not contain it: over MCP, failed tools have only a text.
    pub(super) kind: Option<String>,
    pub(super) message: String,
}

impl Outcome {
    /// A refusal. The parts of its message that vary between runs are removed.
    pub(super) fn refused(kind: Option<&str>, message: &str) -> Self {
        Self::Refused(Refusal { kind: kind.map(str::to_owned), message: short(&without_chance(message)) })
    }

    /// Whether it is a refusal of this kind.
    pub(super) fn is_refused_as(&self, kind: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.kind.as_deref() == Some(kind))
    }
}

impl From<Outcome> for StepResult {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, raw: None }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(value) => write!(f, "answered {value}"),
            Self::Refused(Refusal { kind, message }) => {
                write!(f, "refused {}: {message:?}", kind.as_deref().unwrap_or("as a failed tool"))
            }
        }
    }
}

/// `message` without ids and positions, which depend on the envelope.
fn without_chance(message: &str) -> String {
    let place = message.rfind(" at line ").filter(|start| {
        message[*start..]
            .split(' ')
            .skip(1)
            .all(|word| matches!(word, "at" | "line" | "column") || word.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let message = &message[..place.unwrap_or(message.len())];
    let words = message.split(' ').map(|word| if Uuid::parse_str(word).is_ok() { "{id}" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// `value` with long texts shortened and ids masked.
pub(super) fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) => short(&without_chance(text)).into(),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), masked(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// `text` if it is short, otherwise its ends, its length and its checksum.
fn short(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let (begin, end) = (text.floor_char_boundary(PRINTED_ENDS), text.ceil_char_boundary(text.len() - PRINTED_ENDS));
    format!("{}… {} bytes, sum {:016x} …{}", &text[..begin], text.len(), sum(text), &text[end..])
}

/// FNV-1a of 64 bits.
fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
