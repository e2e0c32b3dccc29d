//! The entries of a page, read in the order of time up to its last one.
//!
//! The first statement finds the time of the entry after the last one of the page, the second reads all entries up to this
//! time. So all entries that have the time of the last one are read, and the page orders them as a scan does.
//!
//! The embedded engine would sort all rows for the first statement, and reads a small range of time by the statistics of
//! its files. So the entry is searched in a range that probably contains it, and then in larger ones.

use arrow::array::RecordBatch;
use tidegate_query::{QueryCondition, Selection, SortKey};
use tidegate_telemetry::logs::{LogDirection, NO_TIME, PageRequest, TimeRange};

use super::{Counting, CountingError, Matches, times};
use crate::source_columns::{ceil_microseconds, floor_microseconds};

/// The entry after the page is searched in a range that has so many times as many entries if they are evenly spread.
const SPARE_ENTRIES: u64 = 4;
/// How much larger the next range is.
const RANGE_GROWTH: i64 = 32;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

impl Counting<'_> {
    /// The rows among which are those of `page` and, if there are further ones, one more. `range` is that of the search up
    /// to its last match. `density` is what matches, for the size of small ranges; `None` if the database finds the newest
    /// rows by an index.
    pub(super) async fn read_page(
        &self,
        page: &PageRequest,
        range: TimeRange,
        density: Option<Matches>,
    ) -> Result<Vec<RecordBatch>, CountingError> {
        let Self { input, filters, time, .. } = self;
        let cursor = page.cursor.as_ref().map(|cursor| cursor.time());
        if cursor == Some(NO_TIME) {
            return Err(CountingError::NotCountable);
        }
        let boundary = self.boundary(page, range, density, cursor).await?;
        let (range, includes_no_time) = self.range_up_to(page.direction, range, boundary, cursor);
        let in_range = time.is_in(range).ok_or(CountingError::NotCountable)?;
        let in_time = match includes_no_time {
            true if range.is_unbounded() => None,
            true => Some(QueryCondition::Or(vec![in_range, time.is_null()])),
            false => Some(in_range),
        };
        let select = input.columns.iter().copied().map(Selection::column).collect();
        let spec = input.query(filters.matching(None, in_time), select);
        let batches = input.read(&spec).await?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        // Rows were deleted in between.
        if boundary.is_some() && rows <= page.limit {
            return Err(CountingError::NotCountable);
        }
        Ok(batches)
    }

    /// The time of the entry after as many as a page has; `None` if there are fewer.
    async fn boundary(
        &self,
        page: &PageRequest,
        mut range: TimeRange,
        density: Option<Matches>,
        cursor: Option<i64>,
    ) -> Result<Option<i64>, CountingError> {
        match (page.direction, cursor) {
            (LogDirection::Backward, Some(time)) => {
                let before = floor_microseconds(time);
                range.end = Some(range.end.map_or(before, |end| end.min(before)));
            }
            (LogDirection::Forward, Some(time)) => {
                let after = ceil_microseconds(time.saturating_add(1));
                range.start = Some(range.start.map_or(after, |start| start.max(after)));
            }
            (_, None) => {}
        }
        if range.start.zip(range.end).is_some_and(|(start, end)| start >= end) {
            return Ok(None);
        }
        for smaller in smaller_ranges(page, range, density) {
            if let Some(found) = self.boundary_within(page, smaller).await? {
                return Ok(Some(found));
            }
        }
        self.boundary_within(page, range).await
    }

    /// The time of the entry after as many as a page has, if `range` has so many.
    async fn boundary_within(&self, page: &PageRequest, range: TimeRange) -> Result<Option<i64>, CountingError> {
        let Self { input, filters, time, .. } = self;
        let time_column = input.source.columns.time.as_str();
        let time = time.is_in(range).ok_or(CountingError::NotCountable)?;
        let mut spec = input.query(filters.matching(None, Some(time)), vec![Selection::column(time_column)]);
        let descending = Some(page.direction == LogDirection::Backward);
        spec.order_by = vec![SortKey { column: time_column.to_owned(), descending }];
        spec.offset = page.limit as u64;
        // The statement returns one row more.
        spec.limit = 0;
        let batches = input.read(&spec).await?;
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else { return Ok(None) };
        let found = times(batch, time_column).ok_or(CountingError::NotCountable)?;
        found.first().copied().flatten().map(Some).ok_or(CountingError::NotCountable)
    }

    /// The range from the cursor to the boundary, both included with all entries of their microsecond, and whether entries without a time are needed.
    fn range_up_to(
        &self,
        direction: LogDirection,
        mut range: TimeRange,
        boundary: Option<i64>,
        cursor: Option<i64>,
    ) -> (TimeRange, bool) {
        let (first, last) = match direction {
            LogDirection::Backward => (boundary, cursor),
            LogDirection::Forward => (cursor, boundary),
        };
        if let Some(first) = first.map(floor_microseconds) {
            range.start = Some(range.start.map_or(first, |start| start.max(first)));
        }
        if let Some(end) = last.map(|last| ceil_microseconds(last.saturating_add(1))) {
            range.end = Some(range.end.map_or(end, |known| known.min(end)));
        }
        let reaches_no_time = match direction {
            LogDirection::Backward => boundary.is_none(),
            LogDirection::Forward => cursor.is_none(),
        };
        // Without bounds, entries without a time match.
        (range, self.input.request.range.is_unbounded() && reaches_no_time)
    }
}

/// Parts of `range` from its end where the page begins, each larger than the one before.
fn smaller_ranges(page: &PageRequest, range: TimeRange, density: Option<Matches>) -> Vec<TimeRange> {
    let Some(Matches { rows, times: Some((first, last)) }) = density else { return Vec::new() };
    let length = last.saturating_sub(first);
    let entries = (page.limit as u64 + 1).saturating_mul(SPARE_ENTRIES);
    if rows < entries.saturating_mul(SPARE_ENTRIES) {
        return Vec::new();
    }
    let mut width = ceil_microseconds(
        (length / i64::try_from(rows).unwrap_or(i64::MAX)).saturating_mul(i64::try_from(entries).unwrap_or(i64::MAX)),
    )
    .max(NANOS_PER_SECOND);
    let mut ranges = Vec::new();
    while width < length / 2 {
        ranges.push(match page.direction {
            LogDirection::Backward => {
                let end = range.end.map_or(last.saturating_add(1), |end| end.min(last.saturating_add(1)));
                let start = floor_microseconds(end.saturating_sub(width));
                TimeRange { start: Some(range.start.map_or(start, |known| known.max(start))), ..range }
            }
            LogDirection::Forward => {
                let start = range.start.map_or(first, |start| start.max(first));
                let end = ceil_microseconds(start.saturating_add(width));
                TimeRange { end: Some(range.end.map_or(end, |known| known.min(end))), ..range }
            }
        });
        width = width.saturating_mul(RANGE_GROWTH);
    }
    ranges
}
