//! Reads the records of a CSV text one by one; and lines before the header, and rows with fewer or more values than
//! it: detection, and the option that fixes the problem.

use std::borrow::Cow;
use std::io::{self, Read};

use datafusion::arrow::datatypes::DataType;
use tidegate_ingest_formats::{CsvCharacters, CsvDefect, CsvField, CsvQuotes, CsvScanner};

use super::file_kind::Compression;
use super::number_format::{is_local_value, is_null_marker};
use super::table_options::suggest_yaml;
use super::text_reader::{ReadBudget, RecordBuffer, TextEncoding, read_error_reason};
use super::text_value::{infer_type, is_year};

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
    fn has_line_break(&self) -> bool {
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
fn count_split_numbers<'f>(fields: impl Iterator<Item = Cow<'f, str>>) -> usize {
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

/// How to handle rows with fewer or more values than there are columns. Without this option, such rows are an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RaggedRows {
    /// Missing values at the end of a row are null; surplus values are an error.
    Fill,
    /// As `Fill`; values beyond the last column are dropped.
    Trim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SampleRecord {
    /// Number of lines before it.
    line: usize,
    values: usize,
    /// The same without empty values at the end, with which spreadsheets pad a title.
    filled: usize,
    /// Whether one of its values is a number, a time and so on. The name of a column is none, unless it is a year. Unknown, and
    /// then set, after the first records.
    has_typed_values: bool,
    /// Whether each of its values may be the name of a column. Unknown, and then not set, after the first records.
    has_only_names: bool,
    /// The number of pairs of its values that may be numbers with decimal commas.
    split_numbers: usize,
    /// Whether an empty line, or a record without values, separates it from the record before it.
    is_after_blank: bool,
}

impl SampleRecord {
    /// Whether it has so few values that it is a title and no header of a table with so many columns.
    fn is_title(&self, columns: usize) -> bool {
        self.filled <= 1 || self.filled * 2 <= columns
    }
}

/// The number of records among which the header of a table after padded titles is looked for.
const PADDED_TITLES_MAX: usize = 32;

/// The records of a sample. The last one may be cut, and counts only with its line break.
fn read_records(sample: &[u8], characters: CsvCharacters) -> Vec<SampleRecord> {
    let quotes = match characters.quotes {
        CsvQuotes::Characters => CsvQuotes::Characters,
        _ => CsvQuotes::Anywhere,
    };
    let characters = CsvCharacters { quotes, ..characters };
    let mut records = CsvRecords::new(sample, ReadBudget::new(usize::MAX), characters, None, 0);
    let (mut found, mut next_line, mut is_blank) = (Vec::new(), 0, false);
    while let Ok(Some(record)) = records.next() {
        if record.has_line_break() {
            let line = usize::try_from(record.line - 1).unwrap_or(usize::MAX);
            let is_filled = |field: &Cow<'_, str>| !field.trim().is_empty();
            let last = record.fields().enumerate().filter(|(_, field)| is_filled(field)).last();
            let is_beginning = found.len() <= PADDED_TITLES_MAX;
            let has_typed_values = !is_beginning || record.fields().any(|field| is_typed(&field));
            let is_name = |field: Cow<'_, str>| is_filled(&field) && !is_null_marker(&field);
            let has_only_names = !has_typed_values && record.fields().all(is_name);
            let filled = last.map_or(0, |(position, _)| position + 1);
            let is_after_blank = is_blank || line > next_line;
            let split_numbers = if characters.delimiter == b',' { count_split_numbers(record.fields()) } else { 0 };
            let values = record.len();
            found.push(SampleRecord {
                line,
                values,
                filled,
                has_typed_values,
                has_only_names,
                split_numbers,
                is_after_blank,
            });
            let breaks = |field: Cow<'_, str>| field.matches(char::from(characters.line_break)).count();
            next_line = line + 1 + record.fields().map(breaks).sum::<usize>();
            is_blank = filled == 0;
        }
    }
    found
}

fn is_typed(text: &str) -> bool {
    !text.is_empty() && !is_year(text) && (infer_type(text, None) != DataType::Utf8 || is_local_value(text))
}

fn most_frequent_value_count(records: &[SampleRecord]) -> Option<(usize, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for record in records {
        *counts.entry(record.values).or_insert(0_usize) += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count)
}

/// The number of lines before the table of a file that begins with `sample`, if there are any.
pub(crate) fn count_lines_before_header(sample: &[u8], characters: CsvCharacters) -> Option<usize> {
    let records = read_records(sample, characters);
    let header =
        header_after_titles(&records).or_else(|| wider_header(&records)).or_else(|| header_after_padding(&records));
    header.map(|header| header.line)
}

/// The lines before the header of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preamble {
    pub(crate) lines: usize,
    /// Whether they are as wide as the table, so that the first one could be a header with few names.
    pub(crate) is_padded: bool,
    /// Whether the line after them has values such as numbers, so that it may be the first row.
    pub(crate) may_lack_header: bool,
}

impl Preamble {
    fn before(header: SampleRecord, is_padded: bool) -> Self {
        Self { lines: header.line, is_padded, may_lack_header: header.has_typed_values }
    }
}

/// The lines before the header, if one of `delimiters` shows that the table starts later. `None` if `found`, the delimiter of
/// the first line, gives all rows the same number of values as that line, and the line is no padded title.
pub(crate) fn detect_preamble(sample: &[u8], found: CsvCharacters, delimiters: &[u8]) -> Option<Preamble> {
    let with_found = read_records(sample, found);
    let usual = most_frequent_value_count(&with_found).map(|(values, _)| values).filter(|values| *values > 1);
    if usual.is_some() && with_found.first().map(|first| first.values) == usual {
        let header = header_after_titles(&with_found).or_else(|| header_after_padding(&with_found));
        if header.is_some() || with_found.iter().all(|record| Some(record.values) == usual) {
            return header.map(|header| Preamble::before(header, true));
        }
    }
    // A row of the table that the found delimiter makes is no header with another one.
    let is_row = |header: &SampleRecord| {
        with_found.iter().any(|record| record.line == header.line && Some(record.values) == usual)
    };
    let header = |&delimiter: &u8| {
        let records = read_records(sample, CsvCharacters { delimiter, ..found });
        let header = header_after_titles(&records).or_else(|| wider_header(&records))?;
        (delimiter == found.delimiter || !is_row(&header)).then_some(header)
    };
    // The comma of `-1,50` makes columns, too, but of values and of fewer lines.
    let headers = delimiters.iter().filter_map(header);
    headers.min_by_key(|header| (header.has_typed_values, header.line)).map(|header| Preamble::before(header, false))
}

/// The header, if an empty line separates titles from it: `Export`, `Created;today`. It has names only, and a row follows it.
fn header_after_titles(records: &[SampleRecord]) -> Option<SampleRecord> {
    let (usual, _) = most_frequent_value_count(records).filter(|(usual, _)| *usual > 1)?;
    let is_header = |pair: &[SampleRecord]| {
        matches!(pair, [header, row] if header.is_after_blank
            && !row.is_after_blank
            && header.values == usual
            && header.filled == usual
            && !header.has_typed_values)
    };
    let begin = records.windows(2).position(is_header)?;
    let (before, after) = records.split_at(begin);
    let is_titled = before.first().is_some_and(|first| first.values < usual || first.is_title(usual))
        && before.iter().all(|record| record.values <= usual);
    after.first().filter(|_| is_titled && are_alike(after, usual)).copied()
}

/// Whether nearly all records, and more than one, have so many values.
fn are_alike(records: &[SampleRecord], values: usize) -> bool {
    let alike = records.iter().filter(|record| record.values == values).count();
    alike > 1 && alike * 10 >= records.len() * 9
}

/// Minimum number of records with equal length after a preamble.
const SIMILAR_RECORDS_MIN: usize = 3;

/// The header, or else the first row, if all lines before it have fewer values.
fn wider_header(records: &[SampleRecord]) -> Option<SampleRecord> {
    let (usual, _) = most_frequent_value_count(records).filter(|(usual, _)| *usual > 1)?;
    let begin = records.iter().position(|record| record.values == usual)?;
    let (before, after) = records.split_at(begin);
    let (header, rows) = after.split_first()?;
    // A header that lacks one or two names is not a preamble, unless a line of names follows it, and then rows of values.
    let is_title = |first: &SampleRecord| {
        first.values == 1
            || first.values * 2 <= usual
            || header.has_only_names && rows.iter().all(|row| row.has_typed_values)
    };
    let is_preamble = before.first().is_some_and(is_title)
        && before.iter().all(|record| record.values < usual)
        && after.iter().filter(|record| record.values == usual).count() >= SIMILAR_RECORDS_MIN
        && are_alike(after, usual)
        // A row whose numbers have decimal commas is wider than its header.
        && !(header.split_numbers > 0
            && before.last().is_some_and(|last| last.values + header.split_numbers >= usual));
    is_preamble.then_some(*header)
}

/// The header, if spreadsheets padded the lines before it to its width, as in `Export of 2026;;`. It must look like one, because
/// such a line may also be a header with few names.
fn header_after_padding(records: &[SampleRecord]) -> Option<SampleRecord> {
    let (usual, _) = most_frequent_value_count(records).filter(|(usual, _)| *usual > 1)?;
    let begin = records.iter().position(|record| record.values == usual && !record.is_title(usual))?;
    let (before, after) = records.split_at(begin);
    let header = after.first()?;
    let is_preamble = before.iter().any(|record| record.filled > 0)
        && before.iter().all(|record| record.is_title(usual))
        && header.filled == usual
        && !header.has_typed_values
        && are_alike(after, usual);
    is_preamble.then_some(*header)
}

#[cfg(test)]
mod tests {
    use super::super::text_reader::SingleBytes;
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

    #[test]
    fn the_line_after_a_preamble_may_be_a_row() {
        let may_lack_header = |text: &[u8]| {
            let preamble = detect_preamble(text, CsvCharacters::new(b',', b'"'), b",;");
            preamble.map(|preamble| (preamble.lines, preamble.may_lack_header))
        };
        assert_eq!(may_lack_header(b"Export\nname;kw\nAnn;1\nBob;2\n"), Some((1, false)));
        assert_eq!(may_lack_header(b"Export\nAnn;1,5\nBob;2,5\nCyd;3,5\n"), Some((1, true)));
        assert_eq!(may_lack_header(b"Export\n15.06.2025;Ann\n16.06.2025;Bob\n17.06.2025;Cyd\n"), Some((1, true)));
    }

    #[test]
    fn detects_preamble_and_counts_its_lines() {
        let detect = |text: &[u8], found: u8| {
            detect_preamble(text, CsvCharacters::new(found, b'"'), b",;").map(|preamble| preamble.lines)
        };
        let text = b"Sales of 2024\nmade by us\n\nid;name;price\n1;a;2\n2;\"b\nb\";3\n3;c;4\n";
        assert_eq!(detect(text, b','), Some(3));
        assert_eq!(detect(b"a;b\n1;2,5\n3;4,5\n5;6,5\n", b';'), None);
        assert_eq!(detect(b"text\nhello, you\nnothing here\nwell, well, well\n", b','), None);
        assert_eq!(detect(b"Export of 2026;;\n;;\nplant;owner;kw\n1;Ann;3\n", b';'), Some(2));
        assert_eq!(detect(b"Export;\nplant;2025\n1;Ann\n", b';'), Some(1));
        // Titles of several values, before an empty line.
        for (text, lines) in [
            ("Export\nCreated;15.06.\n\nname;day;kw\nAnn;1;2\n", 3),
            ("Export\n\nCreated;15.06.\n\nname;kw\nAnn;1\nBob;2\n", 4),
            ("Created;15.06.\n\nname;day;kw\nAnn;1;2\n", 2),
            ("Export;;\nCreated;15.06.;\n;;\nname;day;kw\nAnn;1;2\n", 3),
            ("Export;\nCreated;15.06.\n;\nname;kw\nAnn;1\n", 3),
            ("Export\nCreated;15.06.\nname;day;kw\nAnn;1;2\nBob;3;4\n", 2),
        ] {
            assert_eq!(detect(text.as_bytes(), b','), Some(lines), "{text}");
            assert_eq!(detect(text.as_bytes(), b';'), Some(lines), "{text}");
        }
        assert_eq!(detect(b"name;city\n\nAnn;Rome\nBob;Ulm\n", b';'), None);
        assert_eq!(detect(b"\n\nname;city\nAnn;Rome\nBob;Ulm\n", b';'), None);
        assert_eq!(detect(b"name;city;\n;;\nAnn;Rome;x\nBob;Ulm;y\n", b';'), None);
        // Decimal commas, and titles that are nearly as wide as the table.
        for (text, lines) in [
            ("Export\n\nday;who;sum\n01.02.2025;x;-1,50\n02.02.2025;y;-2,84\n03.02.2025;z;3,00\n", 2),
            ("Export, new\nday;who;sum\n01.02.2025;x;-1,50\n02.02.2025;y;-2,84\n03.02.2025;z;3,00\n", 1),
            ("Export;x\nday;who;sum\n01.02.2025;x;-1,50\n02.02.2025;y;-2,84\n03.02.2025;z;3,00\n", 1),
            ("Export;x\nwho;sum;kw\nAnn;1;2\nBob;2;3\n", 1),
        ] {
            let found = if text.starts_with("Export;") { b';' } else { b',' };
            assert_eq!(detect(text.as_bytes(), found), Some(lines), "{text}");
        }
        // Headers that lack a name.
        assert_eq!(detect(b"name;kw\nAnn;1;x\nBob;2;y\nCyd;3;z\n", b';'), None);
        assert_eq!(detect(b"name;kw\nAnn;n/a;x\nBob;2;y\nCyd;3;z\n", b';'), None);
        assert_eq!(detect(b"name;sum\nAnn;-1,50;x\nBob;-2,50;y\nCyd;-3,50;z\n", b';'), None);
        assert_eq!(detect(b"name;city\nAnn;Rome;x\nBob;Ulm;y\nCyd;Bonn;z\n", b';'), None);
        // A header with one name, one that begins with the index of another program, and one that groups columns.
        assert_eq!(detect(b"id;;\n1;Ann;3\n2;Bob;4\n", b';'), None);
        assert_eq!(detect(b",value\n0,3\n1,4\n", b','), None);
        assert_eq!(detect(b"a;;b;\nx;y;z;w\nx;y;z;w\n", b';'), None);
        let count = |text: &[u8]| count_lines_before_header(text, CsvCharacters::new(b',', b'"'));
        assert_eq!(count(b"x\ny\na,b\n1,2\n3,4\n5,6\n"), Some(2));
        assert_eq!(count(b"Export\nof,today\nplant,2023,2024\nUlm,1,2\nRome,3,4\n"), Some(2));
        assert_eq!(count(b"price\n1,50\n2,75\n3,25\n"), None);
    }
}
