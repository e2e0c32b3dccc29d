//! A list of content blocks that grows: a text block is opened once, and text is escaped into it as it arrives.

use bytes::Bytes;
use serde_json::Value;

use super::envelope::ResponseEnvelope;

/// The end of a text block, from the last quote of its text on.
const TEXT_CLOSING: &str = "\"}";

/// The state of a growing list of blocks, the first member of a result.
#[derive(Debug)]
pub(super) struct ContentBlocks {
    /// The name of the member.
    member: &'static str,
    has_begun: bool,
    has_blocks: bool,
    text_is_open: bool,
}

impl ContentBlocks {
    pub(super) fn new(member: &'static str) -> Self {
        Self { member, has_begun: false, has_blocks: false, text_is_open: false }
    }

    /// Whether bytes of the result were returned.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// `text`, escaped into the open block. If no block is open, `opening` opens one, up to and including the first
    /// quote of the text.
    pub(super) fn push_text(&mut self, envelope: &ResponseEnvelope, opening: &str, text: &str) -> Bytes {
        if self.text_is_open {
            return escape_json(text);
        }
        let mut bytes = (self.begin_block(envelope) + opening).into_bytes();
        self.text_is_open = true;
        bytes.extend_from_slice(&escape_json(text));
        bytes.into()
    }

    /// Closes the open text block, if there is one.
    pub(super) fn end_text(&mut self) -> &'static str {
        if std::mem::take(&mut self.text_is_open) { TEXT_CLOSING } else { "" }
    }

    /// A complete block.
    pub(super) fn push_block(&mut self, envelope: &ResponseEnvelope, block: &Value) -> String {
        let mut piece = self.begin_block(envelope);
        piece.push_str(&block.to_string());
        piece
    }

    /// The end of the list.
    pub(super) fn close(&mut self, envelope: &ResponseEnvelope) -> String {
        let mut piece = self.open(envelope);
        piece.push_str(self.end_text());
        piece.push(']');
        piece
    }

    /// Everything before the next block.
    fn begin_block(&mut self, envelope: &ResponseEnvelope) -> String {
        let mut piece = self.open(envelope);
        piece.push_str(self.end_text());
        if std::mem::replace(&mut self.has_blocks, true) {
            piece.push(',');
        }
        piece
    }

    /// The beginning of the result, once.
    fn open(&mut self, envelope: &ResponseEnvelope) -> String {
        if std::mem::replace(&mut self.has_begun, true) {
            return String::new();
        }
        format!("{}\"{}\":[", envelope.open(), self.member)
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
