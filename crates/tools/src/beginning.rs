//! The beginning of a file, as much of it as an answer carries: whole characters, or nothing where it is no text.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tidegate_core::{Error, ReplySender};

/// What of a file stands in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All of it, as text.
    Whole,
    /// Its first bytes, so many, as text; there are more.
    Part(u64),
    /// Nothing: it is no text.
    Nothing,
}

/// Sends the text that comes in `pieces`, at most `bytes_max` bytes of it. What is no UTF-8 behind a text of some
/// length is shown as such.
///
/// # Errors
/// Those of the pieces; `Cancelled` when nobody listens any more.
pub(crate) async fn show(
    mut pieces: impl Stream<Item = Result<Bytes, Error>> + Unpin,
    bytes_max: Option<usize>,
    reply: &ReplySender,
) -> Result<Shown, Error> {
    let mut left = bytes_max.unwrap_or(usize::MAX);
    let mut shown_bytes = 0;
    // A character whose rest comes with the next piece.
    let mut begun = Vec::new();
    let mut is_text = false;
    while let Some(piece) = pieces.next().await.transpose()? {
        begun.extend_from_slice(&piece);
        let text_bytes = match std::str::from_utf8(&begun) {
            Ok(_) => begun.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) if !is_text => return Ok(Shown::Nothing),
            Err(_) => begun.len(),
        };
        is_text = true;
        let rest = begun.split_off(text_bytes);
        let text = String::from_utf8_lossy(&begun);
        if text.len() > left {
            let end = text.floor_char_boundary(left);
            reply.text(&text[..end]).await?;
            return Ok(Shown::Part(shown_bytes + end as u64));
        }
        left -= text.len();
        shown_bytes += text_bytes as u64;
        reply.text(text).await?;
        begun = rest;
    }
    // The file ends within a character.
    if !begun.is_empty() {
        if !is_text {
            return Ok(Shown::Nothing);
        }
        reply.text(String::from_utf8_lossy(&begun)).await?;
    }
    Ok(Shown::Whole)
}
