//! Lists of entries: all entries of a file, or those that contain a value. The lists are in the order of the file.

use crate::error::JournalError;
use crate::file::{DataObject, ObjectReader};

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
