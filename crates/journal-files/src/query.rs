//! A query of a journal, and its entries from all files.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::cursor::{CursorError, FileCursor};
use crate::error::JournalError;
use crate::file::{EntryHead, JournalFile};
use crate::folder::Journal;
use crate::header::Id128;
use crate::matches::FieldMatch;
use crate::order::{CheckedFiles, OrderedEntry};
use crate::values::{FieldSelection, FieldValue};

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
