//! Probing a CSV file: detects the encoding from the bytes, the delimiter from the first line, the names from the
//! header, and the types from sampled rows.
//!
//! The first line is the header unless its values have the types of the rows below it. Types come from the first rows
//! and, in large files, from some later rows. If the reader finds a row that does not fit, it widens the type of the
//! column, and the statement runs again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use tidegate_ingest_formats::CsvQuotes;

use super::column_type::{CoercionMode, wider};
use super::csv_records::{
    CsvError, CsvRecords, FormProblem, count_lines_before_header, detect_preamble, field_count_error,
};
use super::file_kind::Compression;
use super::names::column_names;
use super::number_format::{NumberEvidence, NumberFormat, is_null_marker};
use super::probe::{ContentFormat, FileProfile, text_column};
use super::table_options::{CsvDialect, TextTableOptions, suggest_yaml};
use super::text_reader::{ReadBudget, TextDecoding, TextEncoding, open_text, read_beginning, read_error_reason};
use super::text_value::{TypeOrigin, infer_type, is_year, parse_float, type_note};
use super::walk::FileLimits;

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

#[derive(Debug)]
struct ColumnTypes {
    /// `Null` if no value determines the type.
    types: Vec<DataType>,
    /// Positions of columns that contain null markers.
    null_marker_columns: BTreeSet<usize>,
    /// Positions of columns with integers that no float is equal to.
    inexact_columns: BTreeSet<usize>,
    /// The last change of the type of a column, by position.
    changes: BTreeMap<usize, TypeChange>,
    /// Positions of text columns of which only the first value is known to be a text.
    lone_texts: BTreeSet<usize>,
    /// The separators in the values, by position.
    evidence: Vec<NumberEvidence>,
    numbers: Option<NumberFormat>,
    accepts_null_markers: bool,
}

/// The value that did not have the type of the other values, and its line, 0 if it is not known.
#[derive(Debug)]
struct TypeChange {
    /// The type of the values before it, or of those after it if it is the first one.
    others: DataType,
    value: String,
    line: u64,
}

impl ColumnTypes {
    fn new(columns: usize, numbers: Option<NumberFormat>, accepts_null_markers: bool) -> Self {
        let (null_marker_columns, inexact_columns, changes, lone_texts) = Default::default();
        Self {
            types: vec![DataType::Null; columns],
            null_marker_columns,
            inexact_columns,
            changes,
            lone_texts,
            evidence: vec![NumberEvidence::default(); columns],
            numbers,
            accepts_null_markers,
        }
    }

    /// Widens the type of the column at this position to hold `value` of this line, 0 if it is not known.
    fn learn_value(&mut self, position: usize, value: &str, line: u64) {
        let (Some(data_type), Some(evidence)) = (self.types.get_mut(position), self.evidence.get_mut(position)) else {
            return;
        };
        if value.is_empty() {
        } else if *data_type == DataType::Utf8 && !evidence.is_open() && !self.lone_texts.contains(&position) {
            evidence.learn_notation(value);
        } else if self.accepts_null_markers && is_null_marker(value) {
            self.null_marker_columns.insert(position);
        } else {
            let mut found = infer_type(value, self.numbers);
            match self.numbers {
                Some(_) if evidence.is_open() => evidence.learn(value, &infer_type(value, None), line),
                Some(_) => evidence.learn_notation(value),
                None => evidence.learn(value, &found, line),
            }
            if *data_type == DataType::Utf8 {
                return self.learn_after_text(position, &found);
            }
            // Among floats, `1e21` is one.
            if *data_type == DataType::Float64
                && self.numbers.is_none()
                && parse_float(value, TypeOrigin::Inferred).is_some()
            {
                found = DataType::Float64;
            }
            let plain = self.numbers.and_then(|format| format.normalize(value));
            let number = plain.as_deref().unwrap_or(value);
            if found == DataType::Int64 && parse_float(number, TypeOrigin::Inferred).is_none() {
                self.inexact_columns.insert(position);
            }
            let mut wide = wider(data_type, &found, CoercionMode::ToText).unwrap_or(DataType::Utf8);
            if wide == DataType::Float64 && self.inexact_columns.contains(&position) {
                wide = DataType::Utf8;
            }
            if wide != *data_type {
                let others = std::mem::replace(data_type, wide);
                if others == DataType::Null && *data_type == DataType::Utf8 {
                    self.lone_texts.insert(position);
                }
                self.changes.insert(position, TypeChange { others, value: value.to_owned(), line });
            }
        }
    }

    /// Adds the type of a value of a text column. A line of names below a title is the only text of its columns.
    fn learn_after_text(&mut self, position: usize, found: &DataType) {
        if !self.lone_texts.contains(&position) {
            return;
        }
        let Some(change) = self.changes.get_mut(&position) else { return };
        let others = wider(&change.others, found, CoercionMode::ToText).unwrap_or(DataType::Utf8);
        if others == DataType::Utf8 {
            self.lone_texts.remove(&position);
            change.others = DataType::Null;
        } else {
            change.others = others;
        }
    }

    /// Why columns do not have the type of their other values, by position.
    fn notes(&self, location: &str) -> BTreeMap<usize, String> {
        let note = |(position, change): (&usize, &TypeChange)| {
            let data_type = self.types.get(*position)?;
            let note = type_note(&change.others, data_type, &change.value, change.line, location)?;
            Some((*position, note))
        };
        self.changes.iter().filter_map(note).collect()
    }

    /// The separators in the values of each column. `is_declared`: whether the configuration declares its type.
    fn into_evidence(self, location: &str, is_declared: impl Fn(usize) -> bool) -> Vec<NumberEvidence> {
        let complete = |(position, evidence): (usize, NumberEvidence)| {
            let evidence = evidence.at_location(location);
            if is_declared(position) { evidence.declared() } else { evidence }
        };
        self.evidence.into_iter().enumerate().map(complete).collect()
    }

    fn typed_null_marker_columns<'a>(&self, names: &'a [String]) -> impl Iterator<Item = &'a String> {
        let has_type = |position: &&usize| !matches!(self.types.get(**position), Some(DataType::Utf8 | DataType::Null));
        self.null_marker_columns.iter().filter(has_type).filter_map(|position| names.get(*position))
    }

    /// Whether `first`, the first line, contains values and not names: there are typed columns, and its values fit all
    /// of them.
    fn is_row_of_values(&self, first: &[String]) -> bool {
        let typed =
            || self.types.iter().zip(first).filter(|(kind, _)| !matches!(kind, DataType::Utf8 | DataType::Null));
        let fits = |(kind, value): (&DataType, &String)| {
            let found = infer_type(value, self.numbers);
            value.is_empty() || wider(kind, &found, CoercionMode::ToText).as_ref() == Some(kind)
        };
        first.len() == self.types.len()
            && typed().any(|(_, value)| !value.is_empty())
            && typed().all(fits)
            && !typed().all(|(_, value)| is_year(value))
    }
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

    #[test]
    fn markers_are_null_where_the_rest_has_a_type() {
        let mut columns = ColumnTypes::new(3, None, true);
        for (position, value) in [(0, "1"), (0, "N/A"), (1, "NA"), (1, "DE"), (2, "-")] {
            columns.learn_value(position, value, 1);
        }
        assert_eq!(columns.types, [DataType::Int64, DataType::Utf8, DataType::Null]);
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(columns.typed_null_marker_columns(&names).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn the_only_text_of_a_column_is_noted() {
        let note = |values: &[&str]| {
            let mut columns = ColumnTypes::new(1, None, true);
            (2..).zip(values).for_each(|(line, value)| columns.learn_value(0, value, line));
            columns.notes("t.csv").remove(&0)
        };
        let first = Some("text, because line 2 of t.csv has \"pieces\"");
        assert_eq!(note(&["pieces", "1", "N/A", "2.5"]).as_deref(), first);
        assert_eq!(note(&["pieces", "2026-01-01"]).as_deref(), first);
        let last = Some("text, because line 4 of t.csv has \"pieces\"");
        assert_eq!(note(&["1", "2.5", "pieces", "3"]).as_deref(), last);
        for texts in [&["pieces"][..], &["pieces", "1", "x"], &["pieces", "1", "true", "2"], &["pieces", "-1,50"]] {
            assert_eq!(note(texts), None, "{texts:?}");
        }
    }

    #[test]
    fn first_line_of_values_is_not_a_header() {
        let mut columns = ColumnTypes::new(2, None, true);
        columns.learn_value(0, "x", 1);
        columns.learn_value(1, "5", 1);
        let line = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        assert!(columns.is_row_of_values(&line("y", "7")));
        assert!(!columns.is_row_of_values(&line("name", "count")));
        assert!(!columns.is_row_of_values(&line("name", "2024")), "a year is a name");
        assert!(!ColumnTypes::new(2, None, true).is_row_of_values(&line("a", "b")), "nothing has a type");
    }
}
