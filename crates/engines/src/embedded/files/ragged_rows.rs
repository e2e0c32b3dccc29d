//! Lines before the header, and rows with fewer or more values than it: detection, and the option that fixes the problem.

use std::borrow::Cow;

use datafusion::arrow::datatypes::DataType;
use tidegate_ingest_formats::{CsvCharacters, CsvQuotes};

use super::csv_records::{CsvRecords, count_split_numbers};
use super::text_reader::ReadBudget;
use super::text_value::{infer_type, is_year};

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
            let has_typed_values = found.len() > PADDED_TITLES_MAX || record.fields().any(|field| is_typed(&field));
            let filled = last.map_or(0, |(position, _)| position + 1);
            let is_after_blank = is_blank || line > next_line;
            let split_numbers = if characters.delimiter == b',' { count_split_numbers(record.fields()) } else { 0 };
            let values = record.len();
            found.push(SampleRecord { line, values, filled, has_typed_values, split_numbers, is_after_blank });
            let breaks = |field: Cow<'_, str>| field.matches(char::from(characters.line_break)).count();
            next_line = line + 1 + record.fields().map(breaks).sum::<usize>();
            is_blank = filled == 0;
        }
    }
    found
}

fn is_typed(text: &str) -> bool {
    !text.is_empty() && !is_year(text) && infer_type(text, None) != DataType::Utf8
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
    count_title_lines(&records).or_else(|| count_preamble_lines(&records)).or_else(|| count_padded_lines(&records))
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
        let lines = count_title_lines(&with_found).or_else(|| count_padded_lines(&with_found));
        return lines.map(|lines| Preamble { lines, is_padded: true });
    }
    let with = |delimiter: u8| read_records(sample, CsvCharacters { delimiter, ..found });
    let count = |records: Vec<SampleRecord>| count_title_lines(&records).or_else(|| count_preamble_lines(&records));
    let lines = delimiters.iter().find_map(|&delimiter| count(with(delimiter)))?;
    Some(Preamble { lines, is_padded: false })
}

/// The number of lines before the header if an empty line separates titles from it: `Export`, `Created;today`. The header has
/// names only, and a row follows it.
fn count_title_lines(records: &[SampleRecord]) -> Option<usize> {
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
    after.first().filter(|_| is_titled && are_alike(after, usual)).map(|header| header.line)
}

/// Whether nearly all records, and more than one, have so many values.
fn are_alike(records: &[SampleRecord], values: usize) -> bool {
    let alike = records.iter().filter(|record| record.values == values).count();
    alike > 1 && alike * 10 >= records.len() * 9
}

/// Minimum number of records with equal length after a preamble.
const SIMILAR_RECORDS_MIN: usize = 3;

fn count_preamble_lines(records: &[SampleRecord]) -> Option<usize> {
    let (usual, _) = most_frequent_value_count(records).filter(|(usual, _)| *usual > 1)?;
    let begin = records.iter().position(|record| record.values == usual)?;
    let after = &records[begin..];
    let is_preamble = begin > 0
        // A header that lacks one or two names is not a preamble.
        && records.first().is_some_and(|first| first.values == 1 || first.values * 2 <= usual)
        && records[..begin].iter().all(|record| record.values < usual)
        && after.iter().filter(|record| record.values == usual).count() >= SIMILAR_RECORDS_MIN
        && are_alike(after, usual)
        // A row whose numbers have decimal commas is wider than its header.
        && !(after[0].split_numbers > 0 && records[begin - 1].values + after[0].split_numbers >= usual);
    is_preamble.then(|| after[0].line)
}

/// The number of lines before the header if spreadsheets padded them to its width, as in `Export of 2026;;`. The header must
/// look like one, because such a line may also be a header with few names.
fn count_padded_lines(records: &[SampleRecord]) -> Option<usize> {
    let (usual, _) = most_frequent_value_count(records).filter(|(usual, _)| *usual > 1)?;
    let begin = records.iter().position(|record| record.values == usual && !record.is_title(usual))?;
    let (before, after) = records.split_at(begin);
    let header = after.first()?;
    let is_preamble = before.iter().any(|record| record.filled > 0)
        && before.iter().all(|record| record.is_title(usual))
        && header.filled == usual
        && !header.has_typed_values
        && are_alike(after, usual);
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
