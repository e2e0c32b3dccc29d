//! CSV: detects the encoding from the bytes, the delimiter from the first line, the names from the header, and the
//! types from sampled rows.
//!
//! The first line is the header unless its values have the types of the rows below it. Types come from the first rows
//! and, in large files, from some later rows. If the reader finds a row that does not fit, it widens the type of the
//! column, and the statement runs again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::csv::reader::Format;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use regex::Regex;

use super::super::encoding::TextEncoding;
use super::super::file_kind::Compression;
use super::super::limits::FileLimits;
use super::super::names::column_names;
use super::super::ragged_rows::{RaggedRows, TrimmedRows, detect_preamble, suggest_option};
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
    let dialect = &beginning.dialect;
    let budget = || ReadBudget::new(limits.row_bytes_max);
    let header = read_header((file.open)()?, file.compression, dialect, budget())?;
    let all_text = text_schema(&column_names(&header, true), &vec![DataType::Utf8; header.len()]);
    let builder = || configure_reader(ReaderBuilder::new(all_text.clone()), dialect);
    let failed = |error: &ArrowError| file.error_reason(error, &beginning);
    let text = open_text((file.open)()?, file.compression, dialect.decoding, budget())?;
    let mut rows = builder()
        .with_header(dialect.has_header)
        .with_batch_size(limits.inferred_rows)
        .build_buffered(open_rows(text, header.len(), dialect))
        .map_err(|error| failed(&error))?;
    let sample = rows.next().transpose().map_err(|error| failed(&error))?;
    let mut columns = ColumnTypes::new(header.len(), dialect.numbers, dialect.nulls.is_none());
    let Some(sample) = sample else { return file.build_profile(dialect.clone(), &header, &columns, Some(0), None) };
    columns.learn(&sample);
    if file.compression == Compression::UNCOMPRESSED
        && file.bytes > EXTRA_SAMPLES_ABOVE_BYTES
        && dialect.decoding.encoding == TextEncoding::default()
    {
        for spot in EXTRA_SAMPLE_QUARTERS {
            let rows = builder().with_batch_size(EXTRA_SAMPLE_ROWS);
            // A position may be within a quoted line break and give unusable rows. The samples are optional.
            if let Some(sample) = sample_rows_at((file.open)()?, file.bytes * spot / 4, rows) {
                columns.learn(&sample);
            }
        }
    }
    let mut dialect = dialect.clone();
    let mut row_count = sample.num_rows();
    let is_all = row_count < limits.inferred_rows;
    if file.options.has_header.is_none() && columns.is_row_of_values(&header) {
        dialect.has_header = false;
        header.iter().enumerate().for_each(|(position, value)| columns.learn_value(position, value));
        row_count += 1;
    }
    let rows = is_all.then_some(row_count as u64);
    file.build_profile(dialect, &header, &columns, rows, Some(row_bytes(&sample)))
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
                .map_err(|reason| match reason.as_str() {
                    "it is not a text file" => reason,
                    _ => format!("{reason}; write {}", line("encoding: latin-1")),
                })?,
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
        let delimiter = named.unwrap_or_else(|| detect_delimiter(&text));
        let dialect = CsvDialect { decoding, ..CsvDialect::new(delimiter, options) };
        let candidates = named.map_or_else(|| DELIMITERS.to_vec(), |named| vec![named]);
        if options.skip.is_none()
            && options.comment.is_none()
            && options.ragged.is_none()
            && let Some(lines) = detect_preamble(&text, delimiter, &candidates, dialect.quote)
        {
            let option = line(&format!("skip: {}", decoding.skip_lines + lines));
            return Err(format!("the table starts after line {lines}; to skip the lines before it, write {option}"));
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
        columns: &ColumnTypes,
        rows: Option<u64>,
        row_bytes: Option<u64>,
    ) -> Result<FileProfile, String> {
        let names = column_names(header, dialect.has_header);
        self.options.check_columns(&names)?;
        let as_declared = |(name, found): (&String, &DataType)| {
            self.options.columns.get(name).map_or_else(|| found.clone(), |column| column.data_type())
        };
        let types: Vec<DataType> = names.iter().zip(&columns.types).map(as_declared).collect();
        let marked: BTreeSet<String> = columns.typed_null_marker_columns(&names).cloned().collect();
        Ok(FileProfile {
            rows,
            row_bytes,
            null_marker_columns: marked,
            ..FileProfile::new(ContentFormat::Csv(dialect), text_schema(&names, &types))
        })
    }

    /// The reason of an error for the operator, with the option that fixes it, if there is one.
    fn error_reason(&self, error: &ArrowError, beginning: &CsvBeginning) -> String {
        let reason = csv_error_reason(error, self.compression);
        let dialect = &beginning.dialect;
        match suggest_option(&beginning.text, dialect.delimiter, dialect.quote) {
            Some(option) if reason.contains("incorrect number of fields") => {
                format!("{reason}; write {}", suggest_yaml(self.location, &option))
            }
            _ => reason,
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

fn detect_delimiter(start: &[u8]) -> u8 {
    let mut counts = [0_usize; DELIMITERS.len()];
    let mut in_quotes = false;
    for &byte in start {
        in_quotes ^= byte == b'"';
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

pub(crate) fn configure_reader(builder: ReaderBuilder, dialect: &CsvDialect) -> ReaderBuilder {
    let mut builder = builder
        .with_delimiter(dialect.delimiter)
        .with_quote(dialect.quote)
        .with_truncated_rows(dialect.ragged.is_some());
    if let Some(comment) = dialect.comment {
        builder = builder.with_comment(comment);
    }
    match dialect.nulls.as_deref().and_then(null_pattern) {
        Some(null) => builder.with_null_regex(null),
        None => builder,
    }
}

/// The rows of `text` in the form that a reader of `dialect` with `columns` columns expects.
pub(crate) fn open_rows(
    text: BufReader<Box<dyn Read + Send>>,
    columns: usize,
    dialect: &CsvDialect,
) -> Box<dyn BufRead + Send> {
    match dialect.ragged {
        Some(RaggedRows::Trim) => Box::new(TrimmedRows::open(text, columns, dialect.delimiter, dialect.quote)),
        _ => Box::new(text),
    }
}

/// Matches one of the null texts, or the empty text.
fn null_pattern(nulls: &[String]) -> Option<Regex> {
    let texts: Vec<String> = nulls.iter().map(|text| regex::escape(text)).collect();
    Regex::new(&format!("^(?:{})?$", texts.join("|"))).ok()
}

/// The values of the first line. Without a header, only their number matters.
pub(crate) fn read_header(
    file: File,
    compression: Compression,
    dialect: &CsvDialect,
    budget: ReadBudget,
) -> Result<Vec<String>, String> {
    let text = open_text(file, compression, dialect.decoding, budget)?;
    let mut format =
        Format::default().with_header(dialect.has_header).with_delimiter(dialect.delimiter).with_quote(dialect.quote);
    if let Some(comment) = dialect.comment {
        format = format.with_comment(comment);
    }
    let rows = usize::from(!dialect.has_header);
    let (schema, _) = format.infer_schema(text, Some(rows)).map_err(|error| csv_error_reason(&error, compression))?;
    let names = schema.fields().iter().map(|field| field.name().clone());
    Ok(names.map(|name| if dialect.has_header { name } else { String::new() }).collect())
}

/// Reads rows from a position within a file, starting at the next line.
fn sample_rows_at(mut file: File, position: u64, rows: ReaderBuilder) -> Option<RecordBatch> {
    file.seek(SeekFrom::Start(position)).ok()?;
    let mut text = BufReader::new(file.take(EXTRA_SAMPLES_ABOVE_BYTES));
    text.skip_until(b'\n').ok()?;
    rows.build_buffered(text).ok()?.next()?.ok()
}

fn row_bytes(sample: &RecordBatch) -> u64 {
    let texts = sample.columns().iter().filter_map(|column| column.as_string_opt::<i32>());
    let bytes: usize = texts.map(|texts| texts.value_data().len()).sum();
    (bytes / sample.num_rows().max(1) + sample.num_columns()) as u64
}

fn csv_error_reason(error: &ArrowError, compression: Compression) -> String {
    match error {
        ArrowError::IoError(_, error) => read_error_reason(error, compression),
        ArrowError::CsvError(text) | ArrowError::ParseError(text) => {
            let text = text.strip_prefix("Error parsing CSV: ").unwrap_or(text);
            if text.contains("UTF-8") { format!("it is not UTF-8 text: {text}") } else { text.to_owned() }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_delimiter_in_first_line() {
        assert_eq!(detect_delimiter(b"a,b;c,d\n1;2;3;4"), b',');
        assert_eq!(detect_delimiter(b"a;\"b,c,d\";e\n"), b';');
        assert_eq!(detect_delimiter(b"a|b\n"), b'|');
        assert_eq!(detect_delimiter(b"only\n"), b',');
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
