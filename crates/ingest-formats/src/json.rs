//! JSON: the text of values, where a value ends, documents (an array of objects, or one object), and NDJSON.
//!
//! The text is read value by value, with the parser jiter. Numbers stay text, so that nothing is rounded.

use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};

use crate::error::{BodyError, CellError, REJECTED_TEXT_BYTES_MAX, RejectedRow, RowPosition};
use crate::rows::{BYTE_ORDER_MARK, RecordSink, record_text, skip_byte_order_mark};

/// The position in the text of one record.
#[derive(Debug)]
pub struct JsonCursor<'a> {
    text: &'a str,
    parser: Jiter<'a>,
}

/// What a value is, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number.
    Number,
    /// A text.
    String,
    /// A list of values.
    Array,
    /// Members with names.
    Object,
}

/// The text is not JSON: what is wrong, at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonSyntaxError {
    /// What is wrong.
    pub reason: &'static str,
    /// The byte, from 0.
    pub position: usize,
}

impl From<JiterError> for JsonSyntaxError {
    fn from(error: JiterError) -> Self {
        use JsonErrorType::*;
        let reason = match &error.error_type {
            JiterErrorType::JsonError(kind) => match kind {
                EofWhileParsingValue => "the text ends where a value is expected",
                EofWhileParsingList | ExpectedListCommaOrEnd => "an array needs a comma or its end here",
                EofWhileParsingObject | ExpectedObjectCommaOrEnd => "an object needs a comma or its end here",
                KeyMustBeAString => "an object needs the name of a member here, in quotes",
                ExpectedColon => "a member needs a colon after its name",
                TrailingComma => "an array or object has a comma before its end",
                TrailingCharacters => "there is more text after the value",
                EofWhileParsingString => "a string is not closed",
                ControlCharacterWhileParsingString => "a string has a control character without escape",
                InvalidEscape => "a string has an escape that JSON does not have",
                LoneLeadingSurrogateInHexEscape | UnexpectedEndOfHexEscape => {
                    "a string has half of a pair of \\u escapes, which is no character"
                }
                InvalidNumber => "a number does not have the form of JSON",
                NumberOutOfRange => "a number has more than 4,300 digits before its point",
                RecursionLimitExceeded => "values are nested more than 200 levels deep",
                _ => "a value is expected",
            },
            JiterErrorType::WrongType { .. } => "a value is expected",
        };
        Self { reason, position: error.index }
    }
}

type JsonResult<T> = Result<T, JsonSyntaxError>;

impl<'a> JsonCursor<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, parser: Jiter::new(text.as_bytes()) }
    }

    /// Checks that nothing but blanks follows.
    ///
    /// # Errors
    /// If there is more text.
    pub fn expect_end(&mut self) -> JsonResult<()> {
        Ok(self.parser.finish()?)
    }

    /// The kind of the next value. Words are taken, the rest is not.
    #[inline]
    pub fn kind(&mut self) -> JsonResult<JsonKind> {
        let first = self.parser.peek()?;
        let no_value = JsonSyntaxError { reason: "a value is expected", position: self.parser.current_index() };
        match first {
            Peek::String => Ok(JsonKind::String),
            Peek::Object => Ok(JsonKind::Object),
            Peek::Array => Ok(JsonKind::Array),
            Peek::True | Peek::False => self.parser.known_bool(first).map(JsonKind::Boolean).map_err(|_| no_value),
            Peek::Null => self.parser.known_null().map(|()| JsonKind::Null).map_err(|_| no_value),
            _ if matches!(first.into_inner(), b'-' | b'0'..=b'9') => Ok(JsonKind::Number),
            _ => Err(no_value),
        }
    }

    /// The text of a number, which [`Self::kind`] has seen.
    #[inline]
    pub fn number(&mut self) -> JsonResult<&'a str> {
        let first = self.parser.peek()?;
        let start = self.parser.current_index();
        self.parser.known_number_bytes(first)?;
        Ok(self.text_since(start))
    }

    /// The text of a string, which [`Self::kind`] has seen, without escapes.
    #[inline]
    pub fn string(&mut self) -> JsonResult<&str> {
        Ok(self.parser.known_str()?)
    }

    /// The text of the next value as it is written, checked to be JSON.
    pub fn raw_value(&mut self) -> JsonResult<&'a str> {
        let first = self.parser.peek()?;
        let start = self.parser.current_index();
        self.parser.known_skip(first)?;
        Ok(self.text_since(start))
    }

    fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.parser.current_index()).unwrap_or_default()
    }

    /// Moves to the next item of an array, and returns whether there is one. `is_first` is true until the first call, before
    /// which [`Self::kind`] has seen the array.
    #[inline]
    pub fn next_item(&mut self, is_first: &mut bool) -> JsonResult<bool> {
        let item = if std::mem::take(is_first) { self.parser.known_array()? } else { self.parser.array_step()? };
        Ok(item.is_some())
    }

    /// Moves to the value of the next member of an object, and returns its name. `is_first` is that of [`Self::next_item`].
    #[inline]
    pub fn next_name(&mut self, is_first: &mut bool) -> JsonResult<Option<&str>> {
        let name = if std::mem::take(is_first) { self.parser.known_object() } else { self.parser.next_key() };
        Ok(name?)
    }
}

/// Finds the end of one object, array or string at a time. It continues where the bytes ended, and checks nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonScanner {
    /// The next byte of the value.
    position: usize,
    depth: usize,
    is_in_string: bool,
}

impl JsonScanner {
    /// Begins the next value.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The length of the value that `text` begins with. Nothing if it does not end in `text`, which then must be longer in
    /// the next call.
    pub fn scan(&mut self, text: &[u8]) -> Option<usize> {
        let Self { mut position, mut depth, mut is_in_string } = *self;
        let mut has_ended = false;
        while let (false, Some(byte)) = (has_ended, text.get(position)) {
            if is_in_string {
                let rest = text.get(position..).unwrap_or_default();
                let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                match rest.get(length..) {
                    // The next byte belongs to the backslash.
                    Some([b'\\', _, ..]) => position += length + 2,
                    Some([b'"', ..]) => {
                        position += length + 1;
                        is_in_string = false;
                        has_ended = depth == 0;
                    }
                    _ => {
                        position += length;
                        break;
                    }
                }
                continue;
            }
            position += 1;
            match byte {
                b'"' => is_in_string = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    has_ended = depth == 0;
                }
                _ => {}
            }
        }
        *self = Self { position, depth, is_in_string };
        has_ended.then_some(position)
    }
}

/// Splits a document into its rows without parsing them.
#[derive(Debug)]
pub(crate) struct JsonDocument {
    /// The bytes from the beginning of the row on that is not complete.
    buffer: Vec<u8>,
    /// How many bytes of the buffer were scanned.
    scanned: usize,
    state: DocumentState,
    scanner: JsonScanner,
    /// The number of the next row.
    index: u64,
    /// The line of the first byte of the buffer.
    line: u64,
    row_bytes_max: usize,
    is_at_start: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentState {
    Start,
    /// After the bracket of the array.
    FirstItem,
    /// After a comma.
    Item,
    /// Within a row.
    Row {
        is_only: bool,
    },
    /// Within a value without brackets, which is no row.
    Word,
    AfterItem,
    End,
}

impl JsonDocument {
    pub(crate) fn new(row_bytes_max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            scanned: 0,
            state: DocumentState::Start,
            scanner: JsonScanner::default(),
            index: 0,
            line: 1,
            row_bytes_max,
            is_at_start: true,
        }
    }

    /// The memory of the row that is not complete.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    pub(crate) fn push(&mut self, bytes: &[u8], rows: &mut impl RecordSink) -> Result<(), BodyError> {
        self.buffer.extend_from_slice(bytes);
        if self.is_at_start {
            if !skip_byte_order_mark(&mut self.buffer) {
                return Ok(());
            }
            self.is_at_start = false;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let consumed = self.scan(&buffer, rows);
        self.buffer = buffer;
        let consumed = consumed?;
        self.buffer.drain(..consumed);
        self.scanned = self.scanned.saturating_sub(consumed);
        if self.buffer.len() > self.row_bytes_max {
            let (index, max) = (self.index, self.row_bytes_max);
            return Err(BodyError::TooLarge(format!("row {index} has more than {max} bytes")));
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<(), BodyError> {
        match self.state {
            DocumentState::End => Ok(()),
            DocumentState::Start => {
                Err(BodyError::Incomplete("the body is empty; without rows, a JSON body is []".to_owned()))
            }
            DocumentState::Row { .. } | DocumentState::Word => {
                Err(BodyError::Incomplete(format!("the body ends in row {} (line {})", self.index, self.line)))
            }
            _ => Err(BodyError::Incomplete(format!(
                "the body ends before its array is closed, after {} rows (line {})",
                self.index, self.line
            ))),
        }
    }

    /// Reads all complete rows, and returns how many bytes of the buffer are not needed any more.
    fn scan(&mut self, buffer: &[u8], rows: &mut impl RecordSink) -> Result<usize, BodyError> {
        let mut start = 0;
        let mut position = self.scanned;
        while let Some(byte) = buffer.get(position).copied() {
            match self.state {
                DocumentState::Row { is_only } => {
                    let Some(length) = self.scanner.scan(buffer.get(start..).unwrap_or_default()) else {
                        position = buffer.len();
                        break;
                    };
                    position = start + length;
                    self.state = if is_only { DocumentState::End } else { DocumentState::AfterItem };
                    self.scanner.clear();
                    self.read_row(buffer.get(start..position).unwrap_or_default(), rows)?;
                    start = position;
                }
                DocumentState::Word => {
                    if matches!(byte, b',' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                        self.state = DocumentState::AfterItem;
                        self.read_row(buffer.get(start..position).unwrap_or_default(), rows)?;
                        start = position;
                    } else {
                        position += 1;
                    }
                }
                _ => {
                    if let Some(state) = self.next_state(byte)? {
                        self.state = state;
                        start = position;
                    }
                    // The first byte of a row belongs to it and is scanned again.
                    if !matches!(self.state, DocumentState::Row { .. } | DocumentState::Word) {
                        self.line += u64::from(byte == b'\n');
                        position += 1;
                        start = position;
                    }
                }
            }
        }
        self.scanned = position;
        Ok(start)
    }

    /// The state after a byte between rows, or nothing if it does not change.
    fn next_state(&self, byte: u8) -> Result<Option<DocumentState>, BodyError> {
        use DocumentState::{AfterItem, End, FirstItem, Item, Row, Start, Word};
        Ok(Some(match (self.state, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => return Ok(None),
            (Start, b'[') => FirstItem,
            (Start, b'{') => Row { is_only: true },
            (Start, _) => return self.malformed("a JSON body is an array of objects or one object"),
            (FirstItem, b']') | (AfterItem, b']') => End,
            (FirstItem | Item, b'{' | b'[' | b'"') => Row { is_only: false },
            (FirstItem | Item, b',' | b']' | b'}' | b':') => return self.malformed("a row is expected"),
            (FirstItem | Item, _) => Word,
            (AfterItem, b',') => Item,
            (AfterItem, _) => return self.malformed("a comma or the end of the array is expected"),
            (End, _) => return self.malformed("there is more text after the document"),
            (Row { .. } | Word, _) => return Ok(None),
        }))
    }

    fn malformed<T>(&self, reason: &str) -> Result<T, BodyError> {
        Err(BodyError::Malformed(format!("line {}, before row {}: {reason}", self.line, self.index)))
    }

    fn read_row(&mut self, row: &[u8], rows: &mut impl RecordSink) -> Result<(), BodyError> {
        if row.len() > self.row_bytes_max {
            let (index, max) = (self.index, self.row_bytes_max);
            return Err(BodyError::TooLarge(format!("row {index} has more than {max} bytes")));
        }
        let appended = record_text(row).and_then(|text| rows.append_object(text));
        // Brackets that do not match leave the rest of the document without a meaning.
        if let Err(error) = &appended
            && error.is_syntax
        {
            let (index, line) = (self.index, self.line);
            return Err(BodyError::Malformed(format!("row {index} (line {line}): {}", error.reason)));
        }
        rows.record(RowPosition::Index(self.index), row, appended)?;
        self.index += 1;
        self.line += memchr::memchr_iter(b'\n', row).count() as u64;
        Ok(())
    }
}

/// Splits a body into lines.
#[derive(Debug)]
pub(crate) struct JsonLines {
    /// The beginning of the line that is not complete.
    open: Vec<u8>,
    /// The number of the next line.
    line: u64,
    line_bytes_max: usize,
    /// Whether the open line is too long and was rejected.
    is_rejected: bool,
}

impl JsonLines {
    pub(crate) fn new(line_bytes_max: usize) -> Self {
        Self { open: Vec::new(), line: 1, line_bytes_max, is_rejected: false }
    }

    /// The memory of the line that is not complete.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.open.capacity()
    }

    pub(crate) fn push(&mut self, bytes: &[u8], rows: &mut impl RecordSink) -> Result<(), BodyError> {
        let mut rest = bytes;
        while let Some(length) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            rest = after.split_at_checked(1).map_or(&[], |(_, rest)| rest);
            if self.is_rejected {
                self.is_rejected = false;
            } else if self.open.is_empty() {
                self.read_line(line, rows)?;
            } else {
                self.open.extend_from_slice(line);
                let open = std::mem::take(&mut self.open);
                self.read_line(&open, rows)?;
                self.open = open;
                self.open.clear();
            }
            self.line += 1;
        }
        if !self.is_rejected {
            self.open.extend_from_slice(rest);
            if self.open.len() > self.line_bytes_max {
                let open = std::mem::take(&mut self.open);
                self.read_line(&open, rows)?;
                self.is_rejected = true;
            }
        }
        Ok(())
    }

    /// Reads a last line without line break. If it is not a whole value, the body broke off in it.
    pub(crate) fn finish(&mut self, rows: &mut impl RecordSink) -> Result<(), BodyError> {
        let open = std::mem::take(&mut self.open);
        let line = self.without_mark(trim(&open));
        let is_whole = record_text(line).is_ok_and(|text| {
            let mut cursor = JsonCursor::new(text);
            cursor.raw_value().and_then(|_| cursor.expect_end()).is_ok()
        });
        if !is_whole && !is_blank(line) {
            let line = self.line;
            return Err(BodyError::Incomplete(format!(
                "the body ends in line {line}, which has neither a line break nor a whole object"
            )));
        }
        self.read_line(&open, rows)
    }

    fn read_line(&self, line: &[u8], rows: &mut impl RecordSink) -> Result<(), BodyError> {
        let position = RowPosition::Line(self.line);
        if line.len() > self.line_bytes_max {
            let reason = format!("the line has more than {} bytes", self.line_bytes_max);
            let error = CellError { path: String::new(), reason, is_syntax: true };
            let text = line.get(..REJECTED_TEXT_BYTES_MAX).unwrap_or(line);
            return rows.reject(RejectedRow::new(position, error, text));
        }
        let line = self.without_mark(trim(line));
        if is_blank(line) {
            return Ok(());
        }
        let appended = record_text(line).and_then(|text| rows.append_object(text));
        rows.record(position, line, appended)
    }

    fn without_mark<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        if self.line == 1 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line }
    }
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Result<&str, JsonSyntaxError> {
        let mut cursor = JsonCursor::new(text);
        let value = cursor.raw_value()?;
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
        let mut cursor = JsonCursor::new(r#""a\"\\\/\b\f\n\r\té😀\u0000z""#);
        assert_eq!(cursor.string(), Ok("a\"\\/\u{8}\u{c}\n\r\té😀\0z"));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + "1" + &"]".repeat(depth);
        assert!(raw(&nested(200)).is_ok());
        assert_eq!(raw(&nested(201)).unwrap_err().reason, "values are nested more than 200 levels deep");
        assert!(raw(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn what_is_wrong_has_its_position() {
        let table = [
            ("nul", "the text ends where a value is expected", 3),
            ("[1,]", "an array or object has a comma before its end", 3),
            ("{\"a\" 1}", "a member needs a colon after its name", 5),
            ("{\"a\":01}", "a number does not have the form of JSON", 6),
            ("[\"\\udc00\"]", "a string has half of a pair of \\u escapes, which is no character", 7),
            ("{\"a\":1}}", "there is more text after the value", 7),
        ];
        for (text, reason, position) in table {
            let mut cursor = JsonCursor::new(text);
            let error = cursor.raw_value().and_then(|_| cursor.expect_end()).unwrap_err();
            assert_eq!(error, JsonSyntaxError { reason, position }, "{text}");
        }
        let digits = "9".repeat(5_000);
        assert_eq!(raw(&digits).unwrap_err().reason, "a number has more than 4,300 digits before its point");
    }

    #[test]
    fn values_end_where_their_brackets_are_closed() {
        let table = [
            (r#"{"a":[1,{"b":"}"}]} {"#, Some(19)),
            (r#"["\"]",2],3"#, Some(9)),
            (r#""a\\",1"#, Some(5)),
            (r#"{"a":1"#, None),
            (r#"{"a":"\"#, None),
            ("", None),
        ];
        for (text, length) in table {
            assert_eq!(JsonScanner::default().scan(text.as_bytes()), length, "{text}");
            // Byte by byte.
            let mut scanner = JsonScanner::default();
            let found = (0..=text.len()).find_map(|end| scanner.scan(&text.as_bytes()[..end]));
            assert_eq!(found, length, "{text}");
        }
    }
}
