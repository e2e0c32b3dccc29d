//! The parts of a file, each the body of one request, and where they are cut: at ends of lines or of records of CSV.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use futures::Stream;

/// So many bytes are read at once.
const PIECE_BYTES: usize = 256 << 10;

/// A part of a file. Its digest is known, so that the bytes that are sent are those that its key stands for.
#[derive(Debug, Clone)]
pub struct FilePart {
    file: Arc<File>,
    /// Sent before the bytes of the file: the header of CSV, in all parts but the first.
    head: Bytes,
    start: u64,
    end: u64,
    digest: [u8; 32],
    lines_before: u64,
    lines: u64,
}

impl FilePart {
    /// The bytes from `start` to `end` of `file`, after `head`. Reads them to compute their digest.
    ///
    /// # Errors
    /// When the file cannot be read, or is shorter.
    fn read(file: Arc<File>, head: Bytes, (start, end): (u64, u64), lines_before: u64) -> io::Result<Self> {
        let mut context = Context::new(&SHA256);
        let (mut position, mut lines) = (start, 0);
        while position < end {
            let piece = read_piece(&file, position, end)?;
            context.update(&piece);
            lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
            position += piece.len() as u64;
        }
        Ok(Self { file, head, start, end, digest: finish(context), lines_before, lines })
    }

    /// The position in the file.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The bytes of the file that it has.
    pub fn file_bytes(&self) -> u64 {
        self.end - self.start
    }

    /// The length of the body.
    pub fn body_bytes(&self) -> u64 {
        self.file_bytes() + self.head.len() as u64
    }

    /// A key for its rows from `scope`, its position and its bytes. Parts with the same key have the same rows.
    pub fn key(&self, scope: &str) -> String {
        let mut context = Context::new(&SHA256);
        for length in [scope.len() as u64, self.start, self.end, self.head.len() as u64] {
            context.update(&length.to_le_bytes());
        }
        context.update(scope.as_bytes());
        context.update(&self.head);
        context.update(&self.digest);
        hex::encode(finish(context))
    }

    /// The line of the file that is line `line` of the body. The first line is 1.
    pub fn file_line(&self, line: u64) -> u64 {
        let head_lines = self.head.iter().filter(|byte| **byte == b'\n').count() as u64;
        (line + self.lines_before).saturating_sub(head_lines)
    }

    /// The line breaks up to its end.
    pub fn lines_to_end(&self) -> u64 {
        self.lines_before + self.lines
    }

    /// The body. `on_bytes` receives how many bytes of the file were read. An error replaces the last bytes if the file
    /// was changed, so that nothing is stored.
    pub fn stream(
        &self,
        on_bytes: impl Fn(u64) + Send + Sync + 'static,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let listener = Arc::new(on_bytes);
        let reader = PartReader {
            head: Some(self.head.clone()).filter(|head| !head.is_empty()),
            position: self.start,
            context: Context::new(&SHA256),
            part: self.clone(),
        };
        futures::stream::unfold(Some(reader), move |reader| {
            let read = reader.map(|reader| reader.next());
            let listener = listener.clone();
            async move {
                let (piece, reader) = read?.await?;
                if let Ok((_, file_bytes)) = &piece {
                    listener(*file_bytes);
                }
                Some((piece.map(|(bytes, _)| bytes), reader))
            }
        })
    }

    /// The first bytes, at most `max`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn beginning(&self, max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.head.to_vec();
        let end = self.end.min(self.start.saturating_add(max as u64));
        let mut position = self.start;
        while position < end {
            let piece = read_piece(&self.file, position, end)?;
            position += piece.len() as u64;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

struct PartReader {
    head: Option<Bytes>,
    position: u64,
    context: Context,
    part: FilePart,
}

/// Bytes of the body, and how many of them are the file's.
type Piece = (Bytes, u64);

impl PartReader {
    /// The next bytes, with the reader of those after them. Nothing at the end.
    async fn next(mut self) -> Option<(io::Result<Piece>, Option<Self>)> {
        if let Some(head) = self.head.take() {
            return Some((Ok((head, 0)), Some(self)));
        }
        if self.position >= self.part.end {
            return None;
        }
        let step = move || {
            let read = self.read();
            (read, self)
        };
        match tokio::task::spawn_blocking(step).await {
            Ok((Ok(bytes), reader)) => {
                let length = bytes.len() as u64;
                Some((Ok((bytes, length)), Some(reader)))
            }
            Ok((Err(error), _)) => Some((Err(error), None)),
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    }

    fn read(&mut self) -> io::Result<Bytes> {
        let piece = read_piece(&self.part.file, self.position, self.part.end)?;
        self.position += piece.len() as u64;
        self.context.update(&piece);
        if self.position >= self.part.end && finish(self.context.clone()) != self.part.digest {
            return Err(changed());
        }
        Ok(piece.into())
    }
}

fn read_piece(file: &File, position: u64, end: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(end - position).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
    let mut piece = vec![0; length];
    loop {
        match file.read_at(&mut piece, position) {
            Ok(0) => return Err(changed()),
            Ok(count) => {
                piece.truncate(count);
                return Ok(piece);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file was changed while it was sent")
}

fn finish(context: Context) -> [u8; 32] {
    let mut digest = [0; 32];
    digest.iter_mut().zip(context.finish().as_ref()).for_each(|(to, from)| *to = *from);
    digest
}

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

/// Follows quotes in two ways: by where they may open and close a field, and by their number. A record ends only where
/// both agree, so that a quote in the wrong position never leads to a cut within a field.
#[derive(Debug)]
struct CsvScan {
    delimiter: u8,
    state: ScanState,
    has_odd_quotes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote within quotes: the closing one, or the first of two.
    Quote,
}

const QUOTE: u8 = b'"';

impl CsvScan {
    /// A scan that begins where a record begins.
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter, state: ScanState::FieldStart, has_odd_quotes: false }
    }

    /// Whether a record ends with `byte`, the next one.
    fn ends_record(&mut self, byte: u8) -> bool {
        if byte == QUOTE {
            self.has_odd_quotes = !self.has_odd_quotes;
            self.state = match self.state {
                ScanState::FieldStart | ScanState::Quote => ScanState::Quoted,
                ScanState::Quoted => ScanState::Quote,
                ScanState::Plain => ScanState::Plain,
            };
            return false;
        }
        if self.state == ScanState::Quoted {
            return false;
        }
        self.state = match byte == self.delimiter || byte == b'\n' {
            true => ScanState::FieldStart,
            false => ScanState::Plain,
        };
        byte == b'\n' && !self.has_odd_quotes
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use futures::StreamExt as _;
    use futures::executor::block_on;
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

    fn ends(text: &str) -> Vec<usize> {
        let mut scan = CsvScan::new(b',');
        text.bytes().enumerate().filter(|(_, byte)| scan.ends_record(*byte)).map(|(index, _)| index).collect()
    }

    #[test]
    fn records_end_outside_of_quotes() {
        assert_eq!(ends("a,b\n1,2\n"), [3, 7]);
        assert_eq!(ends("\"a\nb\",2\n3\n"), [7, 9]);
        assert_eq!(ends("\"a\"\"\n\"\"b\"\r\n3\n"), [10, 12]);
        // A quote within a field without quotes: no end is certain until the next such one.
        assert_eq!(ends("5\" pipe\n\"a\nb\"\n6\"\n7\n"), [16, 18]);
    }
}
