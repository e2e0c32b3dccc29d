//! A JSON document: an array of objects, or one object.

use super::scanner::JsonScanner;
use crate::error::{BodyError, RowPosition};
use crate::rows::{RecordSink, record_text};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

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
            if self.buffer.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&self.buffer) {
                return Ok(());
            }
            self.is_at_start = false;
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.drain(..BYTE_ORDER_MARK.len());
            }
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
