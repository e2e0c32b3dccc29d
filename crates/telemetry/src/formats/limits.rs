//! The bounds of one body, and what a message of Protocol Buffers takes in memory, before it is decoded.
//!
//! An empty message takes two bytes in a body and hundreds in memory. Therefore a body is walked first, with the sizes of
//! its messages, and refused if it would take too much.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::formats::error::FormatError;

/// What of a body takes memory while it is decoded.
pub(crate) const MESSAGES: &str = "messages";
/// The largest value of [`TelemetryLimits::decoded_bytes_max`]: offsets of text columns have 32 bits.
const DECODED_BYTES_CEILING: usize = 1 << 30;

/// The bounds of one body. What exceeds one is refused or rejected, never cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryLimits {
    /// The largest body, in bytes, after decompression. A larger one is refused.
    pub body_bytes_max: usize,
    /// What the decoded messages, and the rows that are made of them, may take in memory, each in bytes. At most 1 GiB.
    /// A body that needs more is refused.
    pub decoded_bytes_max: usize,
    /// The maximum number of records of a body. A body with more is refused.
    pub records_max: usize,
    /// The largest record as a row, in bytes of its text and lists. A larger one is rejected.
    pub record_bytes_max: usize,
    /// The maximum number of attributes or labels of one set, and of members of one value. A record with more is rejected.
    pub attributes_max: usize,
    /// How deeply values of attributes may be nested. A record with a deeper one is rejected.
    pub nesting_max: usize,
    /// The maximum number of events, links, exemplars, buckets or quantiles of one record. A record with more is rejected.
    pub items_max: usize,
    /// The maximum number of actions of a request of the bulk API. A request with more is refused.
    pub bulk_items_max: usize,
    /// The maximum number of spans of a trace as a tree.
    pub tree_spans_max: usize,
    /// How deeply spans of a trace as a tree may be nested.
    pub tree_depth_max: usize,
}

impl Default for TelemetryLimits {
    /// Bodies of 64 MiB, 512 MiB in memory, 1,000,000 records of 4 MiB, 1,000 attributes, 16 levels, 10,000 items;
    /// 200,000 actions of the bulk API; trees of 10,000 spans and 200 levels.
    fn default() -> Self {
        Self {
            body_bytes_max: 64 << 20,
            decoded_bytes_max: 512 << 20,
            records_max: 1_000_000,
            record_bytes_max: 4 << 20,
            attributes_max: 1_000,
            nesting_max: 16,
            items_max: 10_000,
            bulk_items_max: 200_000,
            tree_spans_max: 10_000,
            tree_depth_max: 200,
        }
    }
}

impl TelemetryLimits {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.decoded_bytes_max.min(DECODED_BYTES_CEILING)
    }

    pub(crate) fn check_body(&self, bytes: usize) -> Result<(), crate::formats::FormatError> {
        if bytes <= self.body_bytes_max {
            return Ok(());
        }
        let most = self.body_bytes_max;
        Err(crate::formats::FormatError::TooLarge(format!("the body has {bytes} bytes; at most {most} are accepted")))
    }
}

/// The error of a body whose `part` takes more than `bytes_max` in memory.
pub(crate) fn out_of_memory(part: &str, bytes_max: usize) -> FormatError {
    FormatError::OutOfMemory(format!("the {part} of the body take more than {bytes_max} bytes of memory"))
}

/// How deeply messages may be nested. The decoder has the same bound.
const MESSAGE_DEPTH_MAX: usize = 100;

/// A message: its size in memory, and its fields that take more memory than their bytes.
#[derive(Debug)]
pub(crate) struct MessageShape {
    pub(crate) bytes: usize,
    pub(crate) fields: &'static [(u32, FieldShape)],
}

#[derive(Debug)]
pub(crate) enum FieldShape {
    /// A function, because messages contain one another.
    Message(fn() -> &'static MessageShape),
    /// Repeated text.
    Texts,
    /// Repeated integers of variable length, each of so many bytes in memory.
    Integers(usize),
}

/// Checks that a message takes at most `bytes_max` in memory.
///
/// # Errors
/// `Malformed` if the bytes are no message; `OutOfMemory`.
pub(crate) fn check_message_size(
    body: &[u8],
    shape: &'static MessageShape,
    bytes_max: usize,
) -> Result<(), FormatError> {
    let mut walk = SizeWalk { bytes: bytes_max, bytes_max };
    walk.message(body, shape, 0)
}

struct SizeWalk {
    /// What is left.
    bytes: usize,
    bytes_max: usize,
}

impl SizeWalk {
    fn take(&mut self, bytes: usize) -> Result<(), FormatError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| out_of_memory(MESSAGES, self.bytes_max))?;
        Ok(())
    }

    fn message(&mut self, mut body: &[u8], shape: &'static MessageShape, depth: usize) -> Result<(), FormatError> {
        if depth > MESSAGE_DEPTH_MAX {
            return Err(FormatError::Malformed(format!(
                "messages are nested more than {MESSAGE_DEPTH_MAX} levels deep"
            )));
        }
        self.take(shape.bytes)?;
        while body.has_remaining() {
            let (number, wire_type) = decode_key(&mut body).map_err(malformed)?;
            let field = shape.fields.iter().find(|(field, _)| *field == number).map(|(_, field)| field);
            if wire_type != WireType::LengthDelimited {
                if let Some(FieldShape::Integers(bytes)) = field {
                    self.take(*bytes)?;
                }
                skip_field(wire_type, number, &mut body, DecodeContext::default()).map_err(malformed)?;
                continue;
            }
            let length = decode_varint(&mut body).map_err(malformed)?;
            let length = usize::try_from(length).ok().filter(|length| *length <= body.len());
            let Some((value, rest)) = length.and_then(|length| body.split_at_checked(length)) else {
                return Err(FormatError::Malformed("a message is longer than the body".into()));
            };
            body = rest;
            match field {
                Some(FieldShape::Message(shape)) => self.message(value, shape(), depth + 1)?,
                Some(FieldShape::Integers(bytes)) => self.take(value.len().saturating_mul(*bytes))?,
                Some(FieldShape::Texts) => self.take(value.len() + size_of::<String>())?,
                None => self.take(value.len())?,
            }
        }
        Ok(())
    }
}

fn malformed(error: prost::DecodeError) -> FormatError {
    FormatError::Malformed(format!("the body is no message: {error}"))
}
