//! Filters by values through the indexes of a file: for each value there is a list of the entries that contain it.

use crate::entry_list::EntryList;
use crate::error::JournalError;
use crate::file::ObjectReader;

/// Entries must contain one of the values of the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMatch {
    /// The name of the field, such as `_SYSTEMD_UNIT`.
    pub field: String,
    /// The accepted values; none accepts nothing.
    pub values: Vec<Vec<u8>>,
}

/// The entries of a file that fulfil all matches.
pub(crate) struct MatchCursor {
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
    pub(crate) fn seek(&mut self, reader: &mut ObjectReader, from: u64) -> Result<Option<u64>, JournalError> {
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
