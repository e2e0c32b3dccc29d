//! CSV: detects the encoding from the bytes, the delimiter from the first line, the names from the header, and the
//! types from sampled rows.
//!
//! The first line is the header unless its values have the types of the rows below it. Types come from the first rows
//! and, in large files, from some later rows. If the reader finds a row that does not fit, it widens the type of the
//! column, and the statement runs again.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use tidegate_ingest_formats::CsvQuotes;

use super::super::csv_records::{CsvError, CsvRecords, FormProblem, field_count_error};
use super::super::encoding::TextEncoding;
use super::super::file_kind::Compression;
use super::super::limits::FileLimits;
use super::super::names::column_names;
use super::super::ragged_rows::{count_lines_before_header, detect_preamble};
use super::super::table_options::{CsvDialect, TextTableOptions, suggest_yaml};
use super::super::text_reader::{ReadBudget, TextDecoding, open_text, read_beginning, read_error_reason};
use super::type_inference::ColumnTypes;
use super::{ContentFormat, FileProfile, text_column};

/// Delimiters to search for in the first line, the most likely first.
const DELIMITERS: &[u8] = b",;\t|";
/// Number of bytes at the beginning for detecting encoding, delimiter and preamble.
const BEGINNING_BYTES: u64 = 256 << 10;
/// Minimum size of files with samples from later rows.
const EXTRA_SAMPLES_ABOVE_BYTES: u64 = 4 << 20;
/// The positions of these samples, in quarters of the file.
const EXTRA_SAMPLE_QUARTERS: [u64; 3] = [1, 2, 3];
/// The number of rows of each such sample.
const EXTRA_SAMPLE_ROWS: usize = 200;

type OpenFile<'a> = &'a dyn Fn() -> Result<File, String>;

pub(super) struct CsvFile<'a> {
    pub(super) open: OpenFile<'a>,
    pub(super) location: &'a str,
    pub(super) compression: Compression,
    /// The delimiter that the file name indicates.
    pub(super) delimiter: Option<u8>,
    pub(super) bytes: u64,
    pub(super) options: &'a TextTableOptions,
}

pub(super) fn probe_csv(file: &CsvFile<'_>, limits: &FileLimits) -> Result<FileProfile, String> {
    let beginning = file.inspect_beginning()?;
    let mut dialect = beginning.dialect.clone();
    let failed = |error: &CsvError| file.error_reason(error, &beginning);
    let mut records = open_records((file.open)()?, file.compression, &dialect, ReadBudget::new(limits.row_bytes_max))?;
    let Some(first) = records.next().map_err(|error| failed(&error))? else {
        return Err("the file is empty: it has no header".to_owned());
    };
    if first.len() > limits.columns_max {
        return Err(format!("it has more than {} columns", limits.columns_max));
    }
    let header: Vec<String> = first.fields().map(Cow::into_owned).collect();
    let mut columns = ColumnTypes::new(header.len(), dialect.numbers, dialect.nulls.is_none());
    let mut sample = SampleSize::default();
    let nulls = dialect.nulls.clone();
    let mut learn = |columns: &mut ColumnTypes, texts: &[Cow<'_, str>], line: u64| {
        let is_null = |text: &str| nulls.as_deref().is_some_and(|nulls| nulls.iter().any(|null| null == text));
        let values = texts.iter().enumerate().filter(|(_, text)| !is_null(text));
        values.for_each(|(position, text)| columns.learn_value(position, text, line));
        sample.add(texts);
    };
    if !dialect.has_header {
        learn(&mut columns, &header.iter().map(Cow::from).collect::<Vec<_>>(), 1);
    }
    let mut is_all = false;
    for _ in 0..file.options.inferred_rows(file.bytes, file.compression, limits) {
        let Some(record) = records.next().map_err(|error| failed(&error))? else {
            is_all = true;
            break;
        };
        if !dialect.takes_fields(record.len(), header.len()) {
            return Err(failed(&field_count_error(&record, header.len(), &header)));
        }
        learn(&mut columns, &record.fields().collect::<Vec<_>>(), record.line);
    }
    if !is_all
        && file.compression == Compression::UNCOMPRESSED
        && file.bytes > EXTRA_SAMPLES_ABOVE_BYTES
        && dialect.decoding.encoding == TextEncoding::default()
    {
        for quarter in EXTRA_SAMPLE_QUARTERS {
            // A position may be within a quoted line break and give unusable rows. The samples are optional.
            let rows = sample_rows_at((file.open)()?, file.bytes * quarter / 4, &dialect, header.len());
            for row in rows.unwrap_or_default() {
                row.iter().enumerate().for_each(|(position, text)| columns.learn_value(position, text, 0));
            }
        }
    }
    if file.options.has_header.is_none() && sample.rows > 0 && columns.is_row_of_values(&header) {
        dialect.has_header = false;
        header.iter().enumerate().for_each(|(position, value)| columns.learn_value(position, value, 1));
        sample.rows += 1;
    }
    let names = if dialect.has_header { header } else { vec![String::new(); header.len()] };
    file.build_profile(dialect, &names, columns, is_all.then_some(sample.rows), sample.row_bytes())
}

/// The number of rows that were looked at, and of the bytes of their texts.
#[derive(Default)]
struct SampleSize {
    rows: u64,
    bytes: u64,
}

impl SampleSize {
    fn add(&mut self, texts: &[Cow<'_, str>]) {
        self.rows += 1;
        self.bytes += texts.iter().map(|text| text.len() as u64 + 1).sum::<u64>();
    }

    fn row_bytes(&self) -> Option<u64> {
        self.bytes.checked_div(self.rows)
    }
}

struct CsvBeginning {
    dialect: CsvDialect,
    /// The text after the skipped lines.
    text: Vec<u8>,
}

impl CsvFile<'_> {
    fn inspect_beginning(&self) -> Result<CsvBeginning, String> {
        let options = self.options;
        let line = |option: &str| suggest_yaml(self.location, option);
        let encoding = match options.encoding {
            Some(encoding) => encoding,
            None => TextEncoding::recognise(&read_beginning((self.open)()?, self.compression, BEGINNING_BYTES)?)
                .map_err(|problem| problem.reason(line))?,
        };
        let mut decoding = TextDecoding { encoding, skip_lines: options.skip.unwrap_or_default() };
        let mut text = self.read_beginning_text(decoding)?;
        if text.iter().all(u8::is_ascii_whitespace) {
            return Err("the file is empty: it has no header".to_owned());
        }
        if text.contains(&0) {
            return Err("it is not a text file".to_owned());
        }
        let mut delimiter = self.delimiter;
        if let (Some(named), None, None) = (excel_delimiter(&text), options.delimiter, options.skip) {
            delimiter = Some(named);
            decoding.skip_lines = 1;
            text = self.read_beginning_text(decoding)?;
        }
        let named = options.delimiter.or(delimiter);
        let quote = (options.quotes != Some(CsvQuotes::Characters)).then(|| options.quote.unwrap_or(b'"'));
        let delimiter = named.unwrap_or_else(|| detect_delimiter(&text, quote));
        let mut dialect = CsvDialect { decoding, ..CsvDialect::new(delimiter, options) };
        if text.contains(&b'\r') && !text.contains(&b'\n') {
            dialect.characters.line_break = b'\r';
        }
        let candidates = named.map_or_else(|| DELIMITERS.to_vec(), |named| vec![named]);
        if options.skip.is_none()
            && options.comment.is_none()
            && options.ragged.is_none()
            && let Some(preamble) = detect_preamble(&text, dialect.characters, &candidates)
            && !(preamble.is_padded && options.has_header.is_some())
        {
            let lines = decoding.skip_lines + preamble.lines;
            let option = format!("skip: {lines}");
            let skip = line(&option);
            let mut reason = format!("the table starts after line {lines}; to skip the lines before it, write {skip}");
            if preamble.is_padded {
                reason += &format!("; if line 1 has the names of the columns, write {}", line("header: true"));
            }
            if preamble.may_lack_header && options.has_header.is_none() {
                let first = lines + 1;
                let headless = line(&format!("{option}, header: false"));
                reason += &format!("; if line {first} has no names of columns, write {headless}");
            }
            return Err(reason);
        }
        Ok(CsvBeginning { dialect, text })
    }

    fn read_beginning_text(&self, decoding: TextDecoding) -> Result<Vec<u8>, String> {
        let text = open_text((self.open)()?, self.compression, decoding, ReadBudget::new(usize::MAX))?;
        let mut beginning = Vec::new();
        let read = text.take(BEGINNING_BYTES).read_to_end(&mut beginning);
        read.map(|_| beginning).map_err(|error| read_error_reason(&error, self.compression))
    }

    fn build_profile(
        &self,
        dialect: CsvDialect,
        header: &[String],
        columns: ColumnTypes,
        rows: Option<u64>,
        row_bytes: Option<u64>,
    ) -> Result<FileProfile, String> {
        let names = column_names(header, dialect.has_header);
        self.options.check_columns(&names)?;
        let notes = columns.notes(self.location);
        let is_detected = |name: &String| !self.options.columns.contains_key(name);
        let as_declared = |(name, found): (&String, &DataType)| {
            self.options.columns.get(name).map_or_else(|| found.clone(), |column| column.data_type())
        };
        let types: Vec<DataType> = names.iter().zip(&columns.types).map(as_declared).collect();
        let marked: BTreeSet<String> = columns.typed_null_marker_columns(&names).cloned().collect();
        Ok(FileProfile {
            rows,
            row_bytes,
            null_marker_columns: marked,
            type_notes: notes
                .into_iter()
                .filter_map(|(position, note)| {
                    Some((names.get(position).filter(|name| is_detected(name))?.clone(), note))
                })
                .collect(),
            evidence: columns
                .into_evidence(self.location, |position| names.get(position).is_some_and(|name| !is_detected(name))),
            ..FileProfile::new(ContentFormat::Csv(dialect), text_schema(&names, &types))
        })
    }

    /// The reason of an error for the operator, with the option that fixes it, if there is one.
    fn error_reason(&self, error: &CsvError, beginning: &CsvBeginning) -> String {
        let reason = error.reason(self.compression);
        let CsvDialect { characters, decoding, .. } = beginning.dialect;
        let lines = match error {
            CsvError::Form { problem: FormProblem::FieldCount { .. }, .. } => {
                count_lines_before_header(&beginning.text, characters)
            }
            _ => None,
        };
        match (lines, error.option()) {
            (Some(lines), _) => {
                let option = format!("skip: {}", decoding.skip_lines + lines);
                format!("{reason}; write {}", suggest_yaml(self.location, &option))
            }
            (None, Some(advice)) => format!("{reason}; {}", advice.for_file(self.location)),
            (None, None) => reason,
        }
    }
}

fn text_schema(names: &[String], types: &[DataType]) -> SchemaRef {
    let columns = names.iter().zip(types).map(|(name, data_type)| text_column(name, data_type.clone()));
    Arc::new(Schema::new(columns.collect::<Vec<_>>()))
}

/// The delimiter of a first line such as `sep=;`, which Excel writes and reads.
fn excel_delimiter(text: &[u8]) -> Option<u8> {
    let line = text.split(|byte| *byte == b'\n').next()?.trim_ascii_end();
    match line.strip_prefix(b"sep=")? {
        [delimiter] => Some(*delimiter),
        _ => None,
    }
}

fn detect_delimiter(start: &[u8], quote: Option<u8>) -> u8 {
    let mut counts = [0_usize; DELIMITERS.len()];
    let mut in_quotes = false;
    for &byte in start {
        in_quotes ^= Some(byte) == quote;
        if byte == b'\n' && !in_quotes {
            break;
        }
        if let Some(index) = DELIMITERS.iter().position(|&delimiter| delimiter == byte && !in_quotes) {
            counts[index] += 1;
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|&count| count == most).map_or(b',', |index| DELIMITERS[index])
}

/// The records of a file, its header among them.
pub(crate) fn open_records(
    file: File,
    compression: Compression,
    dialect: &CsvDialect,
    budget: ReadBudget,
) -> Result<CsvRecords<BufReader<Box<dyn Read + Send>>>, String> {
    let text = open_text(file, compression, dialect.decoding, budget.clone())?;
    Ok(CsvRecords::new(text, budget, dialect.characters, dialect.comment, dialect.decoding.skip_lines))
}

/// The values of the first line, at most one more than `columns_max`: a line may have millions. Without a header, only
/// their number matters.
pub(crate) fn read_header(
    file: File,
    compression: Compression,
    dialect: &CsvDialect,
    budget: ReadBudget,
    columns_max: usize,
) -> Result<Vec<String>, String> {
    let mut records = open_records(file, compression, dialect, budget)?;
    let Some(first) = records.next().map_err(|error| error.reason(compression))? else { return Ok(Vec::new()) };
    let fields = first.fields().take(columns_max.saturating_add(1));
    Ok(match dialect.has_header {
        true => fields.map(Cow::into_owned).collect(),
        false => fields.map(|_| String::new()).collect(),
    })
}

/// Reads rows from a position within a file, starting at the next line. Nothing if they are not those of the table.
fn sample_rows_at(mut file: File, position: u64, dialect: &CsvDialect, columns: usize) -> Option<Vec<Vec<String>>> {
    file.seek(SeekFrom::Start(position)).ok()?;
    let mut text = BufReader::new(file.take(EXTRA_SAMPLES_ABOVE_BYTES));
    text.skip_until(dialect.characters.line_break).ok()?;
    let budget = ReadBudget::new(usize::MAX);
    let mut records = CsvRecords::new(text, budget, dialect.characters, dialect.comment, 0);
    let mut rows = Vec::new();
    while rows.len() < EXTRA_SAMPLE_ROWS {
        let Some(record) = records.next().ok()? else { break };
        if !dialect.takes_fields(record.len(), columns) {
            return None;
        }
        rows.push(record.fields().map(Cow::into_owned).collect());
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_delimiter_in_first_line() {
        let detect = |text: &[u8]| detect_delimiter(text, Some(b'"'));
        assert_eq!(detect(b"a,b;c,d\n1;2;3;4"), b',');
        assert_eq!(detect(b"a;\"b,c,d\";e\n"), b';');
        assert_eq!(detect(b"a|b\n"), b'|');
        assert_eq!(detect(b"only\n"), b',');
        assert_eq!(detect_delimiter(b"5\"|6\"|7\"\n8,9\n", None), b'|');
    }

    #[test]
    fn column_names_are_present_and_unique() {
        let names = |header: &[&str]| {
            column_names(&header.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>(), true).join("|")
        };
        assert_eq!(names(&["a", "", "a", " b "]), "a|column_2|a_2|b");
        assert_eq!(names(&["a", "a", "a_2"]), "a|a_3|a_2");
    }
}
