//! A query of a journal: the entries of each file that it needs, one after the other, and its entries from all files.
//!
//! Filters by values read the indexes of a file: for each value there is a list of the entries that contain it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::journal::file::{EntryHead, JournalError, JournalFile, ObjectReader};
use crate::journal::folder::Journal;
use crate::journal::header::Id128;
use crate::journal::order::{CheckedFiles, EntryList, OrderedEntry};
use crate::journal::values::{FieldSelection, FieldValue, ValueReader};

/// The defects of one file after which the rest of it is not read.
const DEFECTS_MAX: usize = 100;

/// Which entries are read, in which order.
#[derive(Debug, Clone)]
pub struct JournalQuery {
    /// Entries must fulfil all of them.
    pub matches: Vec<FieldMatch>,
    /// The earliest time, in microseconds since 1970.
    pub since: Option<u64>,
    /// The time before which all entries are, in microseconds since 1970.
    pub until: Option<u64>,
    /// Whether the newest entry comes first.
    pub is_backward: bool,
    /// The fields that are read.
    pub fields: FieldSelection,
}

impl Default for JournalQuery {
    fn default() -> Self {
        Self { matches: Vec::new(), since: None, until: None, is_backward: false, fields: FieldSelection::All }
    }
}

/// An entry, or what is in its place.
#[derive(Debug, Clone)]
pub enum ReadEntry {
    /// An entry, whose values are in the list that the caller passed.
    Entry {
        /// The fixed members.
        head: EntryHead,
        /// The sequence of its number.
        seqnum_id: Id128,
        /// The values that are missing because they are too large.
        oversized_values: usize,
    },
    /// A part of a file that cannot be read.
    Defect(JournalError),
}

/// Reads the entries of a journal. Blocks the thread.
pub struct JournalReader {
    groups: Vec<FileGroup>,
    query: Arc<JournalQuery>,
    last: Option<OrderedEntry>,
    defects: VecDeque<JournalError>,
    checked: CheckedFiles,
}

/// The files of one writer, whose entries are compared by their sequence numbers.
struct FileGroup {
    /// Files that have not begun, the next one last.
    waiting: Vec<(JournalFile, bool)>,
    active: Vec<ActiveFile>,
}

struct ActiveFile {
    cursor: FileCursor,
    defects: usize,
}

impl Journal {
    /// Reads the entries that `query` needs.
    pub fn read(&self, query: JournalQuery) -> JournalReader {
        let mut groups: BTreeMap<Id128, Vec<(JournalFile, bool)>> = BTreeMap::new();
        let needs_order = query.since.is_some() || query.until.is_some();
        for file in self.files.iter().filter(|file| file.header.entries > 0) {
            let relies_on_order = needs_order && self.checked.is_time_ordered(file);
            let is_outside = query.since.is_some_and(|since| file.header.tail_realtime < since)
                || query.until.is_some_and(|until| file.header.head_realtime >= until);
            if relies_on_order && is_outside {
                continue;
            }
            groups.entry(file.header.seqnum_id).or_default().push((file.clone(), relies_on_order));
        }
        let group = |mut waiting: Vec<(JournalFile, bool)>| {
            waiting.sort_by_key(|(file, _)| beginning(file, &query));
            if !query.is_backward {
                waiting.reverse();
            }
            FileGroup { waiting, active: Vec::new() }
        };
        let groups = groups.into_values().map(group).collect();
        let query = Arc::new(query);
        JournalReader { groups, query, last: None, defects: VecDeque::new(), checked: self.checked.clone() }
    }
}

/// The sequence number of the entry of `file` that is read first.
fn beginning(file: &JournalFile, query: &JournalQuery) -> u64 {
    if query.is_backward { file.header.tail_seqnum } else { file.header.head_seqnum }
}

impl JournalReader {
    /// The next entry; its values replace `values`.
    ///
    /// # Errors
    /// If the entries of a file are not in the order that the query relies on. The next query does not rely on it.
    pub fn next_entry(&mut self, values: &mut Vec<FieldValue>) -> Result<Option<ReadEntry>, JournalError> {
        loop {
            if let Some(defect) = self.defects.pop_front() {
                return Ok(Some(ReadEntry::Defect(defect)));
            }
            let Some((group, file)) = self.next_file()? else {
                if self.defects.is_empty() { return Ok(None) } else { continue }
            };
            let Some(active) = self.groups.get_mut(group).and_then(|group| group.active.get_mut(file)) else {
                return Ok(None);
            };
            let Some(entry) = active.cursor.current else { return Ok(None) };
            let is_repeated = self.last.is_some_and(|last| last.is_same(&entry));
            let read = if is_repeated { Ok(0) } else { active.cursor.read_values(values) };
            self.last = Some(entry);
            self.advance(group, file)?;
            if is_repeated {
                continue;
            }
            return Ok(Some(match read {
                Ok(oversized_values) => {
                    ReadEntry::Entry { head: entry.head, seqnum_id: entry.seqnum_id, oversized_values }
                }
                Err(error) => ReadEntry::Defect(error),
            }));
        }
    }

    /// The file with the next entry, as a group and an active file.
    fn next_file(&mut self) -> Result<Option<(usize, usize)>, JournalError> {
        let mut best: Option<(usize, usize, OrderedEntry)> = None;
        for group in 0..self.groups.len() {
            let Some((file, entry)) = self.first_of_group(group)? else { continue };
            if best.is_none_or(|(_, _, other)| self.is_before(&entry, &other)) {
                best = Some((group, file, entry));
            }
        }
        Ok(best.map(|(group, file, _)| (group, file)))
    }

    /// The file with the next entry of a group. Files are opened when their first entry may be the next one.
    fn first_of_group(&mut self, index: usize) -> Result<Option<(usize, OrderedEntry)>, JournalError> {
        loop {
            let Some(group) = self.groups.get(index) else { return Ok(None) };
            let mut first: Option<(usize, OrderedEntry)> = None;
            for (file, active) in group.active.iter().enumerate() {
                if let Some(entry) = active.cursor.current
                    && first.is_none_or(|(_, other)| self.is_before(&entry, &other))
                {
                    first = Some((file, entry));
                }
            }
            let Some((next, _)) = group.waiting.last() else { return Ok(first) };
            let start = beginning(next, &self.query);
            let may_be_next = first.is_none_or(|(_, entry)| {
                if self.query.is_backward { start >= entry.head.seqnum } else { start <= entry.head.seqnum }
            });
            if !may_be_next {
                return Ok(first);
            }
            self.open_next(index)?;
        }
    }

    fn open_next(&mut self, index: usize) -> Result<(), JournalError> {
        let Some(group) = self.groups.get_mut(index) else { return Ok(()) };
        let Some((file, relies_on_order)) = group.waiting.pop() else { return Ok(()) };
        let fields = Arc::new(self.query.fields.clone());
        match FileCursor::open(&file, &self.query, &fields, relies_on_order) {
            Ok(cursor) => {
                group.active.push(ActiveFile { cursor, defects: 0 });
                let last = group.active.len() - 1;
                self.advance(index, last)
            }
            Err(error) => {
                self.defects.push_back(error);
                Ok(())
            }
        }
    }

    /// Moves a file to its next entry, or closes it at its end.
    fn advance(&mut self, group: usize, file: usize) -> Result<(), JournalError> {
        let Some(files) = self.groups.get_mut(group).map(|group| &mut group.active) else { return Ok(()) };
        let Some(active) = files.get_mut(file) else { return Ok(()) };
        loop {
            match active.cursor.advance() {
                Ok(()) if active.cursor.current.is_some() => return Ok(()),
                Ok(()) => break,
                Err(CursorError::Unordered) => {
                    let file = active.cursor.file();
                    self.checked.mark_unordered(file);
                    let reason = "its entries are not in the order of their times; send the query again";
                    return Err(JournalError::new(&file.path, 0, reason));
                }
                Err(CursorError::Defect(error)) => {
                    active.defects += 1;
                    let is_last = active.defects >= DEFECTS_MAX;
                    let path = active.cursor.file().path.clone();
                    let offset = error.offset();
                    self.defects.push_back(error);
                    if is_last {
                        let reason = format!("the rest is not read after {DEFECTS_MAX} defects");
                        self.defects.push_back(JournalError::new(&path, offset, reason));
                        break;
                    }
                }
            }
        }
        files.swap_remove(file);
        Ok(())
    }

    fn is_before(&self, entry: &OrderedEntry, other: &OrderedEntry) -> bool {
        let ordering = entry.compare(other);
        ordering == if self.query.is_backward { Ordering::Greater } else { Ordering::Less }
    }
}

enum EntrySelection {
    /// All entries from the first index to before the second.
    All(u64, u64),
    /// Those that fulfil the matches, between two positions in the file.
    Matches { cursor: MatchCursor, from: u64, last: u64 },
}

/// Why there is no next entry.
enum CursorError {
    /// An entry cannot be read; there may be further ones.
    Defect(JournalError),
    /// The entries are not in the order of their times, although the query relies on it.
    Unordered,
}

impl From<JournalError> for CursorError {
    fn from(error: JournalError) -> Self {
        Self::Defect(error)
    }
}

/// Reads one file.
struct FileCursor {
    reader: ObjectReader,
    values: ValueReader,
    list: EntryList,
    source: EntrySelection,
    is_backward: bool,
    since: u64,
    until: u64,
    /// Whether the range of time was found by bisection.
    relies_on_order: bool,
    last_realtime: Option<u64>,
    /// What was found when the file was opened.
    defects: Vec<JournalError>,
    current: Option<OrderedEntry>,
}

impl FileCursor {
    pub(crate) fn open(
        file: &JournalFile,
        query: &JournalQuery,
        fields: &Arc<FieldSelection>,
        relies_on_order: bool,
    ) -> Result<Self, JournalError> {
        let mut reader = file.reader();
        let mut list = EntryList::all(&mut reader);
        let mut defects: Vec<JournalError> = list.defect.clone().into_iter().collect();
        let (since, until) = (query.since.unwrap_or(0), query.until.unwrap_or(u64::MAX));
        let (mut low, mut high) = (0, list.length);
        if relies_on_order {
            if query.since.is_some() {
                low = index_of_time(&mut list, &mut reader, since)?;
            }
            if query.until.is_some() {
                high = index_of_time(&mut list, &mut reader, until)?;
            }
        }
        let source = if query.matches.is_empty() || low >= high {
            EntrySelection::All(low, high.max(low))
        } else {
            let (first, last) = (list.get(&mut reader, low)?, list.get(&mut reader, high - 1)?);
            let cursor = MatchCursor::open(&mut reader, &query.matches, query.is_backward, &mut defects)?;
            let (from, last) = if query.is_backward { (last, first) } else { (first, last) };
            EntrySelection::Matches { cursor, from, last }
        };
        Ok(Self {
            reader,
            values: ValueReader::new(fields.clone()),
            list,
            source,
            is_backward: query.is_backward,
            since,
            until,
            relies_on_order,
            last_realtime: None,
            defects,
            current: None,
        })
    }

    pub(crate) fn file(&self) -> &JournalFile {
        &self.reader.file
    }

    /// Moves to the next entry in the range of time; `current` is `None` at the end.
    fn advance(&mut self) -> Result<(), CursorError> {
        self.current = None;
        if let Some(defect) = self.defects.pop() {
            return Err(CursorError::Defect(defect));
        }
        while let Some(offset) = self.next_offset()? {
            let head = self.reader.entry_head(offset)?;
            self.check_order(&head)?;
            if (self.since..self.until).contains(&head.realtime) {
                self.current = Some(OrderedEntry { seqnum_id: self.reader.file.header.seqnum_id, head });
                break;
            }
        }
        Ok(())
    }

    fn check_order(&mut self, head: &EntryHead) -> Result<(), CursorError> {
        let is_ordered = self.last_realtime.is_none_or(|last| match self.is_backward {
            true => head.realtime <= last,
            false => head.realtime >= last,
        });
        self.last_realtime = Some(head.realtime);
        if self.relies_on_order && !is_ordered { Err(CursorError::Unordered) } else { Ok(()) }
    }

    /// The position of the next entry. After an error, the entry is skipped.
    fn next_offset(&mut self) -> Result<Option<u64>, JournalError> {
        match &mut self.source {
            EntrySelection::All(low, high) => {
                if *low >= *high {
                    return Ok(None);
                }
                let index = if self.is_backward {
                    *high -= 1;
                    *high
                } else {
                    *low += 1;
                    *low - 1
                };
                let offset = self.list.get(&mut self.reader, index)?;
                // The writer counted the entry, and has not added it to the list yet.
                Ok(Some(offset).filter(|offset| *offset != 0))
            }
            EntrySelection::Matches { cursor, from, last } => {
                let is_beyond = |offset: u64| if self.is_backward { offset < *last } else { offset > *last };
                if is_beyond(*from) {
                    return Ok(None);
                }
                let start = *from;
                // After a defect of the lists, nothing more can be found.
                *from = if self.is_backward { 0 } else { u64::MAX };
                let found = cursor.seek(&mut self.reader, start)?.filter(|offset| !is_beyond(*offset));
                if let Some(offset) = found {
                    *from = if self.is_backward { offset - 1 } else { offset + 1 };
                }
                Ok(found)
            }
        }
    }

    /// Replaces `values` by those of the current entry, and returns how many are too large.
    fn read_values(&mut self, values: &mut Vec<FieldValue>) -> Result<usize, JournalError> {
        match &self.current {
            Some(entry) => self.values.read(&mut self.reader, entry.head.offset, values),
            None => Ok(0),
        }
    }
}

/// The index of the first entry at `time` or after it.
fn index_of_time(list: &mut EntryList, reader: &mut ObjectReader, time: u64) -> Result<u64, JournalError> {
    let range = (0, list.length);
    list.partition_point(reader, range, |reader, offset| Ok(reader.entry_head(offset)?.realtime < time))
}

/// Entries must contain one of the values of the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMatch {
    /// The name of the field, such as `_SYSTEMD_UNIT`.
    pub field: String,
    /// The accepted values; none accepts nothing.
    pub values: Vec<Vec<u8>>,
}

/// The entries of a file that fulfil all matches.
struct MatchCursor {
    matches: Vec<AnyOf>,
    is_backward: bool,
}

/// The entries that contain one of several values.
struct AnyOf {
    lists: Vec<ListCursor>,
}

struct ListCursor {
    list: EntryList,
    /// Forward: the first entry that may come. Backward: one more than the last that may come.
    index: u64,
}

impl MatchCursor {
    pub(crate) fn open(
        reader: &mut ObjectReader,
        matches: &[FieldMatch],
        is_backward: bool,
        defects: &mut Vec<JournalError>,
    ) -> Result<Self, JournalError> {
        let mut opened = Vec::with_capacity(matches.len());
        for of_field in matches {
            let mut lists = Vec::new();
            for value in &of_field.values {
                let payload = [of_field.field.as_bytes(), b"=", value].concat();
                if let Some(data) = reader.find_data(&payload)? {
                    let list = EntryList::of_value(reader, &data);
                    defects.extend(list.defect.clone());
                    lists.push(ListCursor { index: if is_backward { list.length } else { 0 }, list });
                }
            }
            opened.push(AnyOf { lists });
        }
        Ok(Self { matches: opened, is_backward })
    }

    /// The first entry at `from` or after it (backward: before it) that fulfils all matches.
    fn seek(&mut self, reader: &mut ObjectReader, from: u64) -> Result<Option<u64>, JournalError> {
        let mut target = from;
        loop {
            let start = target;
            for of_field in &mut self.matches {
                match of_field.seek(reader, target, self.is_backward)? {
                    Some(offset) => target = offset,
                    None => return Ok(None),
                }
            }
            if target == start {
                return Ok(Some(target));
            }
        }
    }
}

impl AnyOf {
    fn seek(&mut self, reader: &mut ObjectReader, from: u64, is_backward: bool) -> Result<Option<u64>, JournalError> {
        let mut nearest = None;
        for list in &mut self.lists {
            let found = if is_backward { list.seek_backward(reader, from)? } else { list.seek_forward(reader, from)? };
            nearest = match (nearest, found) {
                (Some(a), Some(b)) => Some(if is_backward { u64::max(a, b) } else { u64::min(a, b) }),
                (a, b) => a.or(b),
            };
        }
        Ok(nearest)
    }
}

impl ListCursor {
    fn seek_forward(&mut self, reader: &mut ObjectReader, from: u64) -> Result<Option<u64>, JournalError> {
        let (mut low, mut step) = (self.index, 1);
        // Most seeks are short: steps that double find the range for the binary search.
        let mut high = low;
        while high < self.list.length && self.list.get(reader, high)? < from {
            low = high + 1;
            high = high.saturating_add(step);
            step *= 2;
        }
        let range = (low, high.min(self.list.length));
        self.index = self.list.partition_point(reader, range, |_, offset| Ok(offset < from))?;
        Ok(Some(self.list.get(reader, self.index)?).filter(|offset| *offset != 0))
    }

    fn seek_backward(&mut self, reader: &mut ObjectReader, from: u64) -> Result<Option<u64>, JournalError> {
        let (mut high, mut step) = (self.index, 1);
        let mut low = high.saturating_sub(1);
        while high > 0 && self.list.get(reader, low)? > from {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        let end = self.list.partition_point(reader, (low, high), |_, offset| Ok(offset <= from))?;
        self.index = end;
        match end.checked_sub(1) {
            Some(last) => Ok(Some(self.list.get(reader, last)?).filter(|offset| *offset != 0)),
            None => Ok(None),
        }
    }
}
