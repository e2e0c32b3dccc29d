//! Lines before the header, and rows with fewer or more values than it: detection, and the option that fixes the problem.

use std::borrow::Cow;

use datafusion::arrow::datatypes::DataType;
use tidegate_ingest_formats::{CsvCharacters, CsvQuotes};

use super::csv_records::CsvRecords;
use super::text_reader::ReadBudget;
use super::text_value::infer_type;

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
    /// Whether one of its values has a type. The name of a column has none, unless it is a year. Unknown after the first
    /// records.
    has_typed_values: bool,
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
    let mut found = Vec::new();
    while let Ok(Some(record)) = records.next() {
        if record.has_line_break() {
            let line = usize::try_from(record.line - 1).unwrap_or(usize::MAX);
            let is_filled = |field: &Cow<'_, str>| !field.trim().is_empty();
            let last = record.fields().enumerate().filter(|(_, field)| is_filled(field)).last();
            let has_typed_values = found.len() > PADDED_TITLES_MAX || record.fields().any(|field| is_typed(&field));
            let filled = last.map_or(0, |(position, _)| position + 1);
            found.push(SampleRecord { line, values: record.len(), filled, has_typed_values });
        }
    }
    found
}

fn is_typed(text: &str) -> bool {
    let is_year = text.len() == 4 && text.parse().is_ok_and(|year: i32| (1800..2200).contains(&year));
    !text.is_empty() && !is_year && infer_type(text, None) != DataType::Utf8
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
    count_preamble_lines(&records).or_else(|| count_padded_lines(&records))
}

/// The lines before the header of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preamble {
    pub(crate) lines: usize,
    /// Whether they are as wide as the table, so that the first one could be a header with few names.
    pub(crate) is_padded: bool,
}

/// The lines before the header, if one of `delimiters` shows that the table starts later. `None` if `found`, the delimiter of
/// the first line, gives most rows the same number of values as that line, and the line is no padded title.
pub(crate) fn detect_preamble(sample: &[u8], found: CsvCharacters, delimiters: &[u8]) -> Option<Preamble> {
    let with_found = read_records(sample, found);
    let usual = most_frequent_value_count(&with_found).map(|(values, _)| values);
    if usual.is_some_and(|values| values > 1) && with_found.first().map(|first| first.values) == usual {
        return count_padded_lines(&with_found).map(|lines| Preamble { lines, is_padded: true });
    }
    let with = |delimiter: u8| read_records(sample, CsvCharacters { delimiter, ..found });
    let lines = delimiters.iter().find_map(|&delimiter| count_preamble_lines(&with(delimiter)))?;
    Some(Preamble { lines, is_padded: false })
}

/// Minimum number of records with equal length after a preamble.
const SIMILAR_RECORDS_MIN: usize = 3;

fn count_preamble_lines(records: &[SampleRecord]) -> Option<usize> {
    let (usual, _) = most_frequent_value_count(records).filter(|(usual, _)| *usual > 1)?;
    let begin = records.iter().position(|record| record.values == usual)?;
    let after = &records[begin..];
    let alike = after.iter().filter(|record| record.values == usual).count();
    let is_preamble = begin > 0
        // A header that lacks one or two names is not a preamble.
        && records[..begin].iter().all(|record| record.values == 1 || record.values * 2 <= usual)
        && alike >= SIMILAR_RECORDS_MIN
        && alike * 10 >= after.len() * 9;
    is_preamble.then(|| after[0].line)
}

/// The number of lines before the header if spreadsheets padded them to its width, as in `Export of 2026;;`. The header must
/// look like one, because such a line may also be a header with few names.
fn count_padded_lines(records: &[SampleRecord]) -> Option<usize> {
    let (usual, _) = most_frequent_value_count(records).filter(|(usual, _)| *usual > 1)?;
    let is_padded = |record: &SampleRecord| record.filled <= 1 || record.filled * 2 <= usual;
    let begin = records.iter().position(|record| record.values == usual && !is_padded(record))?;
    let (before, after) = records.split_at(begin);
    let header = after.first()?;
    let alike = after.iter().filter(|record| record.values == usual).count();
    let is_preamble = before.iter().any(|record| record.filled > 0)
        && before.iter().all(is_padded)
        && header.filled == usual
        && !header.has_typed_values
        && alike > 1
        && alike * 10 >= after.len() * 9;
    is_preamble.then_some(header.line)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // A header with one name, one that begins with the index of another program, and one that groups columns.
        assert_eq!(detect(b"id;;\n1;Ann;3\n2;Bob;4\n", b';'), None);
        assert_eq!(detect(b",value\n0,3\n1,4\n", b','), None);
        assert_eq!(detect(b"a;;b;\nx;y;z;w\nx;y;z;w\n", b';'), None);
        let count = |text: &[u8]| count_lines_before_header(text, CsvCharacters::new(b',', b'"'));
        assert_eq!(count(b"x\ny\na,b\n1,2\n3,4\n5,6\n"), Some(2));
    }
}
