//! CSV: records and their fields, and the columns that they belong to.

mod scanner;

use std::borrow::Cow;
use std::collections::HashSet;

use crate::error::{BodyError, CellError, RejectedRow, RowPosition};
use crate::options::{BodyOptions, CsvSyntax};
use crate::rows::{RecordSink, record_text};
use crate::value::quoted;

pub use scanner::{CsvCharacters, CsvDefect, CsvField, CsvQuotes, CsvScanner};

/// Reads the rows of a body.
#[derive(Debug)]
pub(crate) struct CsvRows {
    syntax: CsvSyntax,
    characters: CsvCharacters,
    scanner: CsvScanner,
    /// The bytes from the beginning of the record on that is not complete.
    buffer: Vec<u8>,
    /// The column of each field, once it is known.
    positions: Option<Vec<usize>>,
    /// The number of the line that the next record begins in.
    line: u64,
    row_bytes_max: usize,
    is_at_start: bool,
}

impl CsvRows {
    /// Fails if the variant of CSV is ambiguous.
    pub(crate) fn new(options: &BodyOptions) -> Result<Self, BodyError> {
        let syntax = options.csv.clone();
        check_syntax(&syntax)?;
        let characters = CsvCharacters::new(syntax.delimiter, syntax.quote);
        Ok(Self {
            scanner: CsvScanner::new(characters),
            characters,
            syntax,
            buffer: Vec::new(),
            positions: None,
            line: 1,
            row_bytes_max: options.limits.row_bytes_max,
            is_at_start: true,
        })
    }

    /// The memory of the record that is not complete.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    pub(crate) fn push(&mut self, bytes: &[u8], rows: &mut impl RecordSink) -> Result<(), BodyError> {
        const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
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
        let consumed = self.read_records(&buffer, rows);
        self.buffer = buffer;
        self.buffer.drain(..consumed?);
        if self.buffer.len() > self.row_bytes_max {
            let (line, max) = (self.line, self.row_bytes_max);
            return Err(BodyError::TooLarge(format!(
                "the record of line {line} has more than {max} bytes; its quotes may not be closed"
            )));
        }
        Ok(())
    }

    /// Reads the last record, which may have no line break.
    pub(crate) fn finish(&mut self, rows: &mut impl RecordSink) -> Result<(), BodyError> {
        let buffer = std::mem::take(&mut self.buffer);
        if !buffer.is_empty() {
            let line = self.line;
            if self.scanner.is_in_quotes() {
                let reason = format!("the body ends within the quotes of a field of the record of line {line}");
                return Err(BodyError::Incomplete(reason));
            }
            if self.syntax.requires_final_line_break {
                return Err(BodyError::Incomplete(format!("the body ends in line {line}, which has no line break")));
            }
            self.scanner.end(buffer.len());
            self.read_record(&buffer, rows)?;
        }
        if self.positions.is_none() && self.syntax.has_header {
            return Err(BodyError::Incomplete(
                "the body is empty; its first line has the names of the columns".to_owned(),
            ));
        }
        Ok(())
    }

    /// Reads all complete records, and returns how many bytes they have.
    fn read_records(&mut self, buffer: &[u8], rows: &mut impl RecordSink) -> Result<usize, BodyError> {
        let mut start = 0;
        loop {
            let rest = buffer.get(start..).unwrap_or_default();
            let Some(length) = self.scanner.scan(rest) else { return Ok(start) };
            self.read_record(rest.get(..length).unwrap_or(rest), rows)?;
            start += length;
        }
    }

    /// Reads one record with its line break. The scanner has its fields.
    fn read_record(&mut self, record: &[u8], rows: &mut impl RecordSink) -> Result<(), BodyError> {
        let line = self.line;
        self.line += memchr::memchr_iter(b'\n', record).count() as u64;
        let appended = self.read_fields(record, line, rows);
        self.scanner.clear();
        appended
    }

    fn read_fields(&mut self, record: &[u8], line: u64, rows: &mut impl RecordSink) -> Result<(), BodyError> {
        if self.positions.is_none() {
            if self.syntax.has_header {
                self.positions = Some(self.read_header(record, line, rows)?);
                return Ok(());
            }
            self.positions = Some(rows.unnamed_columns(self.scanner.field_count()));
        }
        let positions = self.positions.as_deref().unwrap_or_default();
        let fields = self.scanner.fields();
        if positions.len() > 1 && matches!(fields, [field] if field.is_empty()) {
            return Ok(());
        }
        let position = RowPosition::Line(line);
        if record.len() > self.row_bytes_max {
            let max = self.row_bytes_max;
            return Err(BodyError::TooLarge(format!("the record of line {line} has more than {max} bytes")));
        }
        let text = record_text(record).and_then(|text| match self.scanner.defect() {
            Some(defect) => Err(CellError::new(defect.reason())),
            None if self.scanner.field_count() != positions.len() => Err(CellError::new(format!(
                "the record has {}; the file has {} columns",
                counted(self.scanner.field_count(), "field"),
                positions.len()
            ))),
            None => Ok(text),
        });
        let text = match text {
            Ok(text) => text,
            Err(error) => return rows.reject(RejectedRow::new(position, *error, record)),
        };
        let values = fields.iter().zip(positions).map(|(field, position)| {
            let text = field.text(text, &self.characters);
            let is_null = !field.is_quoted() && text == self.syntax.null_text;
            (*position, (!is_null).then_some(text))
        });
        let appended = rows.append_fields(values);
        rows.record(position, record, appended)
    }

    /// The position of the column of each field.
    fn read_header(&mut self, record: &[u8], line: u64, rows: &mut impl RecordSink) -> Result<Vec<usize>, BodyError> {
        let malformed = |reason: &str| BodyError::Malformed(format!("line {line}, the names of the columns: {reason}"));
        let text = record_text(record).map_err(|error| malformed(&error.reason))?;
        if let Some(defect) = self.scanner.defect() {
            return Err(malformed(defect.reason()));
        }
        let names: Vec<Cow<'_, str>> =
            self.scanner.fields().iter().map(|field| field.text(text, &self.characters)).collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let mut seen = HashSet::new();
        for name in &names {
            if name.is_empty() {
                return Err(malformed("one of them is empty"));
            }
            if !seen.insert(name) {
                return Err(malformed(&format!("\"{name}\" occurs twice")));
            }
        }
        if let ([name], [field]) = (names.as_slice(), self.scanner.fields())
            && let Some(delimiter) = probable_delimiter(name).filter(|_| !field.is_quoted() && !rows.has_column(name))
        {
            // No name has a tab.
            let alternative = if delimiter == b'\t' { "" } else { ", or enclose the name in quotes" };
            return Err(malformed(&format!(
                "{} is one name, because the delimiter is {}; set delimiter to {}{alternative}",
                quoted(name),
                delimiter_name(self.syntax.delimiter),
                delimiter_name(delimiter)
            )));
        }
        rows.named_columns(line, &names)
    }
}

/// The delimiter that names were probably separated by, if they were read as one name.
fn probable_delimiter(name: &str) -> Option<u8> {
    [b',', b';', b'\t', b'|'].into_iter().find(|delimiter| name.as_bytes().contains(delimiter))
}

fn delimiter_name(delimiter: u8) -> String {
    if delimiter == b'\t' { "tab".to_owned() } else { format!("\"{}\"", char::from(delimiter)) }
}

fn check_syntax(syntax: &CsvSyntax) -> Result<(), BodyError> {
    let is_usable = |byte: u8| byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0);
    if !is_usable(syntax.delimiter) || !is_usable(syntax.quote) || syntax.delimiter == syntax.quote {
        return Err(BodyError::Options(
            "the delimiter and the quote of CSV are two different ASCII characters, and no line breaks".to_owned(),
        ));
    }
    let is_special = |byte: u8| byte == syntax.delimiter || byte == syntax.quote || byte == b'\n' || byte == b'\r';
    if syntax.null_text.bytes().any(is_special) {
        return Err(BodyError::Options(
            "the text for null in CSV has neither delimiters nor quotes nor line breaks".to_owned(),
        ));
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
