//! Reads the objects of a JSON text one by one: those of an array, or one after the other, over any number of lines.

use std::io::{self, Read};

use tidegate_ingest_formats::{JsonCursor, JsonScanner, JsonSyntaxError};

use super::file_kind::Compression;
use super::record_buffer::RecordBuffer;
use super::text_reader::{ReadBudget, read_error_reason};

/// The objects of a text.
pub(crate) struct JsonRecords<R> {
    buffer: RecordBuffer<R>,
    scanner: JsonScanner,
    /// The length of the object that the buffer begins with.
    length: usize,
    place: Place,
    /// The line in which the buffer begins, from 1.
    line: u64,
}

/// What the text before the buffer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// The bracket of an array.
    FirstItem,
    /// An array up to a comma.
    Item,
    /// An array up to the end of an item.
    AfterItem,
    /// An array.
    End,
    /// Objects one after the other.
    Sequence,
}

/// An object.
pub(crate) struct JsonRecord<'r> {
    /// Begins and ends with a brace. Whether it is JSON between them is not checked.
    pub(crate) text: &'r str,
    /// The line in which it begins, from 1.
    pub(crate) line: u64,
}

/// Why the text of an object gives no values.
#[derive(Debug)]
pub(crate) enum JsonDefect {
    Syntax(JsonSyntaxError),
    /// A key is there twice in one object.
    KeyTwice(String),
    /// The items of its lists take too much memory.
    TooManyItems,
}

impl From<JsonSyntaxError> for JsonDefect {
    fn from(error: JsonSyntaxError) -> Self {
        Self::Syntax(error)
    }
}

impl JsonRecord<'_> {
    /// The error of this object.
    pub(crate) fn error(&self, defect: JsonDefect) -> JsonError {
        let (line, reason) = match defect {
            JsonDefect::Syntax(error) => return syntax_error(self.text, self.line, error),
            JsonDefect::KeyTwice(key) => (self.line, format!("the key {key:?} is twice in one object")),
            JsonDefect::TooManyItems => (self.line, "the lists of the row take too much memory".to_owned()),
        };
        JsonError::Form { line, reason }
    }
}

fn syntax_error(text: &str, first_line: u64, error: JsonSyntaxError) -> JsonError {
    let before = text.as_bytes().get(..error.position).unwrap_or(text.as_bytes());
    JsonError::Form { line: first_line + count_lines(before), reason: error.reason.to_owned() }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Why objects cannot be read.
#[derive(Debug)]
pub(crate) enum JsonError {
    /// The bytes cannot be read.
    Read(io::Error),
    /// The text has no valid form.
    Form {
        /// The line, from 1.
        line: u64,
        reason: String,
    },
}

impl JsonError {
    /// The reason, for the operator.
    pub(crate) fn reason(&self, compression: Compression) -> String {
        match self {
            Self::Read(error) => read_error_reason(error, compression),
            Self::Form { line, reason } => format!("line {line}: {reason}"),
        }
    }
}

impl<R: Read> JsonRecords<R> {
    pub(crate) fn new(text: R, budget: ReadBudget) -> Self {
        Self {
            buffer: RecordBuffer::new(text, budget),
            scanner: JsonScanner::default(),
            length: 0,
            place: Place::Start,
            line: 1,
        }
    }

    /// Whether the text that was read so far has anything but blanks.
    pub(crate) fn has_begun(&self) -> bool {
        self.place != Place::Start
    }

    /// The next object. An error is the last result.
    pub(crate) fn next(&mut self) -> Result<Option<JsonRecord<'_>>, JsonError> {
        let Some(length) = self.find_object()? else { return Ok(None) };
        self.length = length;
        let line = self.line;
        let bytes = self.buffer.rest().get(..length).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(JsonRecord { text, line })),
            Err(error) => {
                let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
                Err(JsonError::Form { line: line + count_lines(before), reason: "it is not UTF-8 text".to_owned() })
            }
        }
    }

    /// Moves the buffer to the next object, and returns its length. Nothing at the end of the text.
    fn find_object(&mut self) -> Result<Option<usize>, JsonError> {
        let length = std::mem::take(&mut self.length);
        self.skip(length);
        loop {
            let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            let blanks = self.buffer.rest().iter().take_while(is_blank).count();
            self.skip(blanks);
            let Some(byte) = self.buffer.rest().first().copied() else {
                if !self.buffer.is_at_end() {
                    self.fill()?;
                    continue;
                }
                return match self.place {
                    Place::Start | Place::Sequence | Place::End => Ok(None),
                    Place::FirstItem | Place::Item | Place::AfterItem => {
                        self.malformed("the array is not closed; the file is cut off")
                    }
                };
            };
            self.place = match (self.place, byte) {
                (Place::Start | Place::Sequence, b'{') => {
                    self.place = Place::Sequence;
                    return self.scan_object().map(Some);
                }
                (Place::FirstItem | Place::Item, b'{') => {
                    self.place = Place::AfterItem;
                    return self.scan_object().map(Some);
                }
                (Place::Start, b'[') => Place::FirstItem,
                (Place::AfterItem, b',') => Place::Item,
                (Place::FirstItem | Place::AfterItem, b']') => Place::End,
                (Place::Start, _) => return self.malformed("an object or an array of objects is expected"),
                (Place::AfterItem, _) => return self.malformed("a comma or the end of the array is expected"),
                (Place::End, _) => return self.malformed("there is text after the array"),
                (Place::FirstItem | Place::Item | Place::Sequence, _) => {
                    return self.malformed("a row is not an object");
                }
            };
            self.skip(1);
        }
    }

    /// The length of the object that the buffer begins with.
    fn scan_object(&mut self) -> Result<usize, JsonError> {
        self.scanner.clear();
        loop {
            if let Some(length) = self.scanner.scan(self.buffer.rest()) {
                return Ok(length);
            }
            if self.buffer.is_at_end() {
                return Err(self.open_object_error());
            }
            self.fill()?;
        }
    }

    /// The error of an object that does not end. An error of its form is the reason, if there is one.
    fn open_object_error(&self) -> JsonError {
        let text = std::str::from_utf8(self.buffer.rest()).unwrap_or_default();
        match JsonCursor::new(text).raw_value() {
            Err(error) if error.position < text.len() => syntax_error(text, self.line, error),
            _ => JsonError::Form { line: self.line, reason: "an object is not closed; the file is cut off".to_owned() },
        }
    }

    fn skip(&mut self, length: usize) {
        self.line += count_lines(self.buffer.rest().get(..length).unwrap_or_default());
        self.buffer.advance(length);
    }

    fn fill(&mut self) -> Result<(), JsonError> {
        self.buffer.fill().map_err(JsonError::Read)
    }

    fn malformed<T>(&self, reason: &str) -> Result<T, JsonError> {
        Err(JsonError::Form { line: self.line, reason: reason.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::record_buffer::SingleBytes;
    use super::*;

    fn read(text: &str) -> Result<Vec<(u64, String)>, String> {
        let mut records = JsonRecords::new(SingleBytes(text.as_bytes()), ReadBudget::new(usize::MAX));
        let mut found = Vec::new();
        while let Some(record) = records.next().map_err(|error| error.reason(Compression::UNCOMPRESSED))? {
            found.push((record.line, record.text.to_owned()));
        }
        Ok(found)
    }

    #[test]
    fn objects_are_items_of_an_array_or_follow_one_another() {
        let expected = vec![(2, "{\"a\":\n[\"}\"]}".to_owned()), (4, "{}".to_owned())];
        assert_eq!(read("\n{\"a\":\n[\"}\"]}\n{}\n"), Ok(expected.clone()));
        assert_eq!(read("[\n{\"a\":\n[\"}\"]},\n{}]\n"), Ok(expected));
        assert_eq!(read("{} {}{}").map(|found| found.len()), Ok(3));
        assert_eq!(read("[ ]").map(|found| found.len()), Ok(0));
        assert_eq!(read(" ").map(|found| found.len()), Ok(0));
    }

    #[test]
    fn text_that_is_no_sequence_of_objects_is_an_error_with_its_line() {
        for (text, reason) in [
            ("42", "line 1: an object or an array of objects is expected"),
            ("[{},\n1]", "line 2: a row is not an object"),
            ("[{},\n]", "line 2: a row is not an object"),
            ("{}\n[]", "line 2: a row is not an object"),
            ("[{}\n{}]", "line 2: a comma or the end of the array is expected"),
            ("[{}]\n[]", "line 2: there is text after the array"),
            ("[{},\n", "line 2: the array is not closed; the file is cut off"),
            ("{}\n{\"a\":[1,", "line 2: an object is not closed; the file is cut off"),
            ("{}\n{\"a\":[1\n{}", "line 3: an array needs a comma or its end here"),
        ] {
            assert_eq!(read(text), Err(reason.to_owned()), "{text}");
        }
        let mut records = JsonRecords::new(&b"{}\n{\"\n\xFF\"}"[..], ReadBudget::new(usize::MAX));
        assert!(records.next().is_ok());
        let error = records.next().err().map(|error| error.reason(Compression::UNCOMPRESSED));
        assert_eq!(error.as_deref(), Some("line 3: it is not UTF-8 text"));
    }
}
