//! Messages as lines: reading within a limit.
//!
//! [MCP 2025-11-25, stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio)

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Result of reading a line.
pub enum ReadLine {
    /// The line is complete.
    Whole,
    /// The line is longer than the limit; its content was discarded.
    TooLong,
    /// The input has ended.
    End,
}

/// Reads up to the next line feed into `line`. `line` may already contain the beginning, since the future may be
/// dropped between two reads. The content of a line of more than `bytes_max` bytes is discarded.
///
/// # Errors
/// When reading fails.
pub async fn read_line(
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
        let consumed_bytes = end.map_or(available.len(), |end| end + 1);
        // One byte over the limit marks the line as too long until its end is found.
        let room = (bytes_max + 1).saturating_sub(line.len());
        line.extend_from_slice(&available[..end.unwrap_or(consumed_bytes).min(room)]);
        reader.consume(consumed_bytes);
        if end.is_some() {
            return Ok(if line.len() > bytes_max { ReadLine::TooLong } else { ReadLine::Whole });
        }
    }
}
