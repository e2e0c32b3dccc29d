//! One text block that grows: its JSON string is opened once, and text is escaped into it as it comes.

use bytes::Bytes;
use serde_json::Value;

/// Where a growing list of blocks stands.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    any: bool,
    text_is_open: bool,
}

impl Blocks {
    /// `text`, escaped into the open block; `opening` opens one (up to and with the string's first quote) if none is.
    pub(crate) fn text(&mut self, before: String, opening: &str, text: &str) -> Bytes {
        if self.text_is_open {
            return escaped(text);
        }
        let mut piece = before;
        if self.any {
            piece.push(',');
        }
        piece.push_str(opening);
        self.any = true;
        self.text_is_open = true;
        let mut bytes = piece.into_bytes();
        bytes.extend_from_slice(&escaped(text));
        bytes.into()
    }

    /// Closes the open text block with `closing` (from the string's last quote on), if one is open.
    pub(crate) fn end_text(&mut self, closing: &str) -> String {
        if std::mem::take(&mut self.text_is_open) { closing.to_owned() } else { String::new() }
    }

    /// A whole block.
    pub(crate) fn block(&mut self, closing: &str, block: &Value) -> String {
        let mut piece = self.end_text(closing);
        if self.any {
            piece.push(',');
        }
        self.any = true;
        piece.push_str(&block.to_string());
        piece
    }
}

/// `text` as the inside of a JSON string.
fn escaped(text: &str) -> Bytes {
    let mut buffer = Vec::with_capacity(text.len() + text.len() / 4 + 2);
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(&mut buffer, text);
    let end = buffer.len().saturating_sub(1);
    Bytes::from(buffer).slice(1..end)
}
