//! The entries of one file that a query needs, one after the other.

use std::sync::Arc;

use crate::entry_list::EntryList;
use crate::error::JournalError;
use crate::file::{EntryHead, JournalFile, ObjectReader};
use crate::matches::MatchCursor;
use crate::order::OrderedEntry;
use crate::query::JournalQuery;
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
