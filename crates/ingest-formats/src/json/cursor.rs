//! Reads JSON from its text, value by value. Numbers stay text, so that nothing is rounded.

use super::MALFORMED_STRING;

/// How deeply values may be nested where no column bounds them.
pub(crate) const JSON_DEPTH_MAX: usize = 128;

/// The position in the text of one record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonCursor<'a> {
    text: &'a str,
    position: usize,
}

/// What a value is, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonKind {
    Null,
    Boolean(bool),
    Number,
    String,
    Array,
    Object,
}

/// The text is not JSON: what is wrong, at which byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonSyntaxError {
    pub(crate) reason: &'static str,
    pub(crate) position: usize,
}

impl<'a> JsonCursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    pub(crate) fn error<T>(&self, reason: &'static str) -> Result<T, JsonSyntaxError> {
        Err(JsonSyntaxError { reason, position: self.position })
    }

    /// The next byte that is no white space, which is not taken.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.position) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.position += 1;
        }
        None
    }

    /// Takes `byte` if it is next.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.position += 1;
        }
        is_next
    }

    pub(crate) fn expect_end(&mut self) -> Result<(), JsonSyntaxError> {
        if self.peek().is_none() { Ok(()) } else { self.error("there is more text after the value") }
    }

    /// The kind of the next value. Words are taken, the rest is not.
    #[inline]
    pub(crate) fn kind(&mut self) -> Result<JsonKind, JsonSyntaxError> {
        match self.peek() {
            Some(b'"') => Ok(JsonKind::String),
            Some(b'-' | b'0'..=b'9') => Ok(JsonKind::Number),
            Some(b'{') => Ok(JsonKind::Object),
            Some(b'[') => Ok(JsonKind::Array),
            Some(b't') => self.word("true", JsonKind::Boolean(true)),
            Some(b'f') => self.word("false", JsonKind::Boolean(false)),
            Some(b'n') => self.word("null", JsonKind::Null),
            Some(_) => self.error("a value is expected"),
            None => self.error("the text ends where a value is expected"),
        }
    }

    fn word(&mut self, word: &str, kind: JsonKind) -> Result<JsonKind, JsonSyntaxError> {
        let rest = self.text.as_bytes().get(self.position..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return self.error("a value is expected");
        }
        self.position += word.len();
        Ok(kind)
    }

    /// The text of a number, whose form the caller checks.
    #[inline]
    pub(crate) fn number(&mut self) -> &'a str {
        let bytes = self.text.as_bytes().get(self.position..).unwrap_or_default();
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = bytes.iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len());
        let start = self.position;
        self.position += length;
        self.text.get(start..self.position).unwrap_or_default()
    }

    /// The text of a string, whose escapes are replaced in `scratch`.
    #[inline]
    pub(crate) fn string<'b>(&mut self, scratch: &'b mut String) -> Result<&'b str, JsonSyntaxError>
    where
        'a: 'b,
    {
        if !self.take(b'"') {
            return self.error("a string is expected");
        }
        let start = self.position;
        match self.plain_characters()? {
            b'"' => {
                let text = self.text.get(start..self.position).unwrap_or_default();
                self.position += 1;
                Ok(text)
            }
            _ => self.escaped_string(start, scratch),
        }
    }

    /// Moves to the next quote or backslash, and returns it.
    #[inline]
    fn plain_characters(&mut self) -> Result<u8, JsonSyntaxError> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.position) {
            match byte {
                b'"' | b'\\' => return Ok(*byte),
                ..0x20 => return self.error("a string has a control character without escape"),
                _ => self.position += 1,
            }
        }
        self.error("a string is not closed")
    }

    fn escaped_string<'b>(&mut self, start: usize, scratch: &'b mut String) -> Result<&'b str, JsonSyntaxError> {
        scratch.clear();
        scratch.push_str(self.text.get(start..self.position).unwrap_or_default());
        loop {
            let start = self.position;
            let byte = self.plain_characters()?;
            scratch.push_str(self.text.get(start..self.position).unwrap_or_default());
            self.position += 1;
            if byte == b'"' {
                return Ok(scratch);
            }
            scratch.push(self.escape()?);
        }
    }

    /// The character of an escape, after its backslash.
    fn escape(&mut self) -> Result<char, JsonSyntaxError> {
        let byte = self.text.as_bytes().get(self.position).copied();
        self.position += 1;
        Ok(match byte {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return self.error("a string has an escape that JSON does not have"),
        })
    }

    fn unicode_escape(&mut self) -> Result<char, JsonSyntaxError> {
        let first = self.hex_digits()?;
        let is_low = |unit: u32| (0xDC00..0xE000).contains(&unit);
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first).map_or_else(|| self.error(MALFORMED_STRING), Ok);
        }
        let rest = self.text.as_bytes().get(self.position..).unwrap_or_default();
        if !rest.starts_with(b"\\u") {
            return self.error(MALFORMED_STRING);
        }
        self.position += 2;
        let second = self.hex_digits()?;
        if !is_low(second) {
            return self.error(MALFORMED_STRING);
        }
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
            .map_or_else(|| self.error(MALFORMED_STRING), Ok)
    }

    fn hex_digits(&mut self) -> Result<u32, JsonSyntaxError> {
        let digits = self.text.as_bytes().get(self.position..self.position + 4).unwrap_or_default();
        let mut value = 0;
        for digit in digits {
            let Some(digit) = char::from(*digit).to_digit(16) else {
                return self.error("an escape \\u needs four hexadecimal digits");
            };
            value = value << 4 | digit;
        }
        if digits.len() < 4 {
            return self.error("an escape \\u needs four hexadecimal digits");
        }
        self.position += 4;
        Ok(value)
    }

    /// The text of the next value as it is written, checked to be JSON.
    pub(crate) fn raw_value(&mut self, scratch: &mut String) -> Result<&'a str, JsonSyntaxError> {
        self.peek();
        let start = self.position;
        self.skip_value(scratch, JSON_DEPTH_MAX)?;
        Ok(self.text.get(start..self.position).unwrap_or_default())
    }

    fn skip_value(&mut self, scratch: &mut String, depth: usize) -> Result<(), JsonSyntaxError> {
        match self.kind()? {
            JsonKind::Null | JsonKind::Boolean(_) => Ok(()),
            JsonKind::Number => {
                let start = self.position;
                if is_number(self.number()) { Ok(()) } else { Err(malformed_number(start)) }
            }
            JsonKind::String => self.string(scratch).map(|_| ()),
            JsonKind::Array | JsonKind::Object if depth == 0 => self.error("values are nested too deeply"),
            JsonKind::Array => {
                let mut items = self.array();
                while items.next_item(self)? {
                    self.skip_value(scratch, depth - 1)?;
                }
                Ok(())
            }
            JsonKind::Object => {
                let mut members = self.object();
                while members.next_name(self, scratch)?.is_some() {
                    self.skip_value(scratch, depth - 1)?;
                }
                Ok(())
            }
        }
    }

    /// The items of an array, before its bracket, which [`Self::kind`] has seen.
    #[inline]
    pub(crate) fn array(&mut self) -> JsonItems {
        self.position += 1;
        JsonItems { is_first: true }
    }

    /// The members of an object, before its brace, which [`Self::kind`] has seen.
    #[inline]
    pub(crate) fn object(&mut self) -> JsonMembers {
        self.position += 1;
        JsonMembers { is_first: true }
    }
}

/// Whether `text` has the form of a number in JSON.
fn is_number(text: &str) -> bool {
    use crate::value::number::{NumberParts, NumberSyntax};
    NumberParts::parse(text.as_bytes(), NumberSyntax::Json).is_some()
}

fn malformed_number(position: usize) -> JsonSyntaxError {
    JsonSyntaxError { reason: "a number does not have the form of JSON", position }
}

/// Where in an array a cursor is.
#[derive(Debug)]
pub(crate) struct JsonItems {
    is_first: bool,
}

/// Where in an object a cursor is.
#[derive(Debug)]
pub(crate) struct JsonMembers {
    is_first: bool,
}

impl JsonItems {
    /// Moves to the next item, and returns whether there is one.
    pub(crate) fn next_item(&mut self, cursor: &mut JsonCursor<'_>) -> Result<bool, JsonSyntaxError> {
        if cursor.take(b']') {
            return Ok(false);
        }
        if !std::mem::take(&mut self.is_first) {
            if !cursor.take(b',') {
                return cursor.error("an array needs a comma or its end here");
            }
            if cursor.peek() == Some(b']') {
                return cursor.error("an array has a comma before its end");
            }
        }
        Ok(true)
    }
}

impl JsonMembers {
    /// Moves to the value of the next member, and returns its name.
    #[inline]
    pub(crate) fn next_name<'a: 'b, 'b>(
        &mut self,
        cursor: &mut JsonCursor<'a>,
        scratch: &'b mut String,
    ) -> Result<Option<&'b str>, JsonSyntaxError> {
        if cursor.take(b'}') {
            return Ok(None);
        }
        if !std::mem::take(&mut self.is_first) && !cursor.take(b',') {
            return cursor.error("an object needs a comma or its end here");
        }
        if cursor.peek() != Some(b'"') {
            return cursor.error("an object needs the name of a member here, in quotes");
        }
        let name = cursor.string(scratch)?;
        if !cursor.take(b':') {
            return cursor.error("a member needs a colon after its name");
        }
        Ok(Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Result<&str, JsonSyntaxError> {
        let mut cursor = JsonCursor::new(text);
        let value = cursor.raw_value(&mut String::new())?;
        cursor.expect_end()?;
        Ok(value)
    }

    #[test]
    fn accepts_what_another_parser_accepts() {
        let texts = [
            "1",
            " [1, 2,3 ] ",
            "{}",
            "[]",
            "{\"a\":[{}],\"b\":null}",
            "\"a\\n\\u00e4\\ud83d\\ude00\"",
            "tru",
            "truex",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "01",
            "1.",
            "-",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\n\"",
            "\"open",
            "[1 2]",
            "{\"a\" 1}",
            "{,}",
            "[,]",
            "",
            "nul",
            "1 2",
            "\"\\ud800\\u0041\"",
        ];
        for text in texts {
            let expected = serde_json::from_str::<serde_json::Value>(text);
            assert_eq!(raw(text).is_ok(), expected.is_ok(), "{text}: {:?}", raw(text));
        }
    }

    #[test]
    fn escapes_are_replaced() {
        let mut scratch = String::new();
        let mut cursor = JsonCursor::new(r#""a\"\\\/\b\f\n\r\té😀\u0000z""#);
        assert_eq!(cursor.string(&mut scratch), Ok("a\"\\/\u{8}\u{c}\n\r\té😀\0z"));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(raw(&nested(JSON_DEPTH_MAX)).is_ok());
        assert!(raw(&nested(JSON_DEPTH_MAX + 1)).is_err());
        assert!(raw(&"[".repeat(100_000)).is_err());
    }
}
