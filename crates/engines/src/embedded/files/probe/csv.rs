//! CSV: the delimiter from the first line, the names from the header, the types from sampled rows.
//!
//! The first line is always the header. Types are guessed from the first rows and, in large files,
//! from some rows further on; a row beyond them that does not fit is found by the reader, which
//! widens the column for the next question.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, StringArray};
use datafusion::arrow::compute::kernels::cast_utils::Parser;
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::csv::reader::Format;
use datafusion::arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, Schema, TimestampMicrosecondType};
use datafusion::arrow::error::ArrowError;
use regex::Regex;

use super::super::kind::Compression;
use super::super::limits::FileLimits;
use super::super::text::{Allowance, first_byte, open_text, problem_of};
use super::super::told::{CsvDialect, TextTable};
use super::super::widen::{Bend, TEXT_TIMESTAMP, wider};
use super::{Probed, Shape, text_column};

/// Delimiters that the first line is searched for, the likeliest first.
const DELIMITERS: &[u8] = b",;\t|";
/// Files above this size are looked into further on as well.
const SPOTS_ABOVE_BYTES: u64 = 4 << 20;
/// Where, in fourths of the file.
const SPOTS: [u64; 3] = [1, 2, 3];
/// How many rows there.
const SPOT_ROWS: usize = 200;

type Open<'a> = &'a dyn Fn() -> Result<File, String>;

/// A CSV file that is looked into.
pub(super) struct CsvFile<'a> {
    pub(super) open: Open<'a>,
    pub(super) compression: Compression,
    /// What its name says of the delimiter.
    pub(super) delimiter: Option<u8>,
    pub(super) bytes: u64,
    /// What its owner tells of it.
    pub(super) told: &'a TextTable,
}

/// Looks into a CSV file.
pub(super) fn probe(file: &CsvFile<'_>, limits: &FileLimits) -> Result<Probed, String> {
    let CsvFile { open, compression, delimiter, bytes, told } = *file;
    let allowance = || Allowance::of(limits.row_bytes_max);
    let mut text = open_text(open()?, compression, allowance())?;
    let first = first_byte(&mut text).map_err(|error| problem_of(&error, compression))?;
    if first.is_none() {
        return Err("the file is empty: it has no header".to_owned());
    }
    let start = text.fill_buf().map_err(|error| problem_of(&error, compression))?;
    if start.contains(&0) {
        return Err("it is no text".to_owned());
    }
    let found = told.delimiter.or(delimiter).unwrap_or_else(|| delimiter_of(start));
    let dialect = CsvDialect::new(found, told);
    let names = column_names(&header_of(open()?, compression, dialect, allowance())?);
    if let Some(unknown) = told.columns.keys().find(|column| !names.contains(column)) {
        return Err(format!("the configuration gives a type to {unknown:?}, but its columns are {}", names.join(", ")));
    }
    let untyped = |types: &[DataType]| {
        Arc::new(Schema::new(
            names.iter().zip(types).map(|(name, data_type)| text_column(name, data_type.clone())).collect::<Vec<_>>(),
        ))
    };
    let all_text = untyped(&vec![DataType::Utf8; names.len()]);
    let as_told = |types: &[DataType]| {
        let told_or_found = |(name, found): (&String, &DataType)| {
            told.columns.get(name).map_or_else(|| found.clone(), |column| column.data_type())
        };
        untyped(&names.iter().zip(types).map(told_or_found).collect::<Vec<_>>())
    };

    let builder = || written_as(ReaderBuilder::new(all_text.clone()), dialect);
    let mut rows = builder()
        .with_header(dialect.has_header)
        .with_batch_size(limits.inferred_rows)
        .build_buffered(open_text(open()?, compression, allowance())?)
        .map_err(|error| reason_of(&error, compression))?;
    let sample = rows.next().transpose().map_err(|error| reason_of(&error, compression))?;
    let mut types = vec![DataType::Null; names.len()];
    let Some(sample) = sample else {
        return Ok(Probed {
            shape: Shape::Csv(dialect),
            schema: as_told(&types),
            rows: Some(0),
            row_bytes: None,
            statistics: None,
        });
    };
    learn(&mut types, &sample);
    if compression == Compression::None && bytes > SPOTS_ABOVE_BYTES {
        for spot in SPOTS {
            let rows = builder().with_batch_size(SPOT_ROWS);
            // A spot may fall into a quoted line break and then make no sense; it is only a help.
            if let Some(sample) = rows_at(open()?, bytes * spot / 4, rows) {
                learn(&mut types, &sample);
            }
        }
    }
    let is_all = sample.num_rows() < limits.inferred_rows;
    Ok(Probed {
        shape: Shape::Csv(dialect),
        schema: as_told(&types),
        rows: is_all.then_some(sample.num_rows() as u64),
        row_bytes: Some(row_bytes(&sample)),
        statistics: None,
    })
}

/// The delimiter that stands most often in the first line, outside quotes.
fn delimiter_of(start: &[u8]) -> u8 {
    let mut counts = [0_usize; DELIMITERS.len()];
    let mut in_quotes = false;
    for &byte in start {
        match byte {
            b'"' => in_quotes = !in_quotes,
            b'\n' if !in_quotes => break,
            _ if in_quotes => {}
            _ => {
                if let Some(index) = DELIMITERS.iter().position(|&delimiter| delimiter == byte) {
                    counts[index] += 1;
                }
            }
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|&count| count == most).map_or(b',', |index| DELIMITERS[index])
}

/// A reader of files that are written in `dialect`.
pub(crate) fn written_as(builder: ReaderBuilder, dialect: CsvDialect) -> ReaderBuilder {
    let mut builder = builder.with_delimiter(dialect.delimiter).with_quote(dialect.quote);
    if let Some(comment) = dialect.comment {
        builder = builder.with_comment(comment);
    }
    match dialect.null().and_then(null_pattern) {
        Some(null) => builder.with_null_regex(null),
        None => builder,
    }
}

/// The text for null, or nothing at all.
fn null_pattern(null: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{})?$", regex::escape(null))).ok()
}

/// The values of the first line; without a header as many names as it has values.
pub(crate) fn header_of(
    file: File,
    compression: Compression,
    dialect: CsvDialect,
    allowance: Allowance,
) -> Result<Vec<String>, String> {
    let text = open_text(file, compression, allowance)?;
    let mut format =
        Format::default().with_header(dialect.has_header).with_delimiter(dialect.delimiter).with_quote(dialect.quote);
    if let Some(comment) = dialect.comment {
        format = format.with_comment(comment);
    }
    if !dialect.has_header {
        let (schema, _) = format.infer_schema(text, Some(1)).map_err(|error| reason_of(&error, compression))?;
        return Ok(vec![String::new(); schema.fields().len()]);
    }
    let (schema, _) = format.infer_schema(text, Some(0)).map_err(|error| reason_of(&error, compression))?;
    Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
}

/// Names for the columns of a header: none empty, none twice.
pub(crate) fn column_names(header: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = Vec::with_capacity(header.len());
    for (index, value) in header.iter().enumerate() {
        let wanted = match value.trim() {
            "" => format!("column_{}", index + 1),
            name => name.to_owned(),
        };
        let mut name = wanted.clone();
        let mut number = 2;
        while taken.contains(&name) || (name != wanted && header.contains(&name)) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Rows from somewhere within a file, beginning at the next line.
fn rows_at(mut file: File, position: u64, rows: ReaderBuilder) -> Option<RecordBatch> {
    file.seek(SeekFrom::Start(position)).ok()?;
    let mut text = BufReader::new(file.take(SPOTS_ABOVE_BYTES));
    text.skip_until(b'\n').ok()?;
    rows.build_buffered(text).ok()?.next()?.ok()
}

fn learn(types: &mut [DataType], sample: &RecordBatch) {
    for (data_type, column) in types.iter_mut().zip(sample.columns()) {
        let Some(values) = column.as_any().downcast_ref::<StringArray>() else { continue };
        for value in values.iter().flatten() {
            if *data_type == DataType::Utf8 {
                break;
            }
            *data_type = wider(data_type, &type_of(value), Bend::ToText).unwrap_or(DataType::Utf8);
        }
    }
}

/// The narrowest type that the reader parses `value` as.
fn type_of(value: &str) -> DataType {
    let digits = value.strip_prefix('-').unwrap_or(value);
    // A number with leading zeros is a code, and a number would lose them.
    let is_code = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = value.trim().len() != value.len();
    let is_word = digits.bytes().all(|byte| byte.is_ascii_alphabetic());
    if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") {
        DataType::Boolean
    } else if is_code || is_padded || value.starts_with('+') || (is_word && !matches!(digits, "NaN" | "nan" | "inf")) {
        DataType::Utf8
    } else if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits beyond 64 bits stay text, exactly.
        if Int64Type::parse(value).is_some() { DataType::Int64 } else { DataType::Utf8 }
    } else if Float64Type::parse(value).is_some() {
        DataType::Float64
    } else if value.len() == 10 && Date32Type::parse(value).is_some() {
        DataType::Date32
    } else if value.len() > 10 && TimestampMicrosecondType::parse(value).is_some() {
        TEXT_TIMESTAMP
    } else {
        DataType::Utf8
    }
}

fn row_bytes(sample: &RecordBatch) -> u64 {
    let text: usize = sample
        .columns()
        .iter()
        .filter_map(|column| column.as_any().downcast_ref::<StringArray>())
        .map(|values| values.value_data().len())
        .sum();
    let rows = sample.num_rows().max(1);
    (text / rows + sample.num_columns()) as u64
}

/// What is wrong with the file, for people.
fn reason_of(error: &ArrowError, compression: Compression) -> String {
    match error {
        ArrowError::IoError(_, error) => problem_of(error, compression),
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
    fn values_tell_their_type() {
        let cases = [
            ("12", DataType::Int64),
            ("-7", DataType::Int64),
            ("0", DataType::Int64),
            ("007", DataType::Utf8),
            ("99999999999999999999", DataType::Utf8),
            ("1.5", DataType::Float64),
            ("-1e3", DataType::Float64),
            ("NaN", DataType::Float64),
            ("infinity", DataType::Utf8),
            ("True", DataType::Boolean),
            ("2024-02-29", DataType::Date32),
            ("2024-02-30", DataType::Utf8),
            ("2024-02-29 10:00:00", TEXT_TIMESTAMP),
            ("2024-02-29T10:00:00.123456Z", TEXT_TIMESTAMP),
            ("-", DataType::Utf8),
            (" 1", DataType::Utf8),
            ("+1", DataType::Utf8),
            ("NA", DataType::Utf8),
        ];
        for (value, expected) in cases {
            assert_eq!(type_of(value), expected, "{value}");
        }
    }

    #[test]
    fn the_first_line_tells_the_delimiter() {
        assert_eq!(delimiter_of(b"a,b;c,d\n1;2;3;4"), b',');
        assert_eq!(delimiter_of(b"a;\"b,c,d\";e\n"), b';');
        assert_eq!(delimiter_of(b"a|b\n"), b'|');
        assert_eq!(delimiter_of(b"only\n"), b',');
    }

    #[test]
    fn no_column_is_nameless_or_twice() {
        let names = |header: &[&str]| {
            column_names(&header.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>()).join("|")
        };
        assert_eq!(names(&["a", "", "a", " b "]), "a|column_2|a_2|b");
        assert_eq!(names(&["a", "a", "a_2"]), "a|a_3|a_2");
    }
}
