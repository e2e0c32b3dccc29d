//! Reads JSON text, or finds a part of a document in its text without making a document of it.
//!
//! The parser jiter refuses half of a pair of `\u` escapes, which PostgreSQL accepts in `json`, and long numbers.

use std::borrow::Cow;

use datafusion::common::{DataFusionError, Result, exec_datafusion_err};

use super::value::{self, JsonValue};

/// Levels of arrays and objects that a document may have.
const DEPTH_MAX: usize = 256;

/// A place in a text that is read as JSON.
pub(super) struct JsonReader<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
}

/// The kind of a value or delimiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonToken {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

impl JsonToken {
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
            Self::True | Self::False => "boolean",
            Self::Null => "null",
        }
    }
}

/// Parses `text` as a document of `jsonb`.
pub(super) fn parse(text: &str) -> Result<JsonValue> {
    let mut reader = JsonReader::new(text);
    let value = reader.value()?;
    reader.expect_end()?;
    Ok(value)
}

/// Fails unless `text` is a document of `json`.
pub(super) fn validate(text: &str) -> Result<()> {
    let mut reader = JsonReader::new(text);
    reader.check_value()?;
    reader.expect_end()
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0, depth: 0 }
    }

    fn error(&self) -> DataFusionError {
        let end = self.text.floor_char_boundary(40);
        let more = if end < self.text.len() { "…" } else { "" };
        exec_datafusion_err!(
            "invalid input syntax for type json at byte {} of {}{more}",
            self.position + 1,
            &self.text[..end]
        )
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    pub(super) fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    /// Whether `byte` is next, which is passed then. Space before it is passed in any case.
    pub(super) fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.byte() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.accept(byte) { Ok(()) } else { Err(self.error()) }
    }

    fn expect_end(&mut self) -> Result<()> {
        self.skip_space();
        if self.position == self.text.len() { Ok(()) } else { Err(self.error()) }
    }

    /// Returns the next token without reading it.
    pub(super) fn token(&mut self) -> Result<JsonToken> {
        self.skip_space();
        let rest = &self.text.as_bytes()[self.position..];
        match rest.first() {
            Some(b'{') => Ok(JsonToken::Object),
            Some(b'[') => Ok(JsonToken::Array),
            Some(b'"') => Ok(JsonToken::String),
            Some(b'-' | b'0'..=b'9') => Ok(JsonToken::Number),
            Some(b't') if rest.starts_with(b"true") => Ok(JsonToken::True),
            Some(b'f') if rest.starts_with(b"false") => Ok(JsonToken::False),
            Some(b'n') if rest.starts_with(b"null") => Ok(JsonToken::Null),
            _ => Err(self.error()),
        }
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        self.position += 1;
        if self.depth > DEPTH_MAX {
            return Err(exec_datafusion_err!("a JSON document may have at most {DEPTH_MAX} nested levels"));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<JsonValue> {
        match self.token()? {
            JsonToken::Null => Ok(self.word(4, JsonValue::Null)?),
            JsonToken::True => Ok(self.word(4, JsonValue::Bool(true))?),
            JsonToken::False => Ok(self.word(5, JsonValue::Bool(false))?),
            JsonToken::Number => Ok(JsonValue::Number(value::canonicalize_number(self.number()?)?)),
            JsonToken::String => Ok(JsonValue::Text(self.string()?.into_owned())),
            JsonToken::Array => {
                let mut items = Vec::new();
                self.enter()?;
                if !self.accept(b']') {
                    loop {
                        items.push(self.value()?);
                        if !self.accept(b',') {
                            break;
                        }
                    }
                    self.expect(b']')?;
                }
                self.depth -= 1;
                Ok(JsonValue::Array(items))
            }
            JsonToken::Object => {
                let mut pairs = Vec::new();
                self.enter()?;
                if !self.accept(b'}') {
                    loop {
                        self.skip_space();
                        let key = self.string()?.into_owned();
                        self.expect(b':')?;
                        pairs.push((key, self.value()?));
                        if !self.accept(b',') {
                            break;
                        }
                    }
                    self.expect(b'}')?;
                }
                self.depth -= 1;
                Ok(JsonValue::object(pairs))
            }
        }
    }

    fn check_value(&mut self) -> Result<()> {
        let token = self.token()?;
        match token {
            JsonToken::Null | JsonToken::True => self.word(4, ()),
            JsonToken::False => self.word(5, ()),
            JsonToken::Number => self.number().map(|_| ()),
            JsonToken::String => self.raw_string().map(|_| ()),
            JsonToken::Array | JsonToken::Object => {
                let close = if token == JsonToken::Array { b']' } else { b'}' };
                self.enter()?;
                if !self.accept(close) {
                    loop {
                        if token == JsonToken::Object {
                            self.skip_space();
                            self.raw_string()?;
                            self.expect(b':')?;
                        }
                        self.check_value()?;
                        if !self.accept(b',') {
                            break;
                        }
                    }
                    self.expect(close)?;
                }
                self.depth -= 1;
                Ok(())
            }
        }
    }

    fn word<T>(&mut self, length: usize, value: T) -> Result<T> {
        self.position += length;
        match self.byte() {
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => Err(self.error()),
            _ => Ok(value),
        }
    }

    fn digits(&mut self) -> Result<usize> {
        let start = self.position;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
        if self.position == start { Err(self.error()) } else { Ok(self.position - start) }
    }

    fn number(&mut self) -> Result<&'a str> {
        let start = self.position;
        self.position += usize::from(self.byte() == Some(b'-'));
        let starts_with_zero = self.byte() == Some(b'0');
        if self.digits()? > 1 && starts_with_zero {
            return Err(self.error());
        }
        if self.byte() == Some(b'.') {
            self.position += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.position += 1;
            self.position += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        match self.byte() {
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => Err(self.error()),
            _ => Ok(&self.text[start..self.position]),
        }
    }

    /// Returns the text between the quotes without decoding escapes.
    fn raw_string(&mut self) -> Result<&'a str> {
        if self.byte() != Some(b'"') {
            return Err(self.error());
        }
        self.position += 1;
        let start = self.position;
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.position += 1;
                    match self.byte() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                        Some(b'u') => {
                            let digits = self.text.as_bytes().get(self.position + 1..self.position + 5);
                            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                                return Err(self.error());
                            }
                            self.position += 4;
                        }
                        _ => return Err(self.error()),
                    }
                }
                None | Some(0..0x20) => return Err(self.error()),
                _ => {}
            }
            self.position += 1;
        }
        self.position += 1;
        Ok(&self.text[start..self.position - 1])
    }

    /// Parses a string.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>> {
        let raw = self.raw_string()?;
        if raw.contains('\\') { unescape(raw).map(Cow::Owned) } else { Ok(Cow::Borrowed(raw)) }
    }

    /// Passes a value that was validated before, and returns its text.
    pub(super) fn skip_value(&mut self) -> Result<&'a str> {
        self.skip_space();
        let start = self.position;
        let mut depth = 0_usize;
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.skip_string();
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.position += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.saturating_sub(1);
                    self.position += 1;
                }
                Some(b',' | b':' | b' ' | b'\t' | b'\n' | b'\r') => self.position += 1,
                Some(_) => {
                    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                    let word = self.position;
                    while self.byte().is_some_and(is_word) {
                        self.position += 1;
                    }
                    if self.position == word {
                        return Err(self.error());
                    }
                }
                None => return Err(self.error()),
            }
            if depth == 0 {
                return self.text.get(start..self.position).ok_or_else(|| self.error());
            }
        }
    }

    fn skip_string(&mut self) {
        self.position += 1;
        while let Some(byte) = self.byte() {
            self.position += 1;
            match byte {
                b'"' => return,
                b'\\' => self.position += 1,
                _ => {}
            }
        }
    }
}

/// Decodes a JSON string. `raw` is the text between the quotes.
fn unescape(raw: &str) -> Result<String> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(position) = rest.find('\\') {
        out.push_str(&rest[..position]);
        let escape = rest.as_bytes().get(position + 1).copied().unwrap_or(b'\\');
        rest = rest.get(position + 2..).unwrap_or("");
        match escape {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => rest = unescape_unit(rest, &mut out)?,
            other => out.push(char::from(other)),
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Decodes the four digits that `rest` begins with, and a second unit if they are the first of two.
fn unescape_unit<'a>(rest: &'a str, out: &mut String) -> Result<&'a str> {
    let unit = |text: &str| text.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let first = unit(rest).unwrap_or(0);
    let rest = rest.get(4..).unwrap_or("");
    if first == 0 {
        return Err(exec_datafusion_err!("unsupported Unicode escape sequence: \\u0000 cannot be converted to text"));
    }
    if let Some(character) = char::from_u32(first) {
        out.push(character);
        return Ok(rest);
    }
    let second = rest.strip_prefix("\\u").and_then(unit).filter(|second| (0xdc00..0xe000).contains(second));
    match second {
        Some(second) if first < 0xdc00 => {
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            out.extend(char::from_u32(code));
            Ok(rest.get(6..).unwrap_or(""))
        }
        _ => Err(exec_datafusion_err!("invalid input syntax for type json: unpaired Unicode surrogate")),
    }
}

/// One step into a document.
#[derive(Debug, Clone)]
pub(super) enum PathStep<'a> {
    /// A member of an object.
    Key(Cow<'a, str>),
    /// An element of an array, from its end if negative.
    Index(i64),
    /// Either, by what there is: what `#>` takes.
    Any(Cow<'a, str>),
}

/// Returns the text of the value at `step` of a valid document.
pub(super) fn find_step<'d>(document: &'d str, step: &PathStep<'_>) -> Result<Option<&'d str>> {
    let mut reader = JsonReader::new(document);
    match (reader.token()?, step) {
        (JsonToken::Object, PathStep::Key(key) | PathStep::Any(key)) => member(&mut reader, key),
        (JsonToken::Array, PathStep::Index(index)) => element(document, *index),
        (JsonToken::Array, PathStep::Any(text)) => match parse_index(text) {
            Some(index) => element(document, index),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Parses an index from text.
pub(super) fn parse_index(text: &str) -> Option<i64> {
    let text = text.trim_start();
    text.parse::<i32>().ok().map(i64::from)
}

/// Returns the last member with this name. A `jsonb` has only one.
fn member<'d>(reader: &mut JsonReader<'d>, key: &str) -> Result<Option<&'d str>> {
    let mut found = None;
    each_member(reader, |name, value| {
        if name == key {
            found = Some(value);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Calls `take` for each member of the object that is next.
pub(super) fn each_member<'d>(
    reader: &mut JsonReader<'d>,
    mut take: impl FnMut(Cow<'d, str>, &'d str) -> Result<()>,
) -> Result<()> {
    reader.accept(b'{');
    if reader.accept(b'}') {
        return Ok(());
    }
    loop {
        reader.skip_space();
        let name = reader.string()?;
        reader.accept(b':');
        let value = reader.skip_value()?;
        take(name, value)?;
        if !reader.accept(b',') {
            return Ok(());
        }
    }
}

/// Calls `take` for each element of the array that is next, until it returns false.
pub(super) fn each_element<'d>(
    reader: &mut JsonReader<'d>,
    mut take: impl FnMut(&'d str) -> Result<bool>,
) -> Result<()> {
    reader.accept(b'[');
    if reader.accept(b']') {
        return Ok(());
    }
    loop {
        let value = reader.skip_value()?;
        if !take(value)? || !reader.accept(b',') {
            return Ok(());
        }
    }
}

/// Returns the number of elements of the array `document`.
pub(super) fn array_length(document: &str) -> Result<i64> {
    let mut length = 0;
    each_element(&mut JsonReader::new(document), |_| {
        length += 1;
        Ok(true)
    })?;
    Ok(length)
}

fn element(document: &str, index: i64) -> Result<Option<&str>> {
    let expected = if index < 0 { array_length(document)? + index } else { index };
    if expected < 0 {
        return Ok(None);
    }
    let (mut found, mut position) = (None, 0);
    each_element(&mut JsonReader::new(document), |value| {
        if position == expected {
            found = Some(value);
        }
        position += 1;
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// Returns the result of `->>` for the text of a value: `None` for null, and strings without quotes.
pub(super) fn as_text(value: &str) -> Result<Option<Cow<'_, str>>> {
    let mut reader = JsonReader::new(value);
    match reader.token()? {
        JsonToken::Null => Ok(None),
        JsonToken::String => reader.string().map(Some),
        _ => Ok(Some(Cow::Borrowed(value))),
    }
}
