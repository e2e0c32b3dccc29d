//! Messages as lines: reading within a limit, and writing.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use crate::outbox::OutgoingMessage;

/// Result of reading a line.
pub(crate) enum ReadLine {
    Whole,
    TooLong,
    End,
}

/// Reads up to the next line feed into `line`. `line` may already contain the beginning, since the future may be
/// dropped between two reads. The content of a line that is too long is discarded.
pub(crate) async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    bytes_max: usize,
) -> std::io::Result<ReadLine> {
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(match line.len() {
                0 => ReadLine::End,
                bytes if bytes > bytes_max => ReadLine::TooLong,
                _ => ReadLine::Whole,
            });
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        // One byte over the limit marks the line as too long until its end is found.
        let room = (bytes_max + 1).saturating_sub(line.len());
        line.extend_from_slice(&available[..end.unwrap_or(taken).min(room)]);
        reader.consume(taken);
        if end.is_some() {
            return Ok(if line.len() > bytes_max { ReadLine::TooLong } else { ReadLine::Whole });
        }
    }
}

/// Writes `message` and a line feed.
pub(crate) async fn write_line(
    writer: &mut (impl AsyncWrite + Unpin + Send),
    mut message: OutgoingMessage,
) -> std::io::Result<()> {
    while let Some(piece) = message.next().await? {
        writer.write_all(&piece).await?;
    }
    writer.write_all(b"\n").await
}
