//! CSV: where records and their fields begin and end, and the columns that they belong to.
//!
//! The crate `csv-core` accepts what must be refused: it joins text after a closing quote, closes quotes that are open, and ends
//! records at bare carriage returns.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::error::{BodyError, CellError, RejectedRow, RowPosition};
use crate::options::{BodyOptions, CsvSyntax};
use crate::rows::{RecordSink, record_text, skip_byte_order_mark};
use crate::value::quoted;

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
        self.buffer.extend_from_slice(bytes);
        if self.is_at_start {
            if !skip_byte_order_mark(&mut self.buffer) {
                return Ok(());
            }
            self.is_at_start = false;
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

/// The characters that separate and enclose fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CsvCharacters {
    /// Separates fields.
    pub delimiter: u8,
    /// Encloses fields; doubled within them.
    pub quote: u8,
    /// Within quotes, takes the meaning from a quote behind it, or from itself.
    pub escape: Option<u8>,
    /// Ends a record: `\n`, which may follow a carriage return, or `\r` in files of old systems.
    pub line_break: u8,
    /// Where quotes may be.
    pub quotes: CsvQuotes,
    /// Whether blanks at the beginning of a field, and behind its closing quote, are no part of it.
    pub skips_blanks: bool,
}

impl CsvCharacters {
    /// Those of RFC 4180, with this delimiter and this quote.
    pub fn new(delimiter: u8, quote: u8) -> Self {
        Self { delimiter, quote, escape: None, line_break: b'\n', quotes: CsvQuotes::Strict, skips_blanks: false }
    }

    /// Whether `byte` is a blank that is no part of a field where it stands.
    fn is_skipped(&self, byte: u8) -> bool {
        self.skips_blanks && matches!(byte, b' ' | b'\t') && byte != self.delimiter
    }
}

/// Where quotes may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CsvQuotes {
    /// Around a field, and doubled within it.
    Strict,
    /// In addition within a field that has no quotes around it, where they are characters like others: `5" pipe`.
    WithinFields,
    /// In addition before text, which belongs to the field up to the next delimiter or line break. If the quotes enclose a line
    /// break, such text is a defect, because one of them is probably that of another field.
    Anywhere,
    /// Everywhere, as characters like others. They enclose nothing.
    Characters,
}

/// What is wrong with the form of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvDefect {
    /// A quote within a field without quotes.
    QuoteWithinField,
    /// Text after the closing quote of a field.
    TextAfterQuote,
    /// Text after the closing quote of a field that has line breaks within its quotes.
    TextAfterQuotedLines,
    /// A carriage return that is neither part of a line break nor within quotes.
    BareReturn,
}

impl CsvDefect {
    /// What is wrong, and how it is written right.
    pub fn reason(self) -> &'static str {
        match self {
            Self::QuoteWithinField => {
                "a quote is within a field that has no quotes around it; enclose the field in quotes and double the one \
                 within"
            }
            Self::TextAfterQuote => {
                "there is text after the closing quote of a field; a quote within quotes is doubled"
            }
            Self::TextAfterQuotedLines => {
                "there is text after the closing quote of a field of several lines; one of its quotes may not be closed"
            }
            Self::BareReturn => "a carriage return without line feed is in a field that has no quotes around it",
        }
    }
}

/// A field within its record, without its quotes.
#[derive(Debug, Clone, Copy)]
pub struct CsvField {
    start: usize,
    end: usize,
    is_quoted: bool,
    /// Whether characters within the field stand for others, or for none.
    is_escaped: bool,
}

impl CsvField {
    const EMPTY: Self = Self { start: 0, end: 0, is_quoted: false, is_escaped: false };

    /// Whether the field has no character and no quotes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end && !self.is_quoted
    }

    /// Whether quotes enclose the field.
    pub fn is_quoted(&self) -> bool {
        self.is_quoted
    }

    /// The text of the field of `record`.
    pub fn text<'r>(&self, record: &'r str, characters: &CsvCharacters) -> Cow<'r, str> {
        let text = record.get(self.start..self.end).unwrap_or_default();
        if self.is_escaped { Cow::Owned(unescape(text, characters)) } else { Cow::Borrowed(text) }
    }
}

/// The text that `quoted` stands for, which begins after an opening quote.
fn unescape(quoted: &str, characters: &CsvCharacters) -> String {
    let quote = char::from(characters.quote);
    let escape = characters.escape.map(char::from);
    let mut text = String::with_capacity(quoted.len());
    let mut rest = quoted.chars();
    while let Some(character) = rest.next() {
        let next = rest.clone().next();
        if Some(character) == escape && next.is_some_and(|next| next == quote || Some(next) == escape) {
            text.extend(rest.next());
        } else if character != quote {
            text.push(character);
        } else if next == Some(quote) {
            text.extend(rest.next());
        } else {
            // The closing quote. Whatever follows it is taken as it is.
            text.push_str(rest.as_str());
            break;
        }
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    FieldStart,
    Plain,
    Quoted,
    /// After the escape within quotes.
    Escape,
    /// After a quote within quotes: the end of the field, or the first of two.
    Quote,
    /// After the closing quote and a skipped blank.
    QuoteBlank,
    /// After the closing quote and a carriage return.
    QuoteReturn,
    /// After the closing quote and something that may not follow it, whose last character may be a carriage return.
    AfterQuote {
        ends_in_return: bool,
    },
}

/// Scans one record at a time. It continues where the bytes ended.
#[derive(Debug)]
pub struct CsvScanner {
    characters: CsvCharacters,
    /// By byte, whether it may have a meaning in a field without quotes.
    is_special: [bool; 256],
    state: ScanState,
    /// The next byte of the record.
    position: usize,
    field: CsvField,
    fields: Vec<CsvField>,
    /// The number of fields beyond [`FIELDS_MAX`].
    fields_beyond: usize,
    defect: Option<CsvDefect>,
}

/// Fields of a record that are kept: a line of delimiters has millions.
const FIELDS_MAX: usize = 1 << 16;

impl CsvScanner {
    /// A scanner at the beginning of a record.
    pub fn new(characters: CsvCharacters) -> Self {
        let (state, field) = (ScanState::FieldStart, CsvField::EMPTY);
        let mut is_special = [false; 256];
        for byte in [characters.delimiter, characters.line_break, b'\r'] {
            is_special[usize::from(byte)] = true;
        }
        is_special[usize::from(characters.quote)] |= characters.quotes != CsvQuotes::Characters;
        Self { characters, is_special, state, position: 0, field, fields: Vec::new(), fields_beyond: 0, defect: None }
    }

    /// The fields of the record, at most 65,536.
    pub fn fields(&self) -> &[CsvField] {
        &self.fields
    }

    /// The number of fields of the record.
    pub fn field_count(&self) -> usize {
        self.fields.len() + self.fields_beyond
    }

    /// What is wrong with the record: the first defect.
    pub fn defect(&self) -> Option<CsvDefect> {
        self.defect
    }

    /// Whether the scan is within quotes, which must still be closed.
    pub fn is_in_quotes(&self) -> bool {
        matches!(self.state, ScanState::Quoted | ScanState::Escape)
    }

    /// Begins the next record.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.fields_beyond = 0;
        self.defect = None;
        self.position = 0;
        self.field = CsvField::EMPTY;
        self.state = ScanState::FieldStart;
    }

    /// Scans the record at the beginning of `bytes`, from where the last scan ended. Returns its length with its line
    /// break, or nothing if it is not complete.
    pub fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(byte) = bytes.get(self.position).copied() {
            match self.state {
                ScanState::FieldStart if self.characters.is_skipped(byte) => self.position += 1,
                ScanState::FieldStart => {
                    let is_quoted = byte == self.characters.quote && self.characters.quotes != CsvQuotes::Characters;
                    self.position += usize::from(is_quoted);
                    self.state = if is_quoted { ScanState::Quoted } else { ScanState::Plain };
                    self.field = CsvField { start: self.position, is_quoted, ..CsvField::EMPTY };
                }
                ScanState::Plain => {
                    if self.scan_plain(bytes)? {
                        return Some(self.position);
                    }
                }
                ScanState::Quoted => self.scan_quoted(bytes)?,
                ScanState::Escape => {
                    self.position += 1;
                    self.state = ScanState::Quoted;
                }
                ScanState::Quote | ScanState::QuoteBlank | ScanState::QuoteReturn | ScanState::AfterQuote { .. } => {
                    if self.scan_after_quote(bytes, byte) {
                        return Some(self.position);
                    }
                }
            }
        }
        None
    }

    /// Scans up to the next special byte of a field without quotes. Returns whether it ends the record, or nothing if there
    /// is none.
    #[inline]
    fn scan_plain(&mut self, bytes: &[u8]) -> Option<bool> {
        let CsvCharacters { delimiter, line_break, quotes, .. } = self.characters;
        let rest = bytes.get(self.position..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| self.is_special[usize::from(*byte)]) else {
            self.position = bytes.len();
            return None;
        };
        let end = self.position + length;
        match rest.get(length).copied() {
            Some(byte) if byte == line_break => {
                self.position = end + 1;
                self.end_field(end);
                return Some(true);
            }
            Some(byte) if byte == delimiter => {
                self.position = end + 1;
                self.end_field(end);
                return Some(false);
            }
            Some(b'\r') => match rest.get(length + 1) {
                None => {
                    self.position = end;
                    return None;
                }
                Some(b'\n') => {
                    self.position = end + 2;
                    self.end_field(end);
                    return Some(true);
                }
                Some(_) if quotes != CsvQuotes::Anywhere => self.add_defect(CsvDefect::BareReturn),
                Some(_) => {}
            },
            _ if quotes == CsvQuotes::Strict => self.add_defect(CsvDefect::QuoteWithinField),
            _ => {}
        }
        self.position = end + 1;
        Some(false)
    }

    /// Scans up to the next quote or escape of a field in quotes, or nothing if there is none.
    fn scan_quoted(&mut self, bytes: &[u8]) -> Option<()> {
        let rest = bytes.get(self.position..).unwrap_or_default();
        let quote = self.characters.quote;
        let found = match self.characters.escape {
            Some(escape) => memchr::memchr2(quote, escape, rest),
            None => memchr::memchr(quote, rest),
        };
        let Some(length) = found else {
            self.position = bytes.len();
            return None;
        };
        self.field.end = self.position + length;
        self.position += length + 1;
        self.state = if rest.get(length) == Some(&quote) { ScanState::Quote } else { ScanState::Escape };
        self.field.is_escaped |= self.state == ScanState::Escape;
        Some(())
    }

    /// Scans `byte` of `bytes`, which is after a quote that may be the closing one. Returns whether it ends the record.
    fn scan_after_quote(&mut self, bytes: &[u8], byte: u8) -> bool {
        let CsvCharacters { delimiter, quote, line_break, .. } = self.characters;
        let is_after_quote = matches!(self.state, ScanState::Quote | ScanState::QuoteBlank);
        self.position += 1;
        if self.state == ScanState::Quote && byte == quote {
            self.field.is_escaped = true;
            self.state = ScanState::Quoted;
        } else if byte == line_break || byte == delimiter {
            if self.state == ScanState::QuoteReturn && byte == delimiter {
                self.add_text_after_quote(bytes, b'\r');
            }
            self.end_field_after_quote(self.position - 1, byte == line_break);
            return byte == line_break;
        } else if is_after_quote && byte == b'\r' {
            self.state = ScanState::QuoteReturn;
        } else if is_after_quote && self.characters.is_skipped(byte) {
            self.state = ScanState::QuoteBlank;
        } else {
            self.add_text_after_quote(bytes, byte);
        }
        false
    }

    fn add_text_after_quote(&mut self, bytes: &[u8], byte: u8) {
        let CsvCharacters { line_break, quotes, .. } = self.characters;
        if !matches!(self.state, ScanState::AfterQuote { .. }) {
            let quoted = bytes.get(self.field.start..self.field.end).unwrap_or_default();
            if memchr::memchr(line_break, quoted).is_some() {
                self.add_defect(CsvDefect::TextAfterQuotedLines);
            } else if quotes != CsvQuotes::Anywhere {
                self.add_defect(CsvDefect::TextAfterQuote);
            }
            self.field.is_escaped = true;
        }
        self.state = ScanState::AfterQuote { ends_in_return: byte == b'\r' };
    }

    fn add_defect(&mut self, defect: CsvDefect) {
        self.defect = self.defect.or(Some(defect));
    }

    /// Ends the last record, which has no line break, at its `length`.
    pub fn end(&mut self, length: usize) {
        match self.state {
            ScanState::FieldStart => {
                self.field = CsvField { start: length, ..CsvField::EMPTY };
                self.end_field(length);
            }
            // A carriage return at the end is a line break whose second half is missing.
            ScanState::Plain => {
                let is_cut = self.position < length;
                if is_cut && self.characters.quotes == CsvQuotes::Strict {
                    self.add_defect(CsvDefect::BareReturn);
                }
                self.end_field(length - usize::from(is_cut));
            }
            ScanState::Quoted | ScanState::Escape => self.end_field(length),
            ScanState::Quote | ScanState::QuoteBlank | ScanState::QuoteReturn | ScanState::AfterQuote { .. } => {
                // As above.
                if self.state == ScanState::QuoteReturn && self.characters.quotes == CsvQuotes::Strict {
                    self.add_defect(CsvDefect::TextAfterQuote);
                }
                self.end_field_after_quote(length, false);
            }
        }
    }

    /// Ends a field that has a closing quote, and text after it if quotes may be anywhere.
    fn end_field_after_quote(&mut self, end: usize, is_at_line_break: bool) {
        let end = match self.state {
            ScanState::AfterQuote { ends_in_return } if self.characters.quotes == CsvQuotes::Anywhere => {
                end - usize::from(ends_in_return && is_at_line_break)
            }
            _ => self.field.end,
        };
        self.end_field(end);
    }

    fn end_field(&mut self, end: usize) {
        self.field.end = end;
        match self.fields.len() < FIELDS_MAX {
            true => self.fields.push(self.field),
            false => self.fields_beyond += 1,
        }
        self.state = ScanState::FieldStart;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of each record of `text`, and its first defect.
    fn records(text: &str, characters: CsvCharacters) -> Vec<(Vec<String>, Option<CsvDefect>)> {
        let mut scanner = CsvScanner::new(characters);
        let (mut found, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let length = scanner.scan(rest.as_bytes()).unwrap_or_else(|| {
                scanner.end(rest.len());
                rest.len()
            });
            let fields = scanner.fields().iter().map(|field| field.text(rest, &characters).into_owned());
            found.push((fields.collect(), scanner.defect()));
            scanner.clear();
            rest = &rest[length..];
        }
        found
    }

    fn fields(text: &str, characters: CsvCharacters) -> Vec<Vec<String>> {
        let records = records(text, characters);
        assert!(records.iter().all(|(_, defect)| defect.is_none()), "{records:?}");
        records.into_iter().map(|(fields, _)| fields).collect()
    }

    #[test]
    fn quotes_of_files_are_as_strict_as_declared() {
        let strict = CsvCharacters::new(b',', b'"');
        let within = CsvCharacters { quotes: CsvQuotes::WithinFields, ..strict };
        let anywhere = CsvCharacters { quotes: CsvQuotes::Anywhere, ..strict };
        let defect = |text, characters| records(text, characters)[0].1;
        assert_eq!(defect("5\" pipe,b\n", strict), Some(CsvDefect::QuoteWithinField));
        assert_eq!(fields("5\" pipe,b\n", within), [["5\" pipe", "b"]]);
        for text in ["\"x\" y,b\n", "\"p\"q\"r\",b\n", "\"x\"\ry,b\n"] {
            assert_eq!(defect(text, within), Some(CsvDefect::TextAfterQuote), "{text}");
        }
        let text = "\"x\" y,\"b\"c\r\n\"p\"q\"r\",\"a\"\"b\"c\n\"open,\n";
        assert_eq!(fields(text, anywhere), [vec!["x y", "bc"], vec!["pq\"r\"", "a\"bc"], vec!["open,\n"]]);
        // The first quote was not closed, or the second one not opened.
        for characters in [strict, within, anywhere] {
            assert_eq!(defect("\"a\nb,\"c\n", characters), Some(CsvDefect::TextAfterQuotedLines));
        }
        let none = CsvCharacters { quotes: CsvQuotes::Characters, ..strict };
        assert_eq!(fields("\"a,b\"\n\"c\n", none), [vec!["\"a", "b\""], vec!["\"c"]]);
    }

    #[test]
    fn blanks_around_quotes_are_skipped_if_declared() {
        let skipping = CsvCharacters { skips_blanks: true, ..CsvCharacters::new(b',', b'"') };
        let text = "1, \"x, y\" ,\t3 \r\n \"a\"\"b\" \r\n,  ";
        assert_eq!(fields(text, skipping), [vec!["1", "x, y", "3 "], vec!["a\"b"], vec!["", ""]]);
        assert_eq!(records("\"x\" y\n", skipping)[0].1, Some(CsvDefect::TextAfterQuote));
        let tabs = CsvCharacters { delimiter: b'\t', ..skipping };
        assert_eq!(fields("a\t\t \"b\"\t\n", tabs), [["a", "", "b", ""]]);
    }

    #[test]
    fn escapes_and_old_line_breaks() {
        let escaped = CsvCharacters { escape: Some(b'\\'), ..CsvCharacters::new(b',', b'"') };
        assert_eq!(fields("\"a\\\"b\",\"c\\\\\",\"d\\n\"\"\"\n", escaped), [["a\"b", "c\\", "d\\n\""]]);
        let old = CsvCharacters { line_break: b'\r', ..CsvCharacters::new(b',', b'"') };
        assert_eq!(fields("a,b\r\"1\r\n2\",3\r", old), [["a", "b"], ["1\r\n2", "3"]]);
        let new = CsvCharacters::new(b',', b'"');
        assert_eq!(records("a\rb\n", new)[0].1, Some(CsvDefect::BareReturn));
    }
}
