//! Lines before the header, and rows with fewer or more values than it: detection, and the option that fixes the problem.

use std::borrow::Cow;

use datafusion::arrow::datatypes::DataType;
use tidegate_ingest_formats::{CsvCharacters, CsvQuotes};

use super::csv_records::{CsvRecords, count_split_numbers};
use super::number_evidence::is_local_value;
use super::number_format::is_null_marker;
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
    use super::*;

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
