//! Reads the records of a CSV text one by one.

use std::borrow::Cow;
use std::io::{self, Read};

use tidegate_ingest_formats::{CsvCharacters, CsvDefect, CsvField, CsvQuotes, CsvScanner};

use super::encoding::TextEncoding;
use super::file_kind::Compression;
use super::record_buffer::RecordBuffer;
use super::table_options::suggest_yaml;
use super::text_reader::{ReadBudget, read_error_reason};
use super::text_value::is_year;

/// The records of a text. Empty lines are none, and neither are lines that begin with a comment character.
pub(crate) struct CsvRecords<R> {
    buffer: RecordBuffer<R>,
    characters: CsvCharacters,
    comment: Option<u8>,
    scanner: CsvScanner,
    /// The length of the record that the buffer begins with.
    length: usize,
    /// The line in which the next record begins, from 1.
    line: u64,
}

/// A record.
pub(crate) struct CsvRecord<'r> {
    text: &'r str,
    fields: &'r [CsvField],
    field_count: usize,
    characters: &'r CsvCharacters,
    /// The line in which it begins, from 1.
    pub(crate) line: u64,
}

impl<'r> CsvRecord<'r> {
    /// The number of its bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The number of fields.
    pub(crate) fn len(&self) -> usize {
        self.field_count
    }

    /// The text of a field.
    pub(crate) fn field(&self, position: usize) -> Option<Cow<'r, str>> {
        Some(self.fields.get(position)?.text(self.text, self.characters))
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = Cow<'r, str>> {
        let (text, characters) = (self.text, self.characters);
        self.fields.iter().map(move |field| field.text(text, characters))
    }

    /// Whether the record ends with a line break, and not where the text ends.
    pub(crate) fn has_line_break(&self) -> bool {
        self.text.ends_with(['\n', '\r'])
    }
}

/// Why records cannot be read.
#[derive(Debug)]
pub(crate) enum CsvError {
    /// The bytes cannot be read.
    Read(io::Error),
    /// A record has no valid form.
    Form {
        /// The line in which it begins, from 1.
        line: u64,
        problem: FormProblem,
    },
}

/// What is wrong with the form of a record.
#[derive(Debug)]
pub(crate) enum FormProblem {
    /// Its quotes.
    Defect {
        defect: CsvDefect,
        /// Whether backslashes stand before quotes, which nothing declares.
        has_escapes: bool,
    },
    /// The quotes of a field are not closed before the text ends.
    OpenQuotes {
        /// As above.
        has_escapes: bool,
        /// Whether the record has more bytes than it may have, so that the end was not read.
        is_too_long: bool,
    },
    /// It is not UTF-8, and probably in the encoding with this name.
    NoText { probable: Option<&'static str> },
    /// It has another number of fields than there are columns.
    FieldCount {
        expected: usize,
        found: usize,
        /// Whether quotes in it, or in the header, come after a blank.
        has_blank_before_quote: bool,
        /// Whether values are after the last column.
        has_surplus_values: bool,
        /// Whether decimal commas that no quotes enclose may be the reason.
        has_split_numbers: bool,
    },
}

impl CsvError {
    /// The reason, for the operator.
    pub(crate) fn reason(&self, compression: Compression) -> String {
        match self {
            Self::Read(error) => read_error_reason(error, compression),
            Self::Form { line, problem } => match problem {
                FormProblem::Defect { defect, .. } => format!("line {line}: {}", defect.reason()),
                FormProblem::OpenQuotes { is_too_long, .. } => {
                    let end = match is_too_long {
                        true => "in as many bytes as a row may have",
                        false => "until the end of the file",
                    };
                    format!("line {line}: the quotes of a field are not closed {end}")
                }
                FormProblem::NoText { probable: Some(_) } => format!("it is not UTF-8 text: line {line}"),
                FormProblem::NoText { probable: None } => {
                    format!("it is not UTF-8 text: line {line}; correct the line, or convert the file to UTF-8")
                }
                FormProblem::FieldCount { expected, found, has_blank_before_quote, has_split_numbers, .. } => {
                    let detail = match (has_blank_before_quote, has_split_numbers) {
                        (true, _) => "; quotes after a blank do not enclose a field",
                        (false, true) => {
                            "; if commas in numbers are decimal, enclose these numbers in quotes, or write the file with \
                             another delimiter, such as ;"
                        }
                        (false, false) => "",
                    };
                    format!("incorrect number of fields for line {line}, expected {expected} got {found}{detail}")
                }
            },
        }
    }

    /// The option with which the file can be read.
    pub(crate) fn option(&self) -> Option<CsvAdvice> {
        let Self::Form { problem, .. } = self else { return None };
        let always = |option: &str| CsvAdvice { condition: "", option: option.to_owned() };
        let without_quotes = CsvAdvice {
            condition: "close the quotes; or, if no quotes in the file enclose values, ",
            option: "quotes: none".to_owned(),
        };
        Some(match problem {
            FormProblem::Defect { has_escapes: true, .. } | FormProblem::OpenQuotes { has_escapes: true, .. } => {
                always("escape: '\\'")
            }
            FormProblem::Defect { defect: CsvDefect::BareReturn, .. } => return None,
            FormProblem::Defect { defect: CsvDefect::TextAfterQuotedLines, .. } | FormProblem::OpenQuotes { .. } => {
                without_quotes
            }
            FormProblem::Defect { .. } => always("quotes: lenient"),
            FormProblem::NoText { probable } => CsvAdvice {
                condition: "if the whole file is in this encoding, ",
                option: format!("encoding: {}", (*probable)?.to_ascii_lowercase()),
            },
            FormProblem::FieldCount { has_blank_before_quote: true, .. } => always("skip_blanks: true"),
            // The options would cut the numbers, or move their fractions into other columns.
            FormProblem::FieldCount { has_split_numbers: true, .. } => return None,
            FormProblem::FieldCount { expected, found, .. } if found < expected => always("ragged: fill"),
            FormProblem::FieldCount { has_surplus_values: true, .. } => CsvAdvice {
                condition: "enclose values that contain the delimiter in quotes; or, to drop what is after the last \
                            column, ",
                option: "ragged: trim".to_owned(),
            },
            FormProblem::FieldCount { .. } => {
                CsvAdvice { condition: "to drop what is after the last column, ", option: "ragged: trim".to_owned() }
            }
        })
    }
}

/// An option that reads a file.
#[derive(Debug)]
pub(crate) struct CsvAdvice {
    /// When it does so, or what else it does; or nothing.
    pub(crate) condition: &'static str,
    /// The option, as it is written in the configuration.
    pub(crate) option: String,
}

impl CsvAdvice {
    /// What the operator can do about the file at `location`.
    pub(crate) fn for_file(&self, location: &str) -> String {
        format!("{}write {}", self.condition, suggest_yaml(location, &self.option))
    }
}

impl<R: Read> CsvRecords<R> {
    /// The records of `text`, before which `lines_before` lines of the file were skipped.
    pub(crate) fn new(
        text: R,
        budget: ReadBudget,
        characters: CsvCharacters,
        comment: Option<u8>,
        lines_before: usize,
    ) -> Self {
        Self {
            buffer: RecordBuffer::new(text, budget),
            characters,
            comment,
            scanner: CsvScanner::new(characters),
            length: 0,
            line: lines_before as u64 + 1,
        }
    }

    /// The next record. After bytes that cannot be read there are no more.
    pub(crate) fn next(&mut self) -> Result<Option<CsvRecord<'_>>, CsvError> {
        let line = loop {
            self.buffer.advance(std::mem::take(&mut self.length));
            self.scanner.clear();
            let found = self.scan_record().inspect_err(|_| self.buffer.close());
            let Some(length) = found? else { return Ok(None) };
            self.length = length;
            let line = self.line;
            self.line += memchr::memchr_iter(self.characters.line_break, self.record()).count() as u64;
            if !matches!(self.scanner.fields(), [field] if field.is_empty()) {
                break line;
            }
        };
        let form = |problem| CsvError::Form { line, problem };
        if let Some(defect) = self.scanner.defect() {
            return Err(form(FormProblem::Defect { defect, has_escapes: self.has_escapes(self.record()) }));
        }
        let text = std::str::from_utf8(self.record()).map_err(|_| {
            let probable = TextEncoding::recognise(self.record()).ok().filter(|found| found.is_guessed());
            form(FormProblem::NoText { probable: probable.map(TextEncoding::name) })
        })?;
        let (fields, field_count) = (self.scanner.fields(), self.scanner.field_count());
        Ok(Some(CsvRecord { text, fields, field_count, characters: &self.characters, line }))
    }

    /// The error of the record that was begun, which is all that is left.
    fn open_quotes_error(&self, is_too_long: bool) -> CsvError {
        let has_escapes = self.has_escapes(self.buffer.rest());
        CsvError::Form { line: self.line, problem: FormProblem::OpenQuotes { has_escapes, is_too_long } }
    }

    /// Whether backslashes stand before quotes in `record`, and no escape is declared.
    fn has_escapes(&self, record: &[u8]) -> bool {
        self.characters.escape.is_none() && memchr::memmem::find(record, b"\\\"").is_some()
    }

    fn record(&self) -> &[u8] {
        self.buffer.rest().get(..self.length).unwrap_or_default()
    }

    /// Scans the record at the start; returns its length.
    fn scan_record(&mut self) -> Result<Option<usize>, CsvError> {
        let mut has_begun = false;
        loop {
            let rest = self.buffer.rest();
            if !has_begun && self.comment.is_some() && rest.first().copied() == self.comment {
                match memchr::memchr(self.characters.line_break, rest) {
                    Some(length) => {
                        self.buffer.advance(length + 1);
                        self.line += 1;
                        continue;
                    }
                    None if self.buffer.is_at_end() => return Ok(None),
                    None => {}
                }
            } else if !rest.is_empty() {
                has_begun = true;
                if let Some(length) = self.scanner.scan(rest) {
                    return Ok(Some(length));
                }
            }
            if !self.buffer.is_at_end() {
                match self.buffer.fill() {
                    Ok(()) => continue,
                    Err(error) if error.kind() == io::ErrorKind::FileTooLarge && self.scanner.is_in_quotes() => {
                        return Err(self.open_quotes_error(true));
                    }
                    Err(error) => return Err(CsvError::Read(error)),
                }
            }
            let length = rest.len();
            if length == 0 {
                return Ok(None);
            }
            if self.scanner.is_in_quotes() {
                return Err(self.open_quotes_error(false));
            }
            self.scanner.end(length);
            return Ok(Some(length));
        }
    }
}

/// The error of a record with another number of fields than `expected`. `header` are the names of the columns as they stand
/// in the file, if they are known.
pub(crate) fn field_count_error(record: &CsvRecord<'_>, expected: usize, header: &[String]) -> CsvError {
    let quote = char::from(record.characters.quote);
    let has_blank =
        |text: &str| text.starts_with([' ', '\t']) && text.trim_start_matches([' ', '\t']).starts_with(quote);
    let has_blank_before_quote = record.characters.quotes != CsvQuotes::Characters
        && (record.fields().any(|field| has_blank(&field)) || header.iter().any(|name| has_blank(name)));
    let found = record.len();
    let has_surplus_values = record.fields().skip(expected).any(|field| !field.trim().is_empty());
    // Without names, the first row is taken for the header.
    let split = match found > expected {
        true if has_surplus_values => count_split_numbers(record.fields()),
        true => 0,
        false => count_split_numbers(header.iter().map(|name| Cow::from(name.as_str()))),
    };
    let has_split_numbers = record.characters.delimiter == b',' && split > 0 && split >= found.abs_diff(expected);
    let problem =
        FormProblem::FieldCount { expected, found, has_blank_before_quote, has_surplus_values, has_split_numbers };
    CsvError::Form { line: record.line, problem }
}

/// How many pairs of neighbouring fields may be the two parts of a number with a decimal comma: `1` and `50`. Two years are
/// none.
pub(crate) fn count_split_numbers<'f>(fields: impl Iterator<Item = Cow<'f, str>>) -> usize {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mut pairs, mut whole) = (0, None::<Cow<'f, str>>);
    for field in fields {
        if is_number(&field) && whole.as_ref().is_some_and(|whole| !(is_year(whole) && is_year(&field))) {
            pairs += 1;
            whole = None;
        } else {
            whole = Some(field).filter(|field| is_number(field.strip_prefix('-').unwrap_or(field)));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::record_buffer::SingleBytes;
    use super::*;

    fn read(text: &str, comment: Option<u8>) -> Vec<(u64, Vec<String>)> {
        let pieces = SingleBytes(text.as_bytes());
        let characters = CsvCharacters { quotes: CsvQuotes::WithinFields, ..CsvCharacters::new(b',', b'"') };
        let mut records = CsvRecords::new(pieces, ReadBudget::new(usize::MAX), characters, comment, 0);
        let mut found = Vec::new();
        while let Some(record) = records.next().unwrap() {
            found.push((record.line, record.fields().map(Cow::into_owned).collect()));
        }
        found
    }

    #[test]
    fn empty_lines_and_comments_are_no_records() {
        let text = "# x\na,b\n\n1,\"2\n3\"\r\n#, \"\n\r\n4,5";
        let expected = [(2, ["a", "b"]), (4, ["1", "2\n3"]), (8, ["4", "5"])];
        let expected = expected.map(|(line, fields)| (line, fields.map(str::to_owned).to_vec()));
        assert_eq!(read(text, Some(b'#')), expected);
    }

    #[test]
    fn years_are_no_numbers_with_decimal_commas() {
        let count = |line: &'static str| count_split_numbers(line.split(',').map(Cow::from));
        for (line, pairs) in
            [("Ann,1,50", 1), ("-1,50,2,75", 2), ("2024,50", 1), ("id,2019,2020,2021", 0), ("2020,1,50", 1)]
        {
            assert_eq!(count(line), pairs, "{line}");
        }
    }

    #[test]
    fn open_quotes_are_an_error_with_their_line() {
        let mut records = CsvRecords::new(
            "a\n\"b\nc\n".as_bytes(),
            ReadBudget::new(usize::MAX),
            CsvCharacters::new(b',', b'"'),
            None,
            0,
        );
        assert!(records.next().is_ok());
        let error = records.next().err().unwrap();
        assert_eq!(
            error.reason(Compression::UNCOMPRESSED),
            "line 2: the quotes of a field are not closed until the end of the file"
        );
        assert!(records.next().unwrap().is_none());
    }
}
