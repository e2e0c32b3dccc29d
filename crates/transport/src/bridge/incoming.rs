//! A message of the server on its way: looked at as it passes, kept in memory while it is small and on disk beyond that.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use super::scanner::{MalformedMessage, MessageScanner, MessageShape};
use crate::outbox::OutgoingMessage;
use crate::spool::{Spool, SpoolError};

/// Larger messages go to disk.
pub(super) const MEMORY_BYTES_MAX: usize = 256 * 1024;

/// Why a message did not arrive.
#[derive(Debug, Error)]
pub(super) enum ReceiveError {
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    #[error(transparent)]
    Spool(#[from] SpoolError),
}

/// A message of which some has come.
#[derive(Debug)]
pub(super) struct PartialMessage {
    scanner: MessageScanner,
    memory: BytesMut,
    spool: Option<Spool>,
    bytes_max: u64,
}

/// A message that is whole.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) shape: MessageShape,
    pub(super) line: OutgoingMessage,
}

impl PartialMessage {
    /// A message that may grow to `bytes_max`.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { scanner: MessageScanner::new(), memory: BytesMut::new(), spool: None, bytes_max }
    }

    /// Whether nothing has come.
    pub(super) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.spool.is_none()
    }

    /// Adds `piece`.
    pub(super) async fn push(&mut self, piece: Bytes) -> Result<(), ReceiveError> {
        self.scanner.push(&piece)?;
        let piece = replace_line_breaks(piece);
        if let Some(spool) = &mut self.spool {
            return Ok(spool.push(piece).await?);
        }
        if (self.memory.len() + piece.len()) as u64 > self.bytes_max {
            return Err(SpoolError::TooLarge(self.bytes_max).into());
        }
        self.memory.put_slice(&piece);
        if self.memory.len() > MEMORY_BYTES_MAX {
            let mut spool = Spool::new(self.bytes_max);
            spool.push(self.memory.split().freeze()).await?;
            self.spool = Some(spool);
        }
        Ok(())
    }

    /// The whole message.
    pub(super) fn finish(self) -> Result<ReceivedMessage, MalformedMessage> {
        let shape = self.scanner.finish()?;
        let line = match self.spool {
            Some(spool) => OutgoingMessage::Spooled(spool),
            None => OutgoingMessage::Whole(self.memory.freeze()),
        };
        Ok(ReceivedMessage { shape, line })
    }
}

impl ReceivedMessage {
    /// The bytes of a message that is small.
    pub(super) fn bytes(&self) -> Option<&Bytes> {
        match &self.line {
            OutgoingMessage::Whole(bytes) => Some(bytes),
            OutgoingMessage::Spooled(_) => None,
        }
    }
}

/// A line feed between two members would end the line; within a text there can be none.
pub(super) fn replace_line_breaks(piece: Bytes) -> Bytes {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !piece.iter().any(is_break) {
        return piece;
    }
    piece.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect()
}
