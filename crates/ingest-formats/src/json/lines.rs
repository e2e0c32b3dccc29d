//! NDJSON: one object per line.

use crate::error::{BodyError, CellError, REJECTED_TEXT_BYTES_MAX, RejectedRow, RowPosition};
use crate::json::cursor::JsonCursor;
use crate::rows::{RecordSink, record_text};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

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
