//! Rows with fewer or more values than the header: detection, and the option that fixes the problem.

use tidegate_ingest_formats::{CsvCharacters, CsvQuotes};

use super::csv_records::CsvRecords;
use super::text_reader::ReadBudget;

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
}

/// The records of a sample. The last one may be cut, and counts only with its line break.
fn read_records(sample: &[u8], characters: CsvCharacters) -> Vec<SampleRecord> {
    let characters = CsvCharacters { quotes: CsvQuotes::Anywhere, ..characters };
    let mut records = CsvRecords::new(sample, ReadBudget::new(usize::MAX), characters, None, 0);
    let mut found = Vec::new();
    while let Ok(Some(record)) = records.next() {
        if record.has_line_break() {
            let line = usize::try_from(record.line - 1).unwrap_or(usize::MAX);
            found.push(SampleRecord { line, values: record.len() });
        }
    }
    found
}

fn most_frequent_value_count(records: &[SampleRecord]) -> Option<(usize, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for record in records {
        *counts.entry(record.values).or_insert(0_usize) += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count)
}

/// The option that skips the lines before the table of a file that begins with `sample`: `skip: 3`.
pub(crate) fn suggest_skip(sample: &[u8], characters: CsvCharacters) -> Option<String> {
    count_preamble_lines(&read_records(sample, characters)).map(|lines| format!("skip: {lines}"))
}

/// The number of lines before the header, if one of `delimiters` shows that the table starts later. `None` if `found`,
/// the delimiter of the first line, gives most rows the same number of values as that line.
pub(crate) fn detect_preamble(sample: &[u8], found: CsvCharacters, delimiters: &[u8]) -> Option<usize> {
    let with_found = read_records(sample, found);
    let usual = most_frequent_value_count(&with_found).map(|(values, _)| values);
    if usual.is_some_and(|values| values > 1) && with_found.first().map(|first| first.values) == usual {
        return None;
    }
    let with = |delimiter: u8| read_records(sample, CsvCharacters { delimiter, ..found });
    delimiters.iter().find_map(|&delimiter| count_preamble_lines(&with(delimiter)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_preamble_and_counts_its_lines() {
        let detect = |text: &[u8], found: u8| detect_preamble(text, CsvCharacters::new(found, b'"'), b",;");
        let text = b"Sales of 2024\nmade by us\n\nid;name;price\n1;a;2\n2;\"b\nb\";3\n3;c;4\n";
        assert_eq!(detect(text, b','), Some(3));
        assert_eq!(detect(b"a;b\n1;2,5\n3;4,5\n5;6,5\n", b';'), None);
        assert_eq!(detect(b"text\nhello, you\nnothing here\nwell, well, well\n", b','), None);
        assert_eq!(suggest_skip(b"x\ny\na,b\n1,2\n3,4\n5,6\n", CsvCharacters::new(b',', b'"')).unwrap(), "skip: 2");
    }
}
