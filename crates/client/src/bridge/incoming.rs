//! A message of the server while it arrives: scanned, and kept in memory while it is small, on disk beyond that.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use super::scanner::{MalformedMessage, MessageScanner, MessageShape};
use crate::outbox::OutgoingMessage;
use crate::spool::{Spool, SpoolError};

/// Threshold in bytes; larger messages are stored on disk.
pub(super) const MEMORY_BYTES_MAX: usize = 256 * 1024;

/// Why a message could not be received.
#[derive(Debug, Error)]
pub(super) enum ReceiveError {
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    #[error(transparent)]
    Spool(#[from] SpoolError),
}

/// A message that has partly arrived.
#[derive(Debug)]
pub(super) struct PartialMessage {
    scanner: MessageScanner,
    memory: BytesMut,
    spool: Option<Spool>,
    bytes_max: u64,
}

/// A complete message.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) shape: MessageShape,
    pub(super) line: OutgoingMessage,
}

impl PartialMessage {
    /// An empty message with a limit of `bytes_max`.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { scanner: MessageScanner::new(), memory: BytesMut::new(), spool: None, bytes_max }
    }

    /// Whether nothing has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.spool.is_none()
    }

    /// Appends `piece`.
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

    /// The complete message.
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
    /// The bytes of a small message.
    pub(super) fn bytes(&self) -> Option<&Bytes> {
        match &self.line {
            OutgoingMessage::Whole(bytes) => Some(bytes),
            OutgoingMessage::Spooled(_) => None,
        }
    }
}

/// Replaces line breaks between members, which would end the line. Strings cannot contain unescaped ones.
pub(super) fn replace_line_breaks(piece: Bytes) -> Bytes {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !piece.iter().any(is_break) {
        return piece;
    }
    piece.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect()
}
