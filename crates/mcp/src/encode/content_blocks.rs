//! One text block that grows: its JSON string is opened once, and text is escaped into it as it comes.

use bytes::Bytes;
use serde_json::Value;

/// Where a growing list of blocks stands.
#[derive(Debug, Default)]
pub(crate) struct ContentBlocks {
    has_blocks: bool,
    text_is_open: bool,
}

impl ContentBlocks {
    /// `text`, escaped into the open block; `opening` opens one (up to and with the string's first quote) if none is.
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

    /// Closes the open text block with `closing` (from the string's last quote on), if one is open.
    pub(crate) fn end_text(&mut self, closing: &str) -> String {
        if std::mem::take(&mut self.text_is_open) { closing.to_owned() } else { String::new() }
    }

    /// A whole block.
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

/// `text` as the inside of a JSON string.
fn escape_json(text: &str) -> Bytes {
    let mut buffer = Vec::with_capacity(text.len() + text.len() / 4 + 2);
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(&mut buffer, text);
    let end = buffer.len().saturating_sub(1);
    Bytes::from(buffer).slice(1..end)
}
