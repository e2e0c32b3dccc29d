//! Pages of entries in a total order: the best entries of a scan in a direction, in memory that depends on the size of
//! the page only.
//!
//! A page is right if the scan receives every row with the time of the cursor and every row with the time of the last
//! entry. A database that limits the rows itself must therefore include those with the same time as the last one
//! (`FETCH FIRST … ROWS WITH TIES`).
//!
//! From each batch, only the rows that may be in the page are copied. Their copies are joined from time to time, so
//! that a batch of which one row is left does not stay.

mod cursor;
mod entry_order;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt64Array, new_null_array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, interleave, take};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;

use self::cursor::SeenFilter;
use super::scan::LogBatch;
use super::value::display_value;

pub use self::cursor::{CURSOR_CHARACTERS_MAX, CursorError, LISTED_ROWS_MAX, LogCursor};
pub(super) use self::entry_order::RowHasher;
pub use self::entry_order::{EntryKey, EntryPositions, LogDirection, NO_TIME, SourceId, TieBreak};

/// Entries that follow each other in the total order.
#[derive(Debug, Clone)]
pub struct LogPage {
    /// The direction of the entries.
    pub direction: LogDirection,
    /// The entries, in the order of the direction.
    pub entries: Vec<LogEntry>,
    /// Where the next page begins, also if there is none yet. `None` if the page is empty and had no cursor.
    pub next: Option<LogCursor>,
    /// Whether the scan found entries that come after this page.
    pub has_more: bool,
    /// Where entries begin that were added after the scan. Only the first page backward has it; going forward, it is
    /// `next`.
    pub tail: Option<LogCursor>,
    /// What earlier pages returned of the time at which this page begins.
    start: Option<LogCursor>,
}

/// One entry: its place in the total order, and its row.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// The place in the total order.
    pub key: EntryKey,
    /// The number of the entry among those with the same key.
    pub ordinal: u64,
    /// A batch that contains the row, with the requested columns. Dictionaries are replaced by their values.
    pub batch: Arc<RecordBatch>,
    /// The row in the batch.
    pub row: usize,
}

impl LogPage {
    fn new(direction: LogDirection, entries: Vec<LogEntry>, has_more: bool, start: Option<LogCursor>) -> Self {
        let mut page = Self { direction, entries, next: None, has_more, tail: None, start };
        page.next = page.cursor_after(page.entries.len());
        page
    }

    /// Where the next page begins if this one ends after its first `count` entries. `None` if it then has none and had no
    /// cursor.
    pub fn cursor_after(&self, count: usize) -> Option<LogCursor> {
        let entries = self.entries.get(..count).unwrap_or(&self.entries);
        let Some(last) = entries.last() else { return self.start.clone() };
        let continued = self.start.as_ref().filter(|start| start.time() == last.key.time);
        let mut cursor = continued.cloned().unwrap_or_else(|| LogCursor::at_time(self.direction, last.key.time));
        for entry in entries.iter().filter(|entry| entry.key.time == last.key.time) {
            cursor.add(entry.key.source, entry.key.tie, entry.ordinal);
        }
        Some(cursor)
    }

    /// The entries as one batch with the columns of all sources, in the order in which they occur. A column that a source
    /// lacks is null in its rows; one that has several types is text in its display form.
    ///
    /// # Errors
    /// If Arrow cannot combine the rows.
    pub fn to_batch(&self) -> Result<RecordBatch, ArrowError> {
        let mut batches: Vec<&Arc<RecordBatch>> = Vec::new();
        let mut place_of: HashMap<usize, usize> = HashMap::new();
        let mut places = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let place = *place_of.entry(Arc::as_ptr(&entry.batch).addr()).or_insert_with(|| {
                batches.push(&entry.batch);
                batches.len() - 1
            });
            places.push((place, entry.row));
        }
        let mut fields: Vec<(Field, bool)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for field in batches.iter().flat_map(|batch| batch.schema_ref().fields()) {
            let place = *known.entry(field.name().clone()).or_insert_with(|| {
                fields.push((field.as_ref().clone(), true));
                fields.len() - 1
            });
            if let Some((first, is_uniform)) = fields.get_mut(place) {
                *is_uniform &= first.data_type() == field.data_type();
            }
        }
        let mut columns = Vec::with_capacity(fields.len());
        let mut schema = Vec::with_capacity(fields.len());
        for (field, is_uniform) in fields {
            let field = if is_uniform { field } else { Field::new(field.name(), DataType::Utf8, true) };
            let arrays: Vec<ArrayRef> = batches.iter().map(|batch| column(batch, &field)).collect();
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            columns.push(interleave(&arrays, &places)?);
            schema.push(field);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(schema)), columns, &options)
    }
}

/// The column `field` of `batch`, in the type of the field.
fn column(batch: &RecordBatch, field: &Field) -> ArrayRef {
    match batch.column_by_name(field.name()) {
        None => new_null_array(field.data_type(), batch.num_rows()),
        Some(array) if array.data_type() == field.data_type() => array.clone(),
        Some(array) => {
            let text = |row| array.is_valid(row).then(|| display_value(array.as_ref(), row));
            Arc::new((0..array.len()).map(text).collect::<StringArray>())
        }
    }
}

/// The maximum size of the entries of a page in bytes. A page with larger entries is shorter than its limit, and has more
/// entries after it.
pub const PAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Rows with the same key.
#[derive(Debug)]
struct EntryGroup {
    count: u64,
    /// The number of the first of them among all rows with this key.
    first_ordinal: u64,
    row: RowPlace,
}

#[derive(Debug, Clone)]
enum RowPlace {
    /// In the batch that is being offered.
    Offered(usize),
    Copied(Arc<RecordBatch>, usize),
}

/// Collects the first `limit` entries after a cursor, in a direction.
#[derive(Debug)]
pub(super) struct EntryPool {
    direction: LogDirection,
    limit: u64,
    columns: Option<Vec<String>>,
    filter: Option<SeenFilter>,
    groups: BTreeMap<EntryKey, EntryGroup>,
    entries: u64,
    /// The number of entries after the cursor, in the page or behind it.
    remaining: u64,
    copied_rows: usize,
    copied_bytes: usize,
    bytes_max: usize,
}

impl EntryPool {
    pub(super) fn new(
        direction: LogDirection,
        limit: usize,
        columns: Option<Vec<String>>,
        cursor: Option<&LogCursor>,
    ) -> Self {
        Self {
            direction,
            limit: limit as u64,
            columns,
            filter: cursor.map(|cursor| SeenFilter::new(cursor.clone())),
            groups: BTreeMap::new(),
            entries: 0,
            remaining: 0,
            copied_rows: 0,
            copied_bytes: 0,
            bytes_max: PAGE_BYTES_MAX,
        }
    }

    /// Offers `rows` of a batch that has these times.
    pub(super) fn offer(
        &mut self,
        offered: &LogBatch<'_>,
        times: &Int64Array,
        rows: &BooleanBuffer,
    ) -> Result<(), ArrowError> {
        let mut hasher = RowHasher::new(offered.batch);
        let mut candidates = self.candidates(offered, times, rows, &mut hasher);
        self.drop_late_candidates(&mut candidates);
        for (time, row, ordinal) in candidates {
            let tie = offered.positions.tie(row, &mut hasher);
            self.insert(EntryKey { time, source: offered.source, tie }, row, ordinal);
        }
        self.copy_offered(offered.batch)?;
        if self.copied_rows > 1_024 + 4 * self.groups.len() {
            self.join_copies()?;
        }
        if self.copied_bytes > self.bytes_max {
            self.shorten()?;
        }
        Ok(())
    }

    /// Drops the last entries until the others fit the maximum size.
    fn shorten(&mut self) -> Result<(), ArrowError> {
        self.join_copies()?;
        while self.copied_bytes > self.bytes_max && self.limit > 1 {
            self.limit = (self.entries.min(self.limit) / 2).max(1);
            while self.drop_last() {}
            self.join_copies()?;
        }
        Ok(())
    }

    /// The rows that come after the cursor and may be in the page: time, row, and number among rows with the same key.
    fn candidates(
        &mut self,
        offered: &LogBatch<'_>,
        times: &Int64Array,
        rows: &BooleanBuffer,
        hasher: &mut RowHasher<'_>,
    ) -> Vec<(i64, usize, u64)> {
        let direction = self.direction;
        let last_time = self.last_time();
        let mut candidates = Vec::new();
        for row in rows.set_indices() {
            let time = if times.is_valid(row) { times.value(row) } else { NO_TIME };
            let mut ordinal = 0;
            if let Some(filter) = &mut self.filter {
                let cursor_time = filter.cursor.time;
                if direction.is_before(&time, &cursor_time) {
                    continue;
                }
                if time == cursor_time {
                    let tie = offered.positions.tie(row, hasher);
                    let Some(admitted) = filter.admit(offered.source, tie) else { continue };
                    ordinal = admitted;
                }
            }
            self.remaining += 1;
            if last_time.is_none_or(|last| !direction.is_before(&last, &time)) {
                candidates.push((time, row, ordinal));
            }
        }
        candidates
    }

    /// The time of the last entry, if the page is full.
    fn last_time(&self) -> Option<i64> {
        if self.entries < self.limit {
            return None;
        }
        let last = match self.direction {
            LogDirection::Forward => self.groups.last_key_value(),
            LogDirection::Backward => self.groups.first_key_value(),
        };
        last.map(|(key, _)| key.time)
    }

    /// Drops candidates for which this batch alone has enough better ones, before keys are made for them.
    fn drop_late_candidates(&self, candidates: &mut Vec<(i64, usize, u64)>) {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        if limit == 0 {
            return candidates.clear();
        }
        if candidates.len() <= limit {
            return;
        }
        let mut times: Vec<i64> = candidates.iter().map(|(time, ..)| *time).collect();
        let order = |one: &i64, other: &i64| match self.direction {
            LogDirection::Forward => one.cmp(other),
            LogDirection::Backward => other.cmp(one),
        };
        let last = *times.select_nth_unstable_by(limit - 1, order).1;
        candidates.retain(|(time, ..)| !self.direction.is_before(&last, time));
    }

    fn insert(&mut self, key: EntryKey, row: usize, ordinal: u64) {
        let new = || EntryGroup { count: 0, first_ordinal: ordinal, row: RowPlace::Offered(row) };
        self.groups.entry(key).or_insert_with(new).count += 1;
        self.entries += 1;
        self.drop_last();
    }

    /// Drops the last rows with the same key if the others fill the page without them.
    fn drop_last(&mut self) -> bool {
        let last = match self.direction {
            LogDirection::Forward => self.groups.last_entry(),
            LogDirection::Backward => self.groups.first_entry(),
        };
        let last = last.filter(|last| self.entries - last.get().count >= self.limit);
        let dropped = last.map(|last| last.remove().count);
        self.entries -= dropped.unwrap_or(0);
        dropped.is_some()
    }

    /// Copies the rows of the current batch that are in the page.
    fn copy_offered(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let places = self.groups.values().filter_map(|group| match group.row {
            RowPlace::Offered(row) => Some(row as u64),
            RowPlace::Copied(..) => None,
        });
        let rows: Vec<u64> = places.collect();
        if rows.is_empty() {
            return Ok(());
        }
        self.copied_rows += rows.len();
        let copy = Arc::new(copy_rows(batch, rows, self.columns.as_deref())?);
        self.copied_bytes += copy.get_array_memory_size();
        let offered = self.groups.values_mut().filter(|group| matches!(group.row, RowPlace::Offered(_)));
        for (index, group) in offered.enumerate() {
            group.row = RowPlace::Copied(copy.clone(), index);
        }
        Ok(())
    }

    /// Copies the rows that are left of each copy, so that the memory of the others is freed.
    fn join_copies(&mut self) -> Result<(), ArrowError> {
        let mut left: BTreeMap<usize, (Arc<RecordBatch>, Vec<&mut RowPlace>)> = BTreeMap::new();
        for group in self.groups.values_mut() {
            if let RowPlace::Copied(batch, _) = &group.row {
                let batch = batch.clone();
                left.entry(Arc::as_ptr(&batch).addr()).or_insert((batch, Vec::new())).1.push(&mut group.row);
            }
        }
        self.copied_bytes = 0;
        for (batch, places) in left.into_values() {
            let row = |place: &&mut RowPlace| match place {
                RowPlace::Offered(row) | RowPlace::Copied(_, row) => *row as u64,
            };
            let copy = Arc::new(copy_rows(&batch, places.iter().map(row).collect(), None)?);
            self.copied_bytes += copy.get_array_memory_size();
            for (index, place) in places.into_iter().enumerate() {
                *place = RowPlace::Copied(copy.clone(), index);
            }
        }
        self.copied_rows = self.groups.len();
        Ok(())
    }

    /// The page, and the cursor after it.
    pub(super) fn finish(self) -> LogPage {
        let direction = self.direction;
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let mut entries: Vec<LogEntry> = Vec::new();
        let groups: Box<dyn Iterator<Item = (EntryKey, EntryGroup)>> = match direction {
            LogDirection::Forward => Box::new(self.groups.into_iter()),
            LogDirection::Backward => Box::new(self.groups.into_iter().rev()),
        };
        for (key, group) in groups {
            let RowPlace::Copied(batch, row) = group.row else { continue };
            let count = group.count.min((limit - entries.len()) as u64);
            entries.extend((0..count).map(|index| {
                let from_first = if direction == LogDirection::Forward { index } else { group.count - 1 - index };
                LogEntry { key, ordinal: group.first_ordinal + from_first, batch: batch.clone(), row }
            }));
        }
        let has_more = self.remaining > entries.len() as u64;
        let start = self.filter.map(|filter| filter.cursor);
        LogPage::new(direction, entries, has_more, start)
    }
}

/// The given rows and columns of a batch, without memory that they share with it.
fn copy_rows(batch: &RecordBatch, rows: Vec<u64>, columns: Option<&[String]>) -> Result<RecordBatch, ArrowError> {
    let count = rows.len();
    let rows = UInt64Array::from(rows);
    let mut fields = Vec::new();
    let mut copies: Vec<ArrayRef> = Vec::new();
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if columns.is_some_and(|columns| !columns.contains(field.name())) {
            continue;
        }
        let taken = take(array.as_ref(), &rows, None)?;
        let copy = match taken.data_type() {
            // Both would keep the values of all rows alive.
            DataType::Utf8View => Arc::new(taken.as_string_view().gc()) as ArrayRef,
            DataType::BinaryView => Arc::new(taken.as_binary_view().gc()) as ArrayRef,
            DataType::Dictionary(_, value) => cast(&taken, value)?,
            _ => taken,
        };
        let field = Field::new(field.name(), copy.data_type().clone(), true).with_metadata(field.metadata().clone());
        fields.push(field);
        copies.push(copy);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), copies, &options)
}

#[cfg(test)]
mod tests {
    use super::entry_order::{EntryPositions, SourceId};
    use super::*;

    #[test]
    fn a_page_with_large_entries_is_shorter_and_continues() {
        let text = "x".repeat(10_000);
        let texts: StringArray = (0..100).map(|_| Some(text.as_str())).collect();
        let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)]).unwrap();
        let mut cursor: Option<LogCursor> = None;
        let mut times = Vec::new();
        loop {
            let mut pool = EntryPool::new(LogDirection::Forward, 100, None, cursor.as_ref());
            pool.bytes_max = 100_000;
            for start in (0..100).step_by(10) {
                let part_times: Int64Array = (start..start + 10).map(Some).collect();
                let part = batch.slice(start as usize, 10);
                let positions = UInt64Array::from_iter_values(start as u64..start as u64 + 10);
                let positions = EntryPositions::Column(&positions);
                let offered = LogBatch { batch: &part, source: SourceId(0), positions };
                pool.offer(&offered, &part_times, &BooleanBuffer::new_set(10)).unwrap();
                assert!(pool.copied_bytes <= 100_000);
            }
            let page = pool.finish();
            assert!((1..10).contains(&page.entries.len()));
            times.extend(page.entries.iter().map(|entry| entry.key.time));
            cursor = page.next;
            if !page.has_more {
                break;
            }
        }
        assert_eq!(times, (0..100).collect::<Vec<i64>>());
    }
}
