//! Lists of entries in the order of the file, all of its entries or those that contain a value, and the order of entries from
//! several files.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::journal::file::{DataObject, EntryHead, JournalError, JournalFile, ObjectReader};
use crate::journal::header::Id128;

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
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.head, &other.head);
        let by_seqnum = if self.seqnum_id == other.seqnum_id { a.seqnum.cmp(&b.seqnum) } else { Ordering::Equal };
        let by_boot = || if a.boot_id == b.boot_id { a.monotonic.cmp(&b.monotonic) } else { Ordering::Equal };
        by_seqnum.then_with(by_boot).then_with(|| a.realtime.cmp(&b.realtime)).then_with(|| a.xor_hash.cmp(&b.xor_hash))
    }

    /// Whether both are one entry that is in two files.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
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
    pub(crate) fn is_time_ordered(&self, file: &JournalFile) -> bool {
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
    pub(crate) fn mark_unordered(&self, file: &JournalFile) {
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

/// The maximum number of arrays in a list. Each array is larger than the one before it.
const SEGMENTS_MAX: usize = 10_000;

/// The part of a list that one array contains.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    items_offset: u64,
}

/// A list of entries with random access.
#[derive(Debug, Clone, Default)]
pub(crate) struct EntryList {
    /// The first entry that contains a value is not in an array.
    first: Option<u64>,
    segments: Vec<Segment>,
    pub(crate) length: u64,
    last_segment: usize,
    /// Why the rest of the list cannot be read.
    pub(crate) defect: Option<JournalError>,
}

impl EntryList {
    /// All entries of the file, as many as its header has.
    pub(crate) fn all(reader: &mut ObjectReader) -> Self {
        let header = reader.file.header.clone();
        Self::load(reader, None, header.entry_array_offset, header.entries)
    }

    /// The entries that contain `data`.
    pub(crate) fn of_value(reader: &mut ObjectReader, data: &DataObject) -> Self {
        let first = Some(data.entry_offset).filter(|offset| *offset != 0 && data.entries > 0);
        Self::load(reader, first, data.entry_array_offset, data.entries)
    }

    /// Reads where the arrays of the list are. A list with a defect ends before it.
    fn load(reader: &mut ObjectReader, first: Option<u64>, array: u64, length: u64) -> Self {
        let mut list = Self { first, length: u64::from(first.is_some()), ..Self::default() };
        let (mut offset, mut previous) = (array, 0);
        while offset != 0 && list.length < length {
            if offset <= previous || list.segments.len() >= SEGMENTS_MAX {
                list.defect = Some(reader.defect(offset, "a list of entries is a loop"));
                break;
            }
            let array = match reader.entry_array(offset) {
                Ok(array) => array,
                Err(error) => {
                    list.defect = Some(error);
                    break;
                }
            };
            list.segments.push(Segment { start: list.length, items_offset: array.items_offset });
            list.length = list.length.saturating_add(array.items).min(length);
            (previous, offset) = (offset, array.next);
        }
        list
    }

    /// The position of the entry `index` in the file; 0 after the last one.
    pub(crate) fn get(&mut self, reader: &mut ObjectReader, index: u64) -> Result<u64, JournalError> {
        if index >= self.length {
            return Ok(0);
        }
        if index == 0
            && let Some(first) = self.first
        {
            return Ok(first);
        }
        let ends = |segment: usize| self.segments.get(segment).map_or(self.length, |segment| segment.start);
        let begins = self.segments.get(self.last_segment).is_some_and(|segment| segment.start <= index);
        if !begins || ends(self.last_segment + 1) <= index {
            self.last_segment = self.segments.partition_point(|segment| segment.start <= index).saturating_sub(1);
        }
        let Some(segment) = self.segments.get(self.last_segment) else { return Ok(0) };
        reader.array_item(segment.items_offset, index - segment.start)
    }

    /// The first index whose entry does not fulfil `is_before`, which holds for the beginning of the list only.
    pub(crate) fn partition_point(
        &mut self,
        reader: &mut ObjectReader,
        (mut low, mut high): (u64, u64),
        mut is_before: impl FnMut(&mut ObjectReader, u64) -> Result<bool, JournalError>,
    ) -> Result<u64, JournalError> {
        while low < high {
            let middle = low + (high - low) / 2;
            let offset = self.get(reader, middle)?;
            if offset != 0 && is_before(reader, offset)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}
