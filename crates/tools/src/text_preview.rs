//! The beginning of a file, as far as an answer carries it: whole characters, or nothing if it is not text.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tidegate_core::Error;
use tidegate_runtime::ReplySender;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewExtent {
    Complete,
    /// The first bytes (their number), as text.
    Truncated(u64),
    /// Nothing: the file is not text.
    NotText,
}

/// Sends the text in `pieces`, at most `bytes_max` bytes. Invalid UTF-8 after valid text is replaced.
pub(crate) async fn send_preview(
    mut chunks: impl Stream<Item = Result<Bytes, Error>> + Unpin,
    bytes_max: Option<usize>,
    reply: &ReplySender,
) -> Result<PreviewExtent, Error> {
    let mut left = bytes_max.unwrap_or(usize::MAX);
    let mut preview_bytes = 0;
    // An incomplete character; its rest is in the next piece.
    let mut pending = Vec::new();
    let mut is_text = false;
    while let Some(chunk) = chunks.next().await.transpose()? {
        pending.extend_from_slice(&chunk);
        let text_bytes = match std::str::from_utf8(&pending) {
            Ok(_) => pending.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) if !is_text => return Ok(PreviewExtent::NotText),
            Err(_) => pending.len(),
        };
        is_text = true;
        let rest = pending.split_off(text_bytes);
        let text = String::from_utf8_lossy(&pending);
        if text.len() > left {
            let end = text.floor_char_boundary(left);
            reply.send_text(&text[..end]).await?;
            return Ok(PreviewExtent::Truncated(preview_bytes + end as u64));
        }
        left -= text.len();
        preview_bytes += text_bytes as u64;
        reply.send_text(text).await?;
        pending = rest;
    }
    // The file ends within a character.
    if !pending.is_empty() {
        if !is_text {
            return Ok(PreviewExtent::NotText);
        }
        reply.send_text(String::from_utf8_lossy(&pending)).await?;
    }
    Ok(PreviewExtent::Complete)
}
