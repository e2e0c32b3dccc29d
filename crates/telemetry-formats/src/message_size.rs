//! What a message of Protocol Buffers takes in memory, before it is decoded.
//!
//! An empty message takes two bytes in a body and hundreds in memory. Therefore a body is walked first, with the sizes of
//! its messages, and refused if it would take too much.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::error::FormatError;

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
    let mut walk = SizeWalk { bytes: bytes_max };
    walk.message(body, shape, 0)
}

struct SizeWalk {
    bytes: usize,
}

impl SizeWalk {
    fn take(&mut self, bytes: usize) -> Result<(), FormatError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| {
            FormatError::OutOfMemory("the messages of the body take more memory than is accepted".into())
        })?;
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
