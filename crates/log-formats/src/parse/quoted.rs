//! Texts in double quotes with backslash escapes, as web servers, logfmt and structured data write them.

use crate::entry::{EntryFields, Piece, Slot};

/// A text in quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuotedText {
    /// The position after the opening quote.
    pub(crate) start: usize,
    /// The position of the closing quote.
    pub(crate) end: usize,
    pub(crate) has_escapes: bool,
}

impl QuotedText {
    /// Finds the end of the text whose opening quote is before `start`.
    pub(crate) fn find(text: &str, start: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut position = start;
        let mut has_escapes = false;
        loop {
            position += memchr::memchr2(b'"', b'\\', bytes.get(position..)?)?;
            if bytes.get(position) == Some(&b'"') {
                return Some(Self { start, end: position, has_escapes });
            }
            has_escapes = true;
            position += 2;
        }
    }

    /// The text, with its escapes resolved.
    pub(crate) fn piece(self, text: &str, fields: &mut EntryFields) -> Piece {
        if !self.has_escapes {
            return Piece::of_text(self.start, self.end);
        }
        let raw = text.get(self.start..self.end).unwrap_or_default();
        fields.write_scratch(|scratch| unescape(raw, scratch))
    }

    /// The text as a value, or null if it is `-`.
    pub(crate) fn slot(self, text: &str, fields: &mut EntryFields) -> Slot {
        if text.get(self.start..self.end) == Some("-") {
            return Slot::Null;
        }
        Slot::Text(self.piece(text, fields))
    }
}

/// Resolves `\"`, `\\`, `\n`, `\t`, `\r` and `\xHH`, whose bytes are UTF-8 together. Other escapes stay as they are.
fn unescape(raw: &str, out: &mut String) {
    let mut escaped_bytes: Vec<u8> = Vec::new();
    let mut rest = raw;
    while let Some(position) = memchr::memchr(b'\\', rest.as_bytes()) {
        if position > 0 {
            flush(&mut escaped_bytes, out);
        }
        let (before, from_backslash) = rest.split_at_checked(position).unwrap_or((rest, ""));
        out.push_str(before);
        let after = from_backslash.get(1..).unwrap_or_default();
        let hexadecimal = after.strip_prefix('x').and_then(|digits| digits.get(..2));
        if let Some(byte) = hexadecimal.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            escaped_bytes.push(byte);
            rest = after.get(3..).unwrap_or_default();
            continue;
        }
        flush(&mut escaped_bytes, out);
        let Some(escaped) = after.chars().next() else {
            out.push('\\');
            rest = "";
            break;
        };
        match escaped {
            '"' | '\\' | '/' => out.push(escaped),
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            other => out.extend(['\\', other]),
        }
        rest = after.get(escaped.len_utf8()..).unwrap_or_default();
    }
    flush(&mut escaped_bytes, out);
    out.push_str(rest);
}

fn flush(bytes: &mut Vec<u8>, out: &mut String) {
    if !bytes.is_empty() {
        out.push_str(&String::from_utf8_lossy(bytes));
        bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unescaped(raw: &str) -> String {
        let mut out = String::new();
        unescape(raw, &mut out);
        out
    }

    #[test]
    fn escapes_of_web_servers() {
        assert_eq!(unescaped(r#"a \"b\" \\ \x22c\x22"#), "a \"b\" \\ \"c\"");
        assert_eq!(unescaped(r"gr\xC3\xB6\xC3\x9Fe \x16\xff\u"), "größe \u{16}\u{fffd}\\u");
        assert_eq!(unescaped("a\\"), "a\\");
        assert_eq!(unescaped(r"\xö\x4"), r"\xö\x4");
    }

    #[test]
    fn the_end_is_the_first_quote_without_backslash() {
        let text = r#""a\"b\\" c"#;
        let quoted = QuotedText::find(text, 1).expect("it is closed");
        assert_eq!((quoted.end, quoted.has_escapes), (7, true));
        assert!(QuotedText::find(r#""a\""#, 1).is_none() && QuotedText::find("\"a\\", 1).is_none());
    }
}
