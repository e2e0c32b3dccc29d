//! Where the records of CSV and their fields begin and end.

/// A field within its record, without its quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_quoted: bool,
    pub(super) has_doubled_quotes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote within quotes: the end of the field, or the first of two.
    Quote,
    /// After the closing quote and a carriage return.
    QuoteReturn,
    /// After the closing quote and something that may not follow it.
    AfterQuote,
}

/// Scans one record at a time. It continues where the bytes ended.
#[derive(Debug)]
pub(super) struct RecordScanner {
    delimiter: u8,
    quote: u8,
    state: ScanState,
    /// The next byte of the record.
    position: usize,
    field: FieldSpan,
    fields: Vec<FieldSpan>,
    defect: Option<&'static str>,
}

const EMPTY_FIELD: FieldSpan = FieldSpan { start: 0, end: 0, is_quoted: false, has_doubled_quotes: false };
const QUOTE_WITHIN_FIELD: &str =
    "a quote is within a field that has no quotes around it; enclose the field in quotes and double the one within";
const TEXT_AFTER_QUOTE: &str = "there is text after the closing quote of a field; a quote within quotes is doubled";
const BARE_RETURN: &str = "a carriage return without line feed is in a field that has no quotes around it";

impl FieldSpan {
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end && !self.is_quoted
    }
}

impl RecordScanner {
    pub(super) fn new(delimiter: u8, quote: u8) -> Self {
        Self {
            delimiter,
            quote,
            state: ScanState::FieldStart,
            position: 0,
            field: EMPTY_FIELD,
            fields: Vec::new(),
            defect: None,
        }
    }

    pub(super) fn fields(&self) -> &[FieldSpan] {
        &self.fields
    }

    /// What is wrong with the quotes of the record.
    pub(super) fn defect(&self) -> Option<&'static str> {
        self.defect
    }

    pub(super) fn is_in_quotes(&self) -> bool {
        self.state == ScanState::Quoted
    }

    /// Begins the next record.
    pub(super) fn clear(&mut self) {
        self.fields.clear();
        self.defect = None;
        self.position = 0;
        self.field = EMPTY_FIELD;
        self.state = ScanState::FieldStart;
    }

    /// Scans the record at the beginning of `bytes`, from where the last scan ended. Returns its length with its line
    /// break, or nothing if it is not complete.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(byte) = bytes.get(self.position).copied() {
            match self.state {
                ScanState::FieldStart => {
                    if byte == self.quote {
                        self.position += 1;
                        self.state = ScanState::Quoted;
                    } else {
                        self.state = ScanState::Plain;
                    }
                    self.field = FieldSpan { start: self.position, is_quoted: byte == self.quote, ..EMPTY_FIELD };
                }
                ScanState::Plain => {
                    if self.scan_plain(bytes)? {
                        return Some(self.position);
                    }
                }
                ScanState::Quoted => {
                    let Some(length) = memchr::memchr(self.quote, bytes.get(self.position..).unwrap_or_default())
                    else {
                        self.position = bytes.len();
                        return None;
                    };
                    self.position += length + 1;
                    self.field.end = self.position - 1;
                    self.state = ScanState::Quote;
                }
                _ => {
                    if self.scan_after_quote(byte) {
                        return Some(self.position);
                    }
                }
            }
        }
        None
    }

    /// Scans up to the next special byte of a field without quotes. Returns whether it ends the record, or nothing if there is none.
    #[inline]
    fn scan_plain(&mut self, bytes: &[u8]) -> Option<bool> {
        let rest = bytes.get(self.position..).unwrap_or_default();
        let is_special = |byte: &u8| *byte == self.delimiter || *byte == b'\n' || *byte == self.quote || *byte == b'\r';
        let Some(length) = rest.iter().position(is_special) else {
            self.position = bytes.len();
            return None;
        };
        let end = self.position + length;
        match rest.get(length).copied() {
            Some(b'\n') => {
                self.position = end + 1;
                self.end_field(end);
                Some(true)
            }
            Some(b'\r') => {
                match rest.get(length + 1) {
                    None => {
                        self.position = end;
                        return None;
                    }
                    Some(b'\n') => {
                        self.position = end + 2;
                        self.end_field(end);
                        return Some(true);
                    }
                    Some(_) => self.defect = self.defect.or(Some(BARE_RETURN)),
                }
                self.position = end + 1;
                Some(false)
            }
            Some(byte) if byte == self.delimiter => {
                self.position = end + 1;
                self.end_field(end);
                Some(false)
            }
            _ => {
                self.defect = self.defect.or(Some(QUOTE_WITHIN_FIELD));
                self.position = end + 1;
                Some(false)
            }
        }
    }

    /// Scans one byte after a quote that may be the closing one. Returns whether it ends the record.
    fn scan_after_quote(&mut self, byte: u8) -> bool {
        self.position += 1;
        let end = self.field.end;
        match (self.state, byte) {
            (ScanState::Quote, byte) if byte == self.quote => {
                self.field.has_doubled_quotes = true;
                self.state = ScanState::Quoted;
            }
            (_, b'\n') => {
                self.end_field(end);
                return true;
            }
            (_, byte) if byte == self.delimiter => {
                if self.state == ScanState::QuoteReturn {
                    self.defect = self.defect.or(Some(TEXT_AFTER_QUOTE));
                }
                self.end_field(end);
            }
            (ScanState::Quote, b'\r') => self.state = ScanState::QuoteReturn,
            _ => {
                self.defect = self.defect.or(Some(TEXT_AFTER_QUOTE));
                self.state = ScanState::AfterQuote;
            }
        }
        false
    }

    /// Ends the last record, which has no line break.
    pub(super) fn end(&mut self, length: usize) {
        match self.state {
            ScanState::FieldStart => {
                self.field = FieldSpan { start: length, ..EMPTY_FIELD };
                self.end_field(length);
            }
            // A carriage return at the end may be half of a line break.
            ScanState::Plain => {
                if self.position < length {
                    self.defect = self.defect.or(Some(BARE_RETURN));
                }
                self.end_field(length);
            }
            ScanState::QuoteReturn => {
                self.defect = self.defect.or(Some(TEXT_AFTER_QUOTE));
                self.end_field(self.field.end);
            }
            ScanState::Quoted | ScanState::Quote | ScanState::AfterQuote => self.end_field(self.field.end),
        }
    }

    fn end_field(&mut self, end: usize) {
        self.field.end = end;
        self.fields.push(self.field);
        self.state = ScanState::FieldStart;
    }
}
