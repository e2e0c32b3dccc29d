//! A query of a journal, and its entries from all files, in their order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cursor::{CursorError, EntryList, FieldMatch, FileCursor};
use crate::file::{EntryHead, Id128, JournalError, JournalFile};
use crate::folder::Journal;
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

/// The bits of a position that distinguish entries of the same number.
const TIE_BITS: u32 = 24;
/// The maximum number of files whose order is remembered.
const CHECKED_FILES_MAX: usize = 8_192;

/// An entry with the sequence that numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderedEntry {
    pub(crate) seqnum_id: Id128,
    pub(crate) head: EntryHead,
}

impl OrderedEntry {
    /// The order of `journalctl`: by the sequence of one writer, then by the time since the boot, then by time.
    fn compare(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.head, &other.head);
        let by_seqnum = if self.seqnum_id == other.seqnum_id { a.seqnum.cmp(&b.seqnum) } else { Ordering::Equal };
        let by_boot = || if a.boot_id == b.boot_id { a.monotonic.cmp(&b.monotonic) } else { Ordering::Equal };
        by_seqnum.then_with(by_boot).then_with(|| a.realtime.cmp(&b.realtime)).then_with(|| a.xor_hash.cmp(&b.xor_hash))
    }

    /// Whether both are one entry that is in two files.
    fn is_same(&self, other: &Self) -> bool {
        let (a, b) = (&self.head, &other.head);
        self.seqnum_id == other.seqnum_id
            && (a.seqnum, a.realtime, a.monotonic, a.boot_id, a.xor_hash)
                == (b.seqnum, b.realtime, b.monotonic, b.boot_id, b.xor_hash)
    }
}

/// A number that identifies an entry among those of the same time, and does not change when files are rotated. It is
/// in the order of sequence numbers.
pub fn position(seqnum_id: Id128, head: &EntryHead) -> u64 {
    let fold = |id: Id128| {
        let number = u128::from_be_bytes(id.0);
        (number ^ number >> 64) as u64
    };
    // One round of a multiplicative hash spreads the bits of all members.
    let mixed = (fold(seqnum_id) ^ fold(head.boot_id).rotate_left(17) ^ head.xor_hash ^ head.monotonic.rotate_left(41))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (head.seqnum << TIE_BITS | mixed >> (64 - TIE_BITS)) & (u64::MAX >> 1)
}

/// What is known about files, whatever their names: whether their entries are in the order of their times. Cheap to
/// clone.
#[derive(Debug, Clone, Default)]
pub struct CheckedFiles(Arc<Mutex<HashMap<Id128, OrderCheck>>>);

#[derive(Debug, Clone, Copy)]
struct OrderCheck {
    entries: u64,
    last_realtime: u64,
    is_ordered: bool,
}

impl CheckedFiles {
    /// Whether the entries of `file` are in the order of their times, so that a range of time can be found by bisection.
    ///
    /// journald begins a new file when the clock goes backwards. Files of other writers are read once.
    fn is_time_ordered(&self, file: &JournalFile) -> bool {
        let known = self.0.lock().get(&file.header.file_id).copied();
        if let Some(known) = known
            && (!known.is_ordered || known.entries >= file.header.entries)
        {
            return known.is_ordered;
        }
        if known.is_none() && is_of_journald(file) {
            return true;
        }
        let start = known.unwrap_or(OrderCheck { entries: 0, last_realtime: 0, is_ordered: true });
        // A corrupted file is read in full, so that its defects are reported.
        let check = check_order(file, start).unwrap_or(OrderCheck { is_ordered: false, ..start });
        self.store(file, check);
        check.is_ordered
    }

    /// Remembers that the entries of `file` are not in the order of their times.
    fn mark_unordered(&self, file: &JournalFile) {
        self.store(file, OrderCheck { entries: 0, last_realtime: 0, is_ordered: false });
    }

    fn store(&self, file: &JournalFile, check: OrderCheck) {
        let mut files = self.0.lock();
        if files.len() >= CHECKED_FILES_MAX {
            files.clear();
        }
        files.insert(file.header.file_id, check);
    }
}

fn is_of_journald(file: &JournalFile) -> bool {
    let name = file.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.starts_with("system") || name.starts_with("user-")
}

fn check_order(file: &JournalFile, mut check: OrderCheck) -> Result<OrderCheck, JournalError> {
    let mut reader = file.reader();
    let mut list = EntryList::all(&mut reader);
    if let Some(defect) = list.defect.take() {
        return Err(defect);
    }
    for index in check.entries..list.length {
        let offset = list.get(&mut reader, index)?;
        let realtime = reader.entry_head(offset)?.realtime;
        if realtime < check.last_realtime {
            return Ok(OrderCheck { is_ordered: false, ..check });
        }
        (check.entries, check.last_realtime) = (index + 1, realtime);
    }
    check.entries = file.header.entries;
    Ok(check)
}
