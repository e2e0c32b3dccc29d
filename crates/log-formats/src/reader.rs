//! From pieces of a file to entries, and from the bytes of an entry to text.

use std::sync::Arc;

use crate::entry::{Defects, EntryFields, Misfit, ParsedEntry};
use crate::format::LogFormat;
use crate::parse::cri::LineHead;
use crate::parse::{EntryText, LineKind, parse_entry};
use crate::schema::EntrySchema;
use crate::time::{TimeContext, TimeResolver};

/// Larger pieces are read in parts, so that the buffer stays small.
const PART_BYTES: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Entries are addressed by 32 bits.
const ENTRY_BYTES_LIMIT: usize = 1 << 30;

/// How large an entry may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryBounds {
    /// The maximum number of bytes of an entry of several lines, and of a line. A longer line is cut.
    pub bytes_max: usize,
    /// The maximum number of lines of an entry. Further lines make an entry of their own.
    pub lines_max: usize,
}

impl Default for EntryBounds {
    /// 1 MiB and 10,000 lines.
    fn default() -> Self {
        Self { bytes_max: 1 << 20, lines_max: 10_000 }
    }
}

/// Whether more bytes may follow those of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfInput {
    /// The file is complete: its last line is an entry even without a line break.
    Complete,
    /// The file is still being written: a last line without line break is left for the next reader.
    Growing,
}

/// How many entries a file had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryCounts {
    /// All entries.
    pub entries: u64,
    /// Entries that do not have the form of the format.
    pub misfits: u64,
    /// Entries that fit, but whose text was repaired or cut, or whose time could not be read.
    pub repaired: u64,
}

/// What is known at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedLogFile {
    /// How many entries there were.
    pub counts: EntryCounts,
    /// The offset after the last entry, from which a later reader of the growing file continues.
    pub resume_offset: u64,
}

/// Reads the entries of one file from its decompressed bytes, which arrive in pieces of any size.
#[derive(Debug)]
pub struct LogFileReader {
    lines: LineBuffer,
    open: Option<OpenEntry>,
    parser: EntryParser,
    bounds: EntryBounds,
}

/// The bytes of the open entry and of the line after it.
#[derive(Debug)]
struct LineBuffer {
    bytes: Vec<u8>,
    /// The index of the first byte of the incomplete line.
    line_start: usize,
    /// The offset of that byte in the file.
    line_offset: u64,
    /// The bytes of the incomplete line that are not stored, because it is too long.
    cut_bytes: u64,
}

/// A complete line.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    /// The end without the line break.
    end: usize,
    offset: u64,
    /// The bytes with the line break and with those that were cut.
    length: u64,
    cut_bytes: u64,
}

/// An entry that the next line may continue.
#[derive(Debug, Clone, Copy)]
struct OpenEntry {
    start: usize,
    /// The end of the last line that is not blank, without its line break.
    text_end: usize,
    offset: u64,
    length: u64,
    lines: usize,
    cut_bytes: u64,
    joins_other_lines: bool,
    is_overflow: bool,
    has_open_quote: bool,
    is_in_traceback: bool,
    /// What is before the last line of a container's program.
    container_line: Option<LineHead>,
}

#[derive(Debug)]
struct EntryParser {
    schema: Arc<EntrySchema>,
    times: TimeResolver,
    fields: EntryFields,
    repaired: String,
    reason: String,
    counts: EntryCounts,
    file_id: Option<i64>,
}

impl LogFileReader {
    /// A reader of a file with these columns.
    #[must_use]
    pub fn new(schema: Arc<EntrySchema>, context: TimeContext) -> Self {
        Self {
            lines: LineBuffer { bytes: Vec::new(), line_start: 0, line_offset: 0, cut_bytes: 0 },
            open: None,
            parser: EntryParser {
                schema,
                times: TimeResolver::new(context),
                fields: EntryFields::default(),
                repaired: String::new(),
                reason: String::new(),
                counts: EntryCounts::default(),
                file_id: None,
            },
            bounds: EntryBounds::default(),
        }
    }

    /// The same reader with other bounds. Values of 0 are 1, and entries have at most 1 GiB.
    #[must_use]
    pub fn with_bounds(mut self, bounds: EntryBounds) -> Self {
        let bytes_max = bounds.bytes_max.clamp(1, ENTRY_BYTES_LIMIT);
        self.bounds = EntryBounds { bytes_max, lines_max: bounds.lines_max.max(1) };
        self
    }

    /// The same reader for the bytes that begin at this offset of the file, which must be the beginning of a line.
    #[must_use]
    pub fn with_offset(mut self, offset: u64) -> Self {
        self.lines.line_offset = offset;
        self
    }

    /// The same reader for the file with this identity, which [`identify_log_file`](crate::identify_log_file) computes.
    #[must_use]
    pub fn with_file_id(mut self, file_id: i64) -> Self {
        self.parser.file_id = Some(file_id);
        self
    }

    /// The number of entries so far.
    #[must_use]
    pub fn counts(&self) -> EntryCounts {
        self.parser.counts
    }

    /// Reads the next bytes of the file and passes each entry that they complete to `receive`. An entry is complete when
    /// the next one begins.
    pub fn push(&mut self, bytes: &[u8], mut receive: impl FnMut(&ParsedEntry<'_>)) {
        for part in bytes.chunks(PART_BYTES) {
            self.push_part(part, &mut receive);
        }
    }

    /// Passes the last entry to `receive`.
    pub fn finish(mut self, end: EndOfInput, mut receive: impl FnMut(&ParsedEntry<'_>)) -> FinishedLogFile {
        if end == EndOfInput::Complete {
            let line_end = self.lines.bytes.len();
            if line_end > self.lines.line_start {
                let line = self.lines.take_line(line_end, 0, self.bounds.bytes_max);
                self.add_line(line, &mut receive);
            }
        }
        if let Some(entry) = self.open.take() {
            self.parser.emit(&self.lines.bytes, entry, &mut receive);
        }
        FinishedLogFile { counts: self.parser.counts, resume_offset: self.lines.line_offset }
    }

    fn push_part(&mut self, part: &[u8], receive: &mut impl FnMut(&ParsedEntry<'_>)) {
        let mut part = part;
        if self.lines.cut_bytes > 0 {
            let Some(end) = memchr::memchr(b'\n', part) else {
                self.lines.cut_bytes += part.len() as u64;
                return;
            };
            self.lines.cut_bytes += end as u64;
            let line = self.lines.take_line(self.lines.bytes.len(), 1, self.bounds.bytes_max);
            self.add_line(line, receive);
            part = part.get(end + 1..).unwrap_or_default();
            self.lines.line_start = self.lines.bytes.len();
        }
        let mut scanned = self.lines.bytes.len();
        self.lines.bytes.extend_from_slice(part);
        while let Some(found) = memchr::memchr(b'\n', self.lines.bytes.get(scanned..).unwrap_or_default()) {
            let line_end = scanned + found;
            let line = self.lines.take_line(line_end, 1, self.bounds.bytes_max);
            self.add_line(line, receive);
            scanned = line_end + 1;
        }
        self.lines.cut_incomplete_line(self.bounds.bytes_max);
        self.drop_read_bytes();
    }

    /// Removes the bytes of entries that were passed on.
    fn drop_read_bytes(&mut self) {
        let unread = self.open.map_or(self.lines.line_start, |entry| entry.start);
        if unread > 0 {
            self.lines.bytes.drain(..unread);
            self.lines.line_start -= unread;
            if let Some(entry) = &mut self.open {
                entry.start = 0;
                entry.text_end -= unread;
            }
        }
    }

    fn add_line(&mut self, line: Line, receive: &mut impl FnMut(&ParsedEntry<'_>)) {
        let mut content = self.lines.bytes.get(line.start..line.end).unwrap_or_default();
        let mut start = line.start;
        if line.offset == 0 && content.starts_with(BYTE_ORDER_MARK) {
            start += BYTE_ORDER_MARK.len();
            content = content.get(BYTE_ORDER_MARK.len()..).unwrap_or_default();
        }
        let format = self.parser.schema.format();
        let kind = LineKind::of_line(format, content);
        let changes_quote =
            matches!(format, LogFormat::PostgresCsv) && memchr::memchr_iter(b'"', content).count() % 2 == 1;
        let container_line = if matches!(format, LogFormat::Cri) { LineHead::find(content) } else { None };
        let joins = self.open.is_some_and(|entry| entry.is_continued_by(kind, container_line));
        let fits = self.open.is_some_and(|entry| entry.has_room(line, self.bounds));
        if let Some(entry) = self.open.as_mut().filter(|_| joins && fits) {
            entry.append(line, kind, changes_quote);
            entry.container_line = container_line.or(entry.container_line);
            return;
        }
        let is_head = kind == LineKind::Head;
        let is_overflow = joins;
        let entry = OpenEntry {
            start,
            text_end: line.end,
            offset: line.offset,
            length: line.length,
            lines: 1,
            cut_bytes: line.cut_bytes,
            joins_other_lines: is_overflow || (is_head && format.properties().joins_other_lines),
            is_overflow,
            has_open_quote: is_head && changes_quote && !is_overflow,
            is_in_traceback: kind == LineKind::Traceback,
            container_line,
        };
        if let Some(complete) = self.open.replace(entry) {
            self.parser.emit(&self.lines.bytes, complete, receive);
        }
    }
}

impl LineBuffer {
    /// The incomplete line as a line that ends at `end`, before `break_bytes` bytes of a line break.
    fn take_line(&mut self, end: usize, break_bytes: usize, bytes_max: usize) -> Line {
        let start = self.line_start;
        let stored = end.saturating_sub(start);
        let cut_bytes = self.cut_bytes + stored.saturating_sub(bytes_max) as u64;
        let length = (stored + break_bytes) as u64 + self.cut_bytes;
        let has_return = cut_bytes == 0 && stored > 0 && self.bytes.get(end - 1) == Some(&b'\r');
        let line_end = start + stored.min(bytes_max) - usize::from(has_return);
        let line = Line { start, end: line_end, offset: self.line_offset, length, cut_bytes };
        self.line_offset += length;
        self.line_start = end + break_bytes;
        self.cut_bytes = 0;
        line
    }

    fn cut_incomplete_line(&mut self, bytes_max: usize) {
        let stored = self.bytes.len().saturating_sub(self.line_start);
        if stored > bytes_max {
            self.cut_bytes += (stored - bytes_max) as u64;
            self.bytes.truncate(self.line_start + bytes_max);
        }
    }
}

impl OpenEntry {
    /// Whether a line belongs to this entry, if there is room.
    fn is_continued_by(self, kind: LineKind, container_line: Option<LineHead>) -> bool {
        if self.has_open_quote {
            return kind != LineKind::Head;
        }
        if let (Some(last), Some(next)) = (self.container_line, container_line) {
            // Lines of both streams alternate.
            if last.is_error_stream != next.is_error_stream {
                return false;
            }
            if last.is_partial || (kind == LineKind::Head && self.is_in_traceback) {
                return true;
            }
        }
        match kind {
            LineKind::Head => false,
            LineKind::Blank | LineKind::Trace | LineKind::Traceback => true,
            LineKind::Other => self.joins_other_lines || self.is_in_traceback,
        }
    }

    fn has_room(self, line: Line, bounds: EntryBounds) -> bool {
        let length = (line.end - self.start) as u64;
        self.lines < bounds.lines_max && length <= bounds.bytes_max as u64 && self.cut_bytes + line.cut_bytes == 0
    }

    fn append(&mut self, line: Line, kind: LineKind, changes_quote: bool) {
        self.lines += 1;
        self.length += line.length;
        if kind != LineKind::Blank || self.has_open_quote {
            self.text_end = line.end;
        }
        self.has_open_quote ^= changes_quote;
        self.is_in_traceback = match kind {
            LineKind::Traceback => true,
            LineKind::Head | LineKind::Other => false,
            LineKind::Blank | LineKind::Trace => self.is_in_traceback,
        };
    }
}

impl EntryParser {
    fn emit(&mut self, buffer: &[u8], entry: OpenEntry, receive: &mut impl FnMut(&ParsedEntry<'_>)) {
        let bytes = buffer.get(entry.start..entry.text_end).unwrap_or_default();
        let mut defects = Defects { cut_bytes: entry.cut_bytes, ..Defects::default() };
        let text = decode(bytes, &mut self.repaired, &mut defects);
        let columns = self.schema.columns();
        self.fields.reset(columns.len());
        defects.misfit = if text.trim_ascii().is_empty() {
            Some(Misfit::Blank)
        } else if entry.is_overflow {
            Some(Misfit::Continuation)
        } else {
            let text = EntryText::new(text);
            parse_entry(self.schema.format(), text, &mut self.times, &mut self.fields).err()
        };
        if defects.misfit.is_some() {
            self.fields.clear_values();
        } else {
            defects.dropped_members = self.fields.dropped_members();
            defects.unread_time = self.fields.unread_time();
            self.schema.assign_members(text, &mut self.fields, &mut self.times);
        }
        self.reason.clear();
        defects.describe(columns, &mut self.reason);
        self.counts.entries += 1;
        self.counts.misfits += u64::from(defects.misfit.is_some());
        self.counts.repaired += u64::from(defects.misfit.is_none() && !defects.is_empty());
        receive(&ParsedEntry {
            schema: &self.schema,
            text,
            reason: Some(self.reason.as_str()).filter(|reason| !reason.is_empty()),
            offset: entry.offset,
            file_id: self.file_id,
            length: entry.length,
            fits: defects.misfit.is_none(),
            fields: &self.fields,
        });
    }
}

/// Gives the text of `bytes`: the bytes themselves if they are UTF-8 without NUL, else a copy in `repaired`, in which NUL
/// bytes are removed and invalid bytes replaced.
fn decode<'a>(bytes: &'a [u8], repaired: &'a mut String, defects: &mut Defects) -> &'a str {
    let has_nul = memchr::memchr(0, bytes).is_some();
    match std::str::from_utf8(bytes) {
        Ok(text) if !has_nul => return text,
        // A line that was cut may end within a character, which is cut too.
        Err(error) if !has_nul && defects.cut_bytes > 0 && error.error_len().is_none() => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            return std::str::from_utf8(valid).unwrap_or_default();
        }
        _ => {}
    }
    repaired.clear();
    for chunk in bytes.utf8_chunks() {
        for part in chunk.valid().split('\0') {
            repaired.push_str(part);
        }
        if !chunk.invalid().is_empty() {
            defects.has_invalid_utf8 = true;
            repaired.push(char::REPLACEMENT_CHARACTER);
        }
    }
    defects.nul_bytes = memchr::memchr_iter(0, bytes).count();
    repaired
}
