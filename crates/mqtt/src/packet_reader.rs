//! Reads packets from a connection.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::packet::{self, Packet, PacketError};

/// The largest packet that is read as a whole. Of a larger message, only the beginning is kept.
pub(crate) const PACKET_BYTES_MAX: usize = 16 << 20;
/// So many bytes of a message that is too large are kept: the longest topic, and the beginning of the content.
const EXCESS_HEAD_BYTES: usize = 70 << 10;
/// The bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Why no further packet can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the broker closed the connection")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Packet(#[from] PacketError),
}

/// Reads packets. No byte is lost when [`Self::next`] is dropped before it returns.
#[derive(Debug)]
pub(crate) struct PacketReader<R> {
    stream: R,
    buffer: BytesMut,
    /// A message that is too large, and how many of its bytes are still to come.
    skipped: Option<(Packet, usize)>,
}

impl<R: AsyncRead + Unpin> PacketReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new(), skipped: None }
    }

    pub(crate) async fn next(&mut self) -> Result<Packet, ReadError> {
        loop {
            if let Some(packet) = self.buffered()? {
                return Ok(packet);
            }
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(ReadError::Closed);
            }
        }
    }

    /// The next packet, if all of its bytes are there.
    fn buffered(&mut self) -> Result<Option<Packet>, PacketError> {
        if let Some((packet, rest)) = self.skipped.take() {
            let here = rest.min(self.buffer.len());
            self.buffer.advance(here);
            if here < rest {
                self.skipped = Some((packet, rest - here));
                return Ok(None);
            }
            return Ok(Some(packet));
        }
        let Some((first, header_bytes, length)) = packet::header(&self.buffer)? else { return Ok(None) };
        if length > PACKET_BYTES_MAX {
            return self.begin_skipping(first, header_bytes, length);
        }
        if self.buffer.len() < header_bytes + length {
            return Ok(None);
        }
        self.buffer.advance(header_bytes);
        // A copy, so that a small message does not keep a large buffer.
        let body = Bytes::copy_from_slice(&self.buffer[..length]);
        self.buffer.advance(length);
        packet::read_packet(first, body, None).map(Some)
    }

    fn begin_skipping(&mut self, first: u8, header_bytes: usize, length: usize) -> Result<Option<Packet>, PacketError> {
        if !packet::is_message(first) {
            return Err(PacketError(format!("a packet has {length} bytes and is no message")));
        }
        if self.buffer.len() < header_bytes + EXCESS_HEAD_BYTES {
            return Ok(None);
        }
        self.buffer.advance(header_bytes);
        let head = Bytes::copy_from_slice(&self.buffer[..EXCESS_HEAD_BYTES]);
        self.buffer.advance(EXCESS_HEAD_BYTES);
        let packet = packet::read_packet(first, head, Some(length))?;
        self.skipped = Some((packet, length - EXCESS_HEAD_BYTES));
        self.buffered()
    }
}
