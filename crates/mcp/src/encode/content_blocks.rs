//! A list of content blocks that grows: a text block is opened once, and text is escaped into it as it arrives.

use bytes::Bytes;
use serde_json::Value;

pub(super) const TEXT_OPENING: &str = "{\"type\":\"text\",\"text\":\"";
const TEXT_CLOSING: &str = "\"}";

/// The state of a growing list of blocks.
#[derive(Debug)]
pub struct ContentBlocks {
    /// The JSON text before the first block; empty when it was returned.
    opening: String,
    has_blocks: bool,
    text_is_open: bool,
}

impl ContentBlocks {
    /// A list that begins with `opening`, JSON text that ends with a bracket.
    pub fn new(opening: String) -> Self {
        Self { opening, has_blocks: false, text_is_open: false }
    }

    /// Whether bytes were returned.
    pub fn has_begun(&self) -> bool {
        self.opening.is_empty()
    }

    /// `text`, escaped into a block of MCP.
    pub fn push_text(&mut self, text: &str) -> Bytes {
        self.push_text_into(TEXT_OPENING, text)
    }

    /// `text`, escaped into the open block, or after `opening`, which opens one up to the first quote of the text.
    pub(super) fn push_text_into(&mut self, opening: &str, text: &str) -> Bytes {
        if self.text_is_open {
            return escape_json(text);
        }
        let mut bytes = (self.begin_block() + opening).into_bytes();
        self.text_is_open = true;
        bytes.extend_from_slice(&escape_json(text));
        bytes.into()
    }

    /// Closes the open text block, if there is one.
    pub fn end_text(&mut self) -> &'static str {
        if std::mem::take(&mut self.text_is_open) { TEXT_CLOSING } else { "" }
    }

    /// `text` as a complete block of MCP.
    pub fn push_whole_text(&mut self, text: &str) -> Bytes {
        let mut bytes = (self.begin_block() + "{\"type\":\"text\",\"text\":").into_bytes();
        // Writing a string into memory cannot fail.
        let _ = serde_json::to_writer(&mut bytes, text);
        bytes.push(b'}');
        bytes.into()
    }

    /// A complete block.
    pub fn push_block(&mut self, block: &Value) -> String {
        let mut piece = self.begin_block();
        piece.push_str(&block.to_string());
        piece
    }

    /// The end of the list.
    pub fn close(&mut self) -> String {
        let mut piece = std::mem::take(&mut self.opening);
        piece.push_str(self.end_text());
        piece.push(']');
        piece
    }

    fn begin_block(&mut self) -> String {
        let mut piece = std::mem::take(&mut self.opening);
        piece.push_str(self.end_text());
        if std::mem::replace(&mut self.has_blocks, true) {
            piece.push(',');
        }
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
