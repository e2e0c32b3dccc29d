//! Rows with fewer or more values than the header: detection, and the option that fixes the problem.

use std::io::{self, BufRead, BufReader, Read};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteEffect {
    Nothing,
    EndsValue,
    EndsRow,
}

/// Splits CSV text. A quote is special only at the beginning of a value; a doubled quote stands for one.
#[derive(Debug, Clone, Copy)]
struct CsvSplitter {
    delimiter: u8,
    quote: u8,
    at_start: bool,
    in_quotes: bool,
    just_closed: bool,
}

impl CsvSplitter {
    fn new(delimiter: u8, quote: u8) -> Self {
        Self { delimiter, quote, at_start: true, in_quotes: false, just_closed: false }
    }

    fn advance(&mut self, byte: u8) -> ByteEffect {
        let (at_start, just_closed) = (self.at_start, self.just_closed);
        (self.at_start, self.just_closed) = (false, false);
        if self.in_quotes {
            self.in_quotes = byte != self.quote;
            self.just_closed = !self.in_quotes;
        } else if byte == self.quote && (at_start || just_closed) {
            self.in_quotes = true;
        } else if byte == b'\n' || byte == self.delimiter {
            self.at_start = true;
            return if byte == b'\n' { ByteEffect::EndsRow } else { ByteEffect::EndsValue };
        }
        ByteEffect::Nothing
    }
}

fn read_records(sample: &[u8], delimiter: u8, quote: u8) -> Vec<SampleRecord> {
    let mut records = Vec::new();
    let mut splitter = CsvSplitter::new(delimiter, quote);
    let (mut line, mut begun_at, mut values, mut is_empty) = (0, 0, 1, true);
    for &byte in sample {
        line += usize::from(byte == b'\n');
        match splitter.advance(byte) {
            ByteEffect::EndsRow => {
                if !is_empty {
                    records.push(SampleRecord { line: begun_at, values });
                }
                (begun_at, values, is_empty) = (line, 1, true);
            }
            ByteEffect::EndsValue => {
                values += 1;
                is_empty = false;
            }
            ByteEffect::Nothing => is_empty &= byte == b'\r',
        }
    }
    records
}

fn most_frequent_value_count(records: &[SampleRecord]) -> Option<(usize, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for record in records {
        *counts.entry(record.values).or_insert(0_usize) += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count)
}

/// The option that fixes a file that begins with `sample` and is split by `delimiter`: `skip: 3`, `ragged: fill`.
/// `None` if no option helps.
pub(crate) fn suggest_option(sample: &[u8], delimiter: u8, quote: u8) -> Option<String> {
    let records = read_records(sample, delimiter, quote);
    if let Some(lines) = count_preamble_lines(&records) {
        return Some(format!("skip: {lines}"));
    }
    let (header, rows) = records.split_first()?;
    let are_short = rows.iter().all(|row| row.values <= header.values);
    Some(if are_short { "ragged: fill" } else { "ragged: trim" }.to_owned())
}

/// The number of lines before the header, if one of `delimiters` shows that the table starts later. `None` if `found`,
/// the delimiter of the first line, gives most rows the same number of values as that line.
pub(crate) fn detect_preamble(sample: &[u8], found: u8, delimiters: &[u8], quote: u8) -> Option<usize> {
    let with_found = read_records(sample, found, quote);
    let usual = most_frequent_value_count(&with_found).map(|(values, _)| values);
    if usual.is_some_and(|values| values > 1) && with_found.first().map(|first| first.values) == usual {
        return None;
    }
    delimiters.iter().find_map(|&delimiter| count_preamble_lines(&read_records(sample, delimiter, quote)))
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

/// A text without the values beyond the last of `columns`.
pub(crate) struct TrimmedRows<R> {
    inner: R,
    splitter: CsvSplitter,
    columns: usize,
    values: usize,
}

impl<R: Read + Send> TrimmedRows<R> {
    pub(crate) fn open(inner: R, columns: usize, delimiter: u8, quote: u8) -> impl BufRead + Send {
        BufReader::new(Self { inner, splitter: CsvSplitter::new(delimiter, quote), columns, values: 1 })
    }

    fn accept_byte(&mut self, byte: u8) -> bool {
        match self.splitter.advance(byte) {
            ByteEffect::EndsRow => self.values = 1,
            ByteEffect::EndsValue => self.values += 1,
            ByteEffect::Nothing => {}
        }
        self.values <= self.columns
    }
}

impl<R: Read + Send> Read for TrimmedRows<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.inner.read(buffer)?;
            let mut kept = 0;
            for position in 0..read {
                let byte = buffer[position];
                if self.accept_byte(byte) {
                    buffer[kept] = byte;
                    kept += 1;
                }
            }
            if kept > 0 || read == 0 {
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_preamble_and_counts_its_lines() {
        let text = b"Sales of 2024\nmade by us\n\nid;name;price\n1;a;2\n2;\"b\nb\";3\n3;c;4\n";
        assert_eq!(detect_preamble(text, b',', b",;", b'"'), Some(3));
        assert_eq!(detect_preamble(b"a;b\n1;2,5\n3;4,5\n5;6,5\n", b';', b",;", b'"'), None);
        assert_eq!(detect_preamble(b"text\nhello, you\nnothing here\nwell, well, well\n", b',', b",;", b'"'), None);
    }

    #[test]
    fn suggests_option_for_ragged_rows() {
        assert_eq!(suggest_option(b"a,b,c\n1,2,3\n1,2\n1,2,3\n", b',', b'"').unwrap(), "ragged: fill");
        assert_eq!(suggest_option(b"a,b\n1,2\n1,2,3\n", b',', b'"').unwrap(), "ragged: trim");
        assert_eq!(suggest_option(b"x\ny\na,b\n1,2\n3,4\n5,6\n", b',', b'"').unwrap(), "skip: 2");
    }

    #[test]
    fn values_beyond_the_last_column_are_left_out() {
        let mut text = String::new();
        let rows = &b"a,b\n1,2,3\n\"x,\n\"\"y\",2,\"z\n\"\n5\" pipe,\n4\n"[..];
        TrimmedRows::open(rows, 2, b',', b'"').read_to_string(&mut text).unwrap();
        assert_eq!(text, "a,b\n1,2\n\"x,\n\"\"y\",2\n5\" pipe,\n4\n");
    }
}
