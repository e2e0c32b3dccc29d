//! Cuts a file at ends of lines or records.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use super::csv_scan::CsvScan;
use super::file_part::FilePart;

const SCANNED_BYTES: usize = 256 << 10;
/// A header of CSV is at most so long; a file with a longer one, or without rows, is sent whole.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// Where a file may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSyntax {
    /// After each line: NDJSON.
    Lines,
    /// After each record of CSV.
    Csv {
        /// What separates fields.
        delimiter: u8,
        /// Whether the first record has the names of the columns. All parts have it.
        has_header: bool,
    },
    /// Nowhere: other formats, and compressed files.
    Whole,
}

/// Returns the parts of a file, one after the other.
#[derive(Debug)]
pub struct PartCutter {
    file: Arc<File>,
    length: u64,
    syntax: RowSyntax,
    part_bytes: u64,
    header: Bytes,
    position: u64,
    lines: u64,
    is_over: bool,
}

impl PartCutter {
    /// Cuts `file`, which has `length` bytes, into parts of about `part_bytes`. A file that is not larger is one part.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn new(file: Arc<File>, length: u64, syntax: RowSyntax, part_bytes: u64) -> io::Result<Self> {
        let mut cutter =
            Self { file, length, syntax, part_bytes, header: Bytes::new(), position: 0, lines: 0, is_over: false };
        if let RowSyntax::Csv { has_header: true, .. } = syntax {
            match cutter.find_end(0, 1)? {
                end if end < length && end <= HEADER_BYTES_MAX => {
                    let mut header = vec![0; usize::try_from(end).map_err(io::Error::other)?];
                    cutter.file.read_exact_at(&mut header, 0)?;
                    cutter.header = header.into();
                }
                _ => cutter.syntax = RowSyntax::Whole,
            }
        }
        Ok(cutter)
    }

    /// Leaves out the lines before `line`. The first line is 1.
    ///
    /// # Errors
    /// When the file cannot be read, has no such line, or is of a format without lines.
    pub fn skip_to_line(&mut self, line: u64) -> io::Result<()> {
        if self.syntax == RowSyntax::Whole {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file cannot be cut at its lines"));
        }
        let mut buffer = vec![0; SCANNED_BYTES];
        while self.lines + 1 < line {
            let count = self.file.read_at(&mut buffer, self.position)?;
            let read = buffer.get(..count).unwrap_or_default();
            if read.is_empty() {
                let message = format!("the file has {} lines", self.lines);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            let left = usize::try_from(line - 1 - self.lines).unwrap_or(usize::MAX);
            let ends: Vec<usize> = read
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'\n')
                .map(|(index, _)| index + 1)
                .take(left)
                .collect();
            self.lines += ends.len() as u64;
            let is_found = ends.len() == left;
            self.position += match ends.last() {
                Some(end) if is_found => *end as u64,
                _ => count as u64,
            };
        }
        Ok(())
    }

    /// The next part; `None` after the last one. An empty file has one part, which is empty.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next_part(&mut self) -> io::Result<Option<FilePart>> {
        if self.is_over {
            return Ok(None);
        }
        let start = self.position;
        let end = self.find_end(start, self.part_bytes)?;
        let head = if start == 0 { Bytes::new() } else { self.header.clone() };
        let part = FilePart::read(self.file.clone(), head, (start, end), self.lines)?;
        self.position = end;
        self.lines = part.lines_to_end();
        self.is_over = end >= self.length;
        Ok(Some(part))
    }

    /// The first end of a record that is at least `bytes` after `start`, where a record begins.
    fn find_end(&self, start: u64, bytes: u64) -> io::Result<u64> {
        let earliest = start.saturating_add(bytes);
        if earliest >= self.length || self.syntax == RowSyntax::Whole {
            return Ok(self.length);
        }
        let mut scan = match self.syntax {
            RowSyntax::Csv { delimiter, .. } => Some(CsvScan::new(delimiter)),
            RowSyntax::Lines | RowSyntax::Whole => None,
        };
        // The ends of lines are found without what is before them.
        let mut position = if scan.is_some() { start } else { earliest.saturating_sub(1).max(start) };
        let mut buffer = vec![0; SCANNED_BYTES];
        loop {
            let count = match self.file.read_at(&mut buffer, position) {
                Ok(0) => return Ok(self.length),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for byte in buffer.iter().take(count) {
                position += 1;
                let is_end = scan.as_mut().map_or(*byte == b'\n', |scan| scan.ends_record(*byte));
                if is_end && position >= earliest {
                    return Ok(position.min(self.length));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use futures::{StreamExt as _, executor::block_on};
    use proptest::prelude::*;

    use super::*;

    fn parts(text: &str, syntax: RowSyntax, part_bytes: u64) -> Vec<FilePart> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut cutter = PartCutter::new(Arc::new(file), text.len() as u64, syntax, part_bytes).unwrap();
        std::iter::from_fn(|| cutter.next_part().unwrap()).collect()
    }

    fn body(part: &FilePart) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _entered = runtime.enter();
        let pieces: Vec<_> = block_on(part.stream(|_| {}).collect());
        String::from_utf8(pieces.into_iter().flat_map(|piece| piece.unwrap().to_vec()).collect()).unwrap()
    }

    #[test]
    fn csv_repeats_its_header_and_keeps_records_whole() {
        let syntax = RowSyntax::Csv { delimiter: b',', has_header: true };
        let text = "id,\"a\nb\"\n1,\"x\n\ny\"\n2,z\n3,w\n";
        let parts = parts(text, syntax, 12);
        let bodies: Vec<String> = parts.iter().map(body).collect();
        assert_eq!(bodies, ["id,\"a\nb\"\n1,\"x\n\ny\"\n", "id,\"a\nb\"\n2,z\n3,w\n"]);
        // Line 3 of the second body is the record after the header of two lines.
        assert_eq!((parts[1].file_line(3), parts[1].file_line(4)), (6, 7));
    }

    #[test]
    fn small_and_other_files_are_one_part() {
        assert_eq!(parts("{}\n{}\n", RowSyntax::Lines, 6).len(), 1);
        assert_eq!(parts("{}\n{}\n", RowSyntax::Whole, 2).len(), 1);
        assert_eq!(parts("", RowSyntax::Lines, 6).len(), 1);
        assert_eq!(parts("{}\n{}\n{}", RowSyntax::Lines, 2).len(), 3);
    }

    #[test]
    fn a_changed_file_breaks_off() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"{\"a\":1}\n").unwrap();
        let opened = Arc::new(file.reopen().unwrap());
        let part = PartCutter::new(opened, 8, RowSyntax::Lines, 100).unwrap().next_part().unwrap().unwrap();
        file.as_file().write_all_at(b"{\"a\":2}\n", 0).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _entered = runtime.enter();
        let pieces: Vec<_> = block_on(part.stream(|_| {}).collect());
        assert!(pieces.last().unwrap().is_err(), "{pieces:?}");
    }

    proptest! {
        #[test]
        fn parts_have_all_records_once(
            records in proptest::collection::vec(("[a-z0-9\"\n,]{0,8}", "[a-z]{0,5}"), 1..30),
            part_bytes in 1_u64..60,
        ) {
            let quoted: Vec<String> =
                records.iter().map(|(a, b)| format!("\"{}\",{b}\n", a.replace('"', "\"\""))).collect();
            let header = "first,second\n";
            let text = format!("{header}{}", quoted.concat());
            let found = parts(&text, RowSyntax::Csv { delimiter: b',', has_header: true }, part_bytes);
            let mut joined = String::new();
            for part in &found {
                let body = body(part);
                let rows = body.strip_prefix(header).unwrap();
                let mut rest = rows;
                // Each part consists of whole records.
                for record in quoted.iter().skip(quoted.len() - count_left(&quoted, joined.len())) {
                    match rest.strip_prefix(record.as_str()) {
                        Some(after) => rest = after,
                        None => break,
                    }
                }
                prop_assert_eq!(rest, "");
                joined.push_str(rows);
            }
            prop_assert_eq!(joined, quoted.concat());
        }
    }

    fn count_left(records: &[String], bytes: usize) -> usize {
        let mut before = 0;
        let done = records.iter().take_while(|record| {
            before += record.len();
            before <= bytes
        });
        records.len() - done.count()
    }
}
