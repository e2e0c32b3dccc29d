//! Entries and their values, which borrow from the reader's buffers; why an entry does not fit its format, and what was
//! changed in its text.

use std::fmt::{self, Write};

use crate::column::{EntryColumn, NormalizedSeverity};
use crate::schema::EntrySchema;

/// The maximum number of members of an entry; more are only in its text.
const MEMBERS_MAX: usize = 1_000;

/// The value of a column in one entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EntryValue<'a> {
    /// The entry has no such value.
    Null,
    /// UTF-8 text.
    Text(&'a str),
    /// A signed integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// Nanoseconds since 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// True or false.
    Boolean(bool),
}

/// One entry of a file. It lasts as long as the callback that receives it.
#[derive(Debug, Clone, Copy)]
pub struct ParsedEntry<'a> {
    pub(crate) schema: &'a EntrySchema,
    pub(crate) text: &'a str,
    pub(crate) reason: Option<&'a str>,
    pub(crate) offset: u64,
    /// The identity of the file, if the reader received it.
    pub(crate) file_id: Option<i64>,
    pub(crate) length: u64,
    pub(crate) fits: bool,
    pub(crate) fields: &'a EntryFields,
}

impl<'a> ParsedEntry<'a> {
    /// The whole entry: its lines without the last line break.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Why the entry did not fit, or how its text was repaired. `None` if it fitted as it was.
    #[must_use]
    pub fn parse_error(&self) -> Option<&'a str> {
        self.reason
    }

    /// Whether the entry has the form of its format. One that was only repaired does.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.fits
    }

    /// The offset of the first byte in the decompressed file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes of the file the entry has, with its line breaks. The next entry begins after them.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The schema of the entry.
    #[must_use]
    pub fn schema(&self) -> &'a EntrySchema {
        self.schema
    }

    /// The value of the column with this index in the schema. It has the type of the column or is null.
    #[must_use]
    pub fn value(&self, column: usize) -> EntryValue<'a> {
        if let Some(value) = self.schema.generated_value(self, column) {
            return value;
        }
        match self.fields.slot(column) {
            Slot::Null | Slot::Number(_) => EntryValue::Null,
            Slot::Text(piece) | Slot::Json(piece) => EntryValue::Text(self.fields.resolve(piece, self.text)),
            Slot::Integer(number) => EntryValue::Integer(number),
            Slot::Float(number) => EntryValue::Float(number),
            Slot::Timestamp(time) => EntryValue::Timestamp(time),
            Slot::Boolean(boolean) => EntryValue::Boolean(boolean),
        }
    }

    /// When the entry was written: nanoseconds since 1970-01-01 00:00:00 UTC.
    #[must_use]
    pub fn time(&self) -> Option<i64> {
        match self.value(self.schema.time_column()?) {
            EntryValue::Timestamp(time) => Some(time),
            _ => None,
        }
    }

    /// The text for people.
    #[must_use]
    pub fn message(&self) -> Option<&'a str> {
        match self.value(self.schema.message_column()?) {
            EntryValue::Text(message) => Some(message),
            _ => None,
        }
    }

    /// The severity, if the value of its column means one.
    #[must_use]
    pub fn severity(&self) -> Option<NormalizedSeverity> {
        let column = self.schema.severity_column()?;
        match self.value(column) {
            EntryValue::Text(raw) => NormalizedSeverity::from_raw(raw, self.schema.severity_scale()),
            EntryValue::Integer(number) => NormalizedSeverity::from_number(number, self.schema.severity_scale()),
            _ => None,
        }
    }
}

/// A part of the entry's text, or of the scratch text for what had to be changed, such as escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    start: u32,
    end: u32,
    is_scratch: bool,
}

impl Piece {
    /// Bytes of the entry's text. Entries are bounded far below 4 GiB.
    pub(crate) fn of_text(start: usize, end: usize) -> Self {
        Self::new(start, end, false)
    }

    fn new(start: usize, end: usize, is_scratch: bool) -> Self {
        let bounded = |position| u32::try_from(position).unwrap_or(u32::MAX);
        Self { start: bounded(start), end: bounded(end), is_scratch }
    }

    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The same piece with a later end.
    pub(crate) fn extended_to(self, end: usize) -> Self {
        Self { end: u32::try_from(end).unwrap_or(u32::MAX), ..self }
    }

    /// Whether the piece is a part of the entry's text that ends here.
    pub(crate) fn ends_at(self, end: usize) -> bool {
        !self.is_scratch && self.end as usize == end
    }
}

/// A value before it is given to a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Slot {
    Null,
    Text(Piece),
    /// The digits of a number, which the type of the column interprets.
    Number(Piece),
    /// A JSON array or object.
    Json(Piece),
    Integer(i64),
    Float(f64),
    Timestamp(i64),
    Boolean(bool),
}

/// A value with a name that the format does not fix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub(crate) name: Piece,
    pub(crate) value: Slot,
}

/// The values of the current entry. The buffers are used again for each entry.
#[derive(Debug, Default)]
pub(crate) struct EntryFields {
    slots: Vec<Slot>,
    members: Vec<Member>,
    scratch: String,
    dropped_members: usize,
    unread_time: Option<usize>,
    captures: Option<regex::CaptureLocations>,
}

impl EntryFields {
    /// Where the groups of a pattern are, made once per reader.
    pub(crate) fn captures(&mut self, regex: &regex::Regex) -> &mut regex::CaptureLocations {
        self.captures.get_or_insert_with(|| regex.capture_locations())
    }

    /// Where a group was found by the last match.
    pub(crate) fn capture(&self, group: usize) -> Option<(usize, usize)> {
        self.captures.as_ref()?.get(group)
    }

    /// Removes the values of the entry before.
    pub(crate) fn reset(&mut self, columns: usize) {
        self.slots.clear();
        self.slots.resize(columns, Slot::Null);
        self.members.clear();
        self.scratch.clear();
        self.dropped_members = 0;
        self.unread_time = None;
    }

    pub(crate) fn slot(&self, column: usize) -> Slot {
        self.slots.get(column).copied().unwrap_or(Slot::Null)
    }

    pub(crate) fn set(&mut self, column: usize, value: Slot) {
        if let Some(slot) = self.slots.get_mut(column) {
            *slot = value;
        }
    }

    /// The columns without a value get one of the bytes of the entry's text.
    pub(crate) fn set_text(&mut self, column: usize, start: usize, end: usize) {
        self.set(column, Slot::Text(Piece::of_text(start, end)));
    }

    pub(crate) fn push_member(&mut self, name: Piece, value: Slot) {
        if self.is_full() {
            self.dropped_members += 1;
        } else {
            self.members.push(Member { name, value });
        }
    }

    /// Whether further members are dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.members.len() >= MEMBERS_MAX
    }

    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn member(&self, index: usize) -> Option<Member> {
        self.members.get(index).copied()
    }

    pub(crate) fn dropped_members(&self) -> usize {
        self.dropped_members
    }

    /// Reports that the text of a column with the name of a time is none.
    pub(crate) fn mark_unread_time(&mut self, column: usize) {
        self.unread_time = self.unread_time.or(Some(column));
    }

    pub(crate) fn unread_time(&self) -> Option<usize> {
        self.unread_time
    }

    pub(crate) fn resolve<'a>(&'a self, piece: Piece, text: &'a str) -> &'a str {
        let source = if piece.is_scratch { self.scratch.as_str() } else { text };
        source.get(piece.start as usize..piece.end as usize).unwrap_or_default()
    }

    /// Writes to the scratch text and gives the piece that was written.
    pub(crate) fn write_scratch(&mut self, write: impl FnOnce(&mut String)) -> Piece {
        let start = self.scratch.len();
        write(&mut self.scratch);
        Piece::new(start, self.scratch.len(), true)
    }

    /// A copy of a piece at the end of the scratch text, so that more can be appended.
    pub(crate) fn append_piece(&mut self, piece: Piece, text: &str) {
        let range = piece.start as usize..piece.end as usize;
        if piece.is_scratch {
            if self.scratch.get(range.clone()).is_some() {
                self.scratch.extend_from_within(range);
            }
        } else {
            self.scratch.push_str(text.get(range).unwrap_or_default());
        }
    }

    pub(crate) fn scratch_len(&self) -> usize {
        self.scratch.len()
    }

    /// The scratch text since `start`, which ends here.
    pub(crate) fn scratch_since(&self, start: usize) -> Piece {
        Piece::new(start, self.scratch.len(), true)
    }

    pub(crate) fn scratch_mut(&mut self) -> &mut String {
        &mut self.scratch
    }

    /// Removes all values, of an entry that does not fit.
    pub(crate) fn clear_values(&mut self) {
        self.slots.fill(Slot::Null);
        self.members.clear();
        self.dropped_members = 0;
        self.unread_time = None;
    }
}

/// Why an entry does not have the form of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Something else was expected at this byte of the entry's text, counted from 1.
    Expected { what: &'static str, at: usize },
    /// The entry is blank.
    Blank,
    /// The lines before it already fill an entry.
    Continuation,
    /// The text does not match the pattern.
    NoMatch,
    /// The value of a column does not have the type that the pattern declares.
    ValueType { column: usize, expected: &'static str },
}

impl Misfit {
    /// `what` is missing after `before` bytes.
    pub(crate) fn expected(what: &'static str, before: usize) -> Self {
        Self::Expected { what, at: before + 1 }
    }
}

/// All defects of one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Defects {
    pub(crate) misfit: Option<Misfit>,
    pub(crate) has_invalid_utf8: bool,
    pub(crate) nul_bytes: usize,
    /// The bytes of the line that are not in the text.
    pub(crate) cut_bytes: u64,
    /// Members beyond the limit that are only in the text of the entry.
    pub(crate) dropped_members: usize,
    /// The column with the name of a time whose text is none.
    pub(crate) unread_time: Option<usize>,
}

impl Defects {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Defects {
    /// Appends the reasons to `out`.
    pub(crate) fn describe(&self, columns: &[EntryColumn], out: &mut String) {
        // Writing into memory cannot fail.
        let _ = self.write(columns, out);
    }

    fn write(&self, columns: &[EntryColumn], out: &mut String) -> fmt::Result {
        let name_of = |column: usize| columns.get(column).map_or("", |column| column.name.as_str());
        match self.misfit {
            None => {}
            Some(Misfit::Expected { what, at }) => write!(out, "expected {what} at byte {at}")?,
            Some(Misfit::Blank) => out.push_str("the line is blank"),
            Some(Misfit::Continuation) => {
                out.push_str("continues the entry before it, which has as many lines or bytes as an entry may have");
            }
            Some(Misfit::NoMatch) => out.push_str("the line does not match the pattern"),
            Some(Misfit::ValueType { column, expected }) => {
                write!(out, "the value of \"{}\" is not {expected}", name_of(column))?;
            }
        }
        let mut separator = if self.misfit.is_some() { "; " } else { "" };
        if self.has_invalid_utf8 {
            write!(out, "{separator}bytes that are not UTF-8 were replaced")?;
            separator = "; ";
        }
        if self.nul_bytes > 0 {
            write!(out, "{separator}{} NUL bytes were removed", self.nul_bytes)?;
            separator = "; ";
        }
        if self.cut_bytes > 0 {
            write!(out, "{separator}the line is too long, its last {} bytes were cut", self.cut_bytes)?;
            separator = "; ";
        }
        if self.dropped_members > 0 {
            write!(out, "{separator}{} fields are only in the text of the entry", self.dropped_members)?;
            separator = "; ";
        }
        if let Some(column) = self.unread_time {
            write!(out, "{separator}the value of \"{}\" is not a time in a known form", name_of(column))?;
        }
        Ok(())
    }
}
