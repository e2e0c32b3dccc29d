//! JSON lines: one object per line, whose nested objects become members with names such as `a.b`.
//!
//! JSON is read without allocation: values are parts of the line, and only texts with escapes are copied. Writers cut texts
//! within a pair of `\u` escapes and leave control characters as they are. The parser jiter refuses both.

use crate::entry::{EntryFields, Misfit, Piece, Slot};

/// Objects with a longer name are one member too, so that the names of their members do not fill the memory.
const PREFIX_BYTES_MAX: usize = 128;
/// Objects below this depth are one member with JSON as text.
const FLATTENED_DEPTH_MAX: usize = 5;

pub(crate) fn parse(line: &str, fields: &mut EntryFields) -> Result<(), Misfit> {
    let mut json = JsonText::new(line);
    json.skip_blanks();
    if json.peek() != Some(b'{') {
        return Err(Misfit::expected("a JSON object", json.position()));
    }
    members(&mut json, line, None, 1, fields)?;
    json.skip_blanks();
    if json.position() < line.len() {
        return Err(Misfit::expected("the end of the line after the object", json.position()));
    }
    Ok(())
}

fn members(
    json: &mut JsonText<'_>,
    line: &str,
    prefix: Option<Piece>,
    depth: usize,
    fields: &mut EntryFields,
) -> Result<(), Misfit> {
    json.expect(b'{', "a JSON object")?;
    json.skip_blanks();
    if json.take(b'}') {
        return Ok(());
    }
    loop {
        json.skip_blanks();
        let name = json.string(fields)?;
        let name = match prefix {
            None => name,
            Some(_) if fields.is_full() => name,
            Some(prefix) => {
                let start = fields.scratch_len();
                fields.append_piece(prefix, line);
                fields.scratch_mut().push('.');
                fields.append_piece(name, line);
                fields.scratch_since(start)
            }
        };
        json.skip_blanks();
        json.expect(b':', "a colon after the name")?;
        json.skip_blanks();
        let is_whole = depth >= FLATTENED_DEPTH_MAX || name.len() > PREFIX_BYTES_MAX;
        match json.value(is_whole, fields)? {
            JsonValue::Object => members(json, line, Some(name), depth + 1, fields)?,
            JsonValue::Scalar(value) => fields.push_member(name, value),
        }
        json.skip_blanks();
        if json.take(b'}') {
            return Ok(());
        }
        json.expect(b',', "a comma or the end of the object")?;
    }
}

/// Deeper values are refused, so that a hostile line does not exhaust the stack.
const DEPTH_MAX: usize = 128;

/// A position in a JSON text.
pub(crate) struct JsonText<'a> {
    text: &'a str,
    position: usize,
}

/// A value whose parts are not read yet.
pub(crate) enum JsonValue {
    Object,
    Scalar(Slot),
}

impl<'a> JsonText<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    pub(crate) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.position += 1;
        }
    }

    pub(crate) fn take(&mut self, expected: u8) -> bool {
        let found = self.peek() == Some(expected);
        self.position += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, expected: u8, what: &'static str) -> Result<(), Misfit> {
        if self.take(expected) { Ok(()) } else { Err(Misfit::expected(what, self.position)) }
    }

    /// A text, with its escapes resolved.
    pub(crate) fn string(&mut self, fields: &mut EntryFields) -> Result<Piece, Misfit> {
        let (start, end, has_escapes) = self.raw_string()?;
        if !has_escapes {
            return Ok(Piece::of_text(start, end));
        }
        let raw = self.text.get(start..end).unwrap_or_default();
        let mut is_valid = true;
        let piece = fields.write_scratch(|scratch| is_valid = unescape(raw, scratch));
        if is_valid { Ok(piece) } else { Err(Misfit::expected("an escape of JSON in the text", start)) }
    }

    /// The bounds of a text without its quotes, and whether it has escapes.
    fn raw_string(&mut self) -> Result<(usize, usize, bool), Misfit> {
        let bytes = self.text.as_bytes();
        self.expect(b'"', "a text in quotes")?;
        let start = self.position;
        let mut position = start;
        let mut has_escapes = false;
        loop {
            let rest = bytes.get(position..).unwrap_or_default();
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(Misfit::expected("a closing quote", bytes.len()));
            };
            position += found;
            if bytes.get(position) == Some(&b'"') {
                self.position = position + 1;
                return Ok((start, position, has_escapes));
            }
            has_escapes = true;
            position += 2;
        }
    }

    /// A value. An object is only begun, unless `whole_objects`: then it is skipped, as an array always is.
    pub(crate) fn value(&mut self, whole_objects: bool, fields: &mut EntryFields) -> Result<JsonValue, Misfit> {
        let start = self.position;
        Ok(match self.peek() {
            Some(b'{') if !whole_objects => JsonValue::Object,
            Some(b'{' | b'[') => {
                self.skip_value(0)?;
                JsonValue::Scalar(Slot::Json(Piece::of_text(start, self.position)))
            }
            Some(b'"') => JsonValue::Scalar(Slot::Text(self.string(fields)?)),
            Some(b'-' | b'0'..=b'9') => {
                self.skip_number()?;
                JsonValue::Scalar(Slot::Number(Piece::of_text(start, self.position)))
            }
            _ => JsonValue::Scalar(self.literal()?),
        })
    }

    fn literal(&mut self) -> Result<Slot, Misfit> {
        for (word, value) in [("true", Slot::Boolean(true)), ("false", Slot::Boolean(false)), ("null", Slot::Null)] {
            if self.text.get(self.position..).is_some_and(|rest| rest.starts_with(word)) {
                self.position += word.len();
                return Ok(value);
            }
        }
        Err(Misfit::expected("a JSON value", self.position))
    }

    fn skip_number(&mut self) -> Result<(), Misfit> {
        self.take(b'-');
        self.skip_digits()?;
        if self.take(b'.') {
            self.skip_digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.skip_digits()?;
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<(), Misfit> {
        let start = self.position;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
        if self.position == start { Err(Misfit::expected("a digit", start)) } else { Ok(()) }
    }

    fn skip_value(&mut self, depth: usize) -> Result<(), Misfit> {
        if depth > DEPTH_MAX {
            return Err(Misfit::expected("a value of less depth", self.position));
        }
        match self.peek() {
            Some(b'"') => self.raw_string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            Some(b'[') => self.skip_items(b']', depth),
            Some(b'{') => self.skip_items(b'}', depth),
            _ => self.literal().map(|_| ()),
        }
    }

    fn skip_items(&mut self, end: u8, depth: usize) -> Result<(), Misfit> {
        self.position += 1;
        self.skip_blanks();
        if self.take(end) {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            if end == b'}' {
                self.raw_string()?;
                self.skip_blanks();
                self.expect(b':', "a colon after the name")?;
                self.skip_blanks();
            }
            self.skip_value(depth + 1)?;
            self.skip_blanks();
            if self.take(end) {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the array or object")?;
        }
    }
}

/// Resolves the escapes of JSON. Half a surrogate pair becomes U+FFFD. Gives whether all escapes exist.
fn unescape(raw: &str, out: &mut String) -> bool {
    let mut rest = raw;
    while let Some(position) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(rest.get(..position).unwrap_or_default());
        let after = rest.get(position + 1..).unwrap_or_default();
        let Some(letter) = after.bytes().next() else { return false };
        let mut length = 1;
        out.push(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let Some(first) = code_unit(after, 1) else { return false };
                length = 5;
                let second = after.get(5..).filter(|rest| rest.starts_with("\\u")).and_then(|rest| code_unit(rest, 2));
                match (first, second) {
                    (0xD800..=0xDBFF, Some(second @ 0xDC00..=0xDFFF)) => {
                        length = 11;
                        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                    _ => char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            _ => return false,
        });
        rest = after.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    true
}

fn code_unit(text: &str, start: usize) -> Option<u32> {
    let digits = text.get(start..start + 4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// Appends `text` as a JSON text in quotes.
pub(crate) fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if (control as u32) < 0x20 => {
                out.push_str("\\u00");
                let code = control as u32;
                out.extend([code >> 4, code & 0xF].into_iter().filter_map(|digit| char::from_digit(digit, 16)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let mut out = String::new();
        assert!(unescape(r#"a\n\"\u00e9\ud83d\ude00\ud800x\/"#, &mut out));
        assert_eq!(out, "a\n\"é😀\u{fffd}x/");
        assert!(!unescape(r"\x", &mut String::new()) && !unescape(r"\u12", &mut String::new()));
        assert!(!unescape("\\u12é", &mut String::new()));
    }

    #[test]
    fn hostile_depth_is_refused() {
        let text = "[".repeat(100_000);
        assert!(JsonText::new(&text).value(true, &mut EntryFields::default()).is_err());
    }

    #[test]
    fn texts_are_written_with_escapes() {
        let mut out = String::new();
        write_json_text("a\"\\\n\u{1}é", &mut out);
        assert_eq!(out, "\"a\\\"\\\\\\n\\u0001é\"");
    }
}
