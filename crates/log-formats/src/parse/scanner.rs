//! Reads the fields of a line that blanks separate, as web servers and proxies write them, and texts in double quotes with
//! backslash escapes, which logfmt has too.

use crate::entry::{EntryFields, Misfit, Piece, Slot};
use crate::time::Cursor;

/// Longer words are not request methods.
const METHOD_BYTES_MAX: usize = 24;
/// Names of the fields after those of the format. Further fields are only in the text.
const EXTRA_NAMES: [&str; 16] = [
    "extra_1", "extra_2", "extra_3", "extra_4", "extra_5", "extra_6", "extra_7", "extra_8", "extra_9", "extra_10",
    "extra_11", "extra_12", "extra_13", "extra_14", "extra_15", "extra_16",
];

/// A position in a line.
pub(crate) struct Scanner<'a> {
    pub(crate) line: &'a str,
    pub(crate) position: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn rest(&self) -> &'a str {
        self.line.get(self.position..).unwrap_or_default()
    }

    pub(crate) fn blank(&mut self, what: &'static str) -> Result<(), Misfit> {
        self.take_blank().ok_or(Misfit::expected(what, self.position))
    }

    /// Reads a blank, if it is next.
    pub(crate) fn take_blank(&mut self) -> Option<()> {
        let is_next = self.line.as_bytes().get(self.position) == Some(&b' ');
        self.position += usize::from(is_next);
        is_next.then_some(())
    }

    /// The bytes before the next blank.
    pub(crate) fn word(&mut self) -> (usize, usize) {
        let rest = self.rest();
        let start = self.position;
        self.position += memchr::memchr(b' ', rest.as_bytes()).unwrap_or(rest.len());
        (start, self.position)
    }

    pub(crate) fn quoted(&mut self, what: &'static str) -> Result<QuotedText, Misfit> {
        let begins = self.line.as_bytes().get(self.position) == Some(&b'"');
        let quoted = begins.then(|| QuotedText::find(self.line, self.position + 1)).flatten();
        let quoted = quoted.ok_or(Misfit::expected(what, self.position))?;
        self.position = quoted.end + 1;
        Ok(quoted)
    }

    /// A number or `-`.
    pub(crate) fn integer(&mut self, what: &'static str) -> Result<Slot, Misfit> {
        let mut cursor = Cursor::new(self.rest().as_bytes());
        let value = if cursor.take(b'-') { Some(Slot::Null) } else { cursor.number(1, 18).map(Slot::Integer) };
        let value = value.filter(|_| matches!(cursor.peek(), None | Some(b' ')));
        let value = value.ok_or(Misfit::expected(what, self.position))?;
        self.position += cursor.position();
        Ok(value)
    }

    /// Fields after the format: in quotes, or words.
    pub(crate) fn extra_fields(&mut self, fields: &mut EntryFields) -> Result<(), Misfit> {
        for name in EXTRA_NAMES {
            if self.rest().trim_ascii_end().is_empty() {
                break;
            }
            self.blank("a blank after the last field")?;
            let value = if self.line.as_bytes().get(self.position) == Some(&b'"') {
                self.quoted("a field in quotes")?.slot(self.line, fields)
            } else {
                let (start, end) = self.word();
                let is_null = start == end || self.line.get(start..end) == Some("-");
                if is_null { Slot::Null } else { Slot::Number(Piece::of_text(start, end)) }
            };
            let name = fields.write_scratch(|scratch| scratch.push_str(name));
            fields.push_member(name, value);
        }
        Ok(())
    }
}

/// The columns of a request line and of its parts.
pub(crate) struct RequestColumns {
    pub(crate) request: usize,
    pub(crate) method: usize,
    pub(crate) path: usize,
    pub(crate) protocol: usize,
}

impl RequestColumns {
    /// Splits a request line. One that is broken has no method, path and protocol.
    pub(crate) fn set(&self, line: &str, quoted: QuotedText, fields: &mut EntryFields) {
        let request = quoted.slot(line, fields);
        fields.set(self.request, request);
        let raw = line.get(quoted.start..quoted.end).unwrap_or_default();
        let Some(method_end) = memchr::memchr(b' ', raw.as_bytes()) else { return };
        let is_method = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
        let method = raw.as_bytes().get(..method_end).unwrap_or_default();
        if method.is_empty() || method_end > METHOD_BYTES_MAX || !method.iter().all(is_method) {
            return;
        }
        let Some(path_end) = memchr::memrchr(b' ', raw.as_bytes()) else { return };
        let protocol = raw.get(path_end + 1..).unwrap_or_default();
        // Without a protocol, it is a request of HTTP/0.9.
        let (path_end, has_protocol) =
            if path_end > method_end && protocol.starts_with("HTTP/") { (path_end, true) } else { (raw.len(), false) };
        let path = QuotedText {
            start: quoted.start + method_end + 1,
            end: quoted.start + path_end,
            has_escapes: quoted.has_escapes,
        };
        fields.set_text(self.method, quoted.start, quoted.start + method_end);
        let path = Slot::Text(path.piece(line, fields));
        fields.set(self.path, path);
        if has_protocol {
            fields.set_text(self.protocol, quoted.start + path_end + 1, quoted.end);
        }
    }
}

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
