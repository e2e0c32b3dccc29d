//! A list of content blocks that grows: a text block is opened once, and text is escaped into it as it arrives.

use bytes::Bytes;
use serde_json::Value;

/// The state of a growing list of blocks.
#[derive(Debug, Default)]
pub(crate) struct ContentBlocks {
    has_blocks: bool,
    text_is_open: bool,
}

impl ContentBlocks {
    /// `text`, escaped into the open block. If no block is open, `opening` opens one, up to and including the first
    /// quote of the string.
    pub(crate) fn push_text(&mut self, before: String, opening: &str, text: &str) -> Bytes {
        if self.text_is_open {
            return escape_json(text);
        }
        let mut piece = before;
        if self.has_blocks {
            piece.push(',');
        }
        piece.push_str(opening);
        self.has_blocks = true;
        self.text_is_open = true;
        let mut bytes = piece.into_bytes();
        bytes.extend_from_slice(&escape_json(text));
        bytes.into()
    }

    /// Closes the open text block with `closing`, from the last quote of the string on, if a block is open.
    pub(crate) fn end_text(&mut self, closing: &str) -> String {
        if std::mem::take(&mut self.text_is_open) { closing.to_owned() } else { String::new() }
    }

    /// A complete block.
    pub(crate) fn push_block(&mut self, closing: &str, block: &Value) -> String {
        let mut piece = self.end_text(closing);
        if self.has_blocks {
            piece.push(',');
        }
        self.has_blocks = true;
        piece.push_str(&block.to_string());
        piece
    }
}

/// `text`, escaped for a JSON string, without quotes.
fn escape_json(text: &str) -> Bytes {
    let mut buffer = Vec::with_capacity(text.len() + text.len() / 4 + 2);
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(&mut buffer, text);
    let end = buffer.len().saturating_sub(1);
    Bytes::from(buffer).slice(1..end)
}
