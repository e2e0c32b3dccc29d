//! The entries of one file that a query needs, one after the other.
//!
//! Lists of entries are in the order of the file: all of its entries, or those that contain a value. Filters by values read the
//! list of each value.

use std::sync::Arc;

use crate::file::{DataObject, EntryHead, JournalError, JournalFile, ObjectReader};
use crate::query::{JournalQuery, OrderedEntry};
use crate::values::{FieldSelection, FieldValue, ValueReader};

enum EntrySource {
    /// All entries from the first index to before the second.
    All(u64, u64),
    /// Those that fulfil the matches, between two positions in the file.
    Matches { cursor: MatchCursor, from: u64, last: u64 },
}

/// Why there is no next entry.
pub(crate) enum CursorError {
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
pub(crate) struct FileCursor {
    reader: ObjectReader,
    values: ValueReader,
    list: EntryList,
    source: EntrySource,
    is_backward: bool,
    since: u64,
    until: u64,
    /// Whether the range of time was found by bisection.
    relies_on_order: bool,
    last_realtime: Option<u64>,
    /// What was found when the file was opened.
    defects: Vec<JournalError>,
    pub(crate) current: Option<OrderedEntry>,
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
            EntrySource::All(low, high.max(low))
        } else {
            let (first, last) = (list.get(&mut reader, low)?, list.get(&mut reader, high - 1)?);
            let cursor = MatchCursor::open(&mut reader, &query.matches, query.is_backward, &mut defects)?;
            let (from, last) = if query.is_backward { (last, first) } else { (first, last) };
            EntrySource::Matches { cursor, from, last }
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
    pub(crate) fn advance(&mut self) -> Result<(), CursorError> {
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
            EntrySource::All(low, high) => {
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
            EntrySource::Matches { cursor, from, last } => {
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
    pub(crate) fn read_values(&mut self, values: &mut Vec<FieldValue>) -> Result<usize, JournalError> {
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
    fn of_value(reader: &mut ObjectReader, data: &DataObject) -> Self {
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
    fn partition_point(
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
