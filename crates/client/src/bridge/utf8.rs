//! Validates that bytes in pieces are UTF-8.

use super::scanner::MalformedMessage;

/// A UTF-8 validator that is independent of how the bytes are split.
#[derive(Debug, Default)]
pub(super) struct Utf8Validator {
    /// The beginning of an incomplete character.
    begun: Vec<u8>,
}

impl Utf8Validator {
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), MalformedMessage> {
        while !self.begun.is_empty() {
            let Some((&byte, rest)) = bytes.split_first() else { return Ok(()) };
            self.begun.push(byte);
            bytes = rest;
            match std::str::from_utf8(&self.begun) {
                Ok(_) => self.begun.clear(),
                Err(error) if error.error_len().is_some() => return Err(MalformedMessage::NoUtf8),
                Err(_) => {}
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_some() => Err(MalformedMessage::NoUtf8),
            Err(error) => {
                self.begun.extend_from_slice(&bytes[error.valid_up_to()..]);
                Ok(())
            }
        }
    }

    pub(super) fn finish(&self) -> Result<(), MalformedMessage> {
        if self.begun.is_empty() { Ok(()) } else { Err(MalformedMessage::NoUtf8) }
    }
}
