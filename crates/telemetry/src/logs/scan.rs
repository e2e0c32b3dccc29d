//! One pass over the batches of a log: facets, a histogram, a page, patterns and context, all over the same rows; and
//! what a database counted itself, so that its rows need not be scanned.
//!
//! The batches may come in any order. Memory depends on the request and its bounds, and not on the number of rows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array, Int64Array, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::error::ArrowError;
use thiserror::Error;

use super::facet::{AnyFacetCounter, FacetCounter, FieldFacet, NumberRangeCounter, NumberRanges, RareValues};
use super::histogram::{HistogramCounter, LogHistogram};
use super::page::{EntryPool, EntryPositions, LogCursor, LogDirection, LogPage, NO_TIME, RowHasher, SourceId};
use super::patterns::{LogPatterns, PatternCollector};
use super::request::{FacetRequest, LogRequestError, LogScanRequest};
use super::search::ConditionMatcher;
use super::time::time_column;
use super::value::{CodeScale, EncodedColumn, borrowed_text, write_display_value};

/// A batch of a source.
#[derive(Debug, Clone, Copy)]
pub struct LogBatch<'a> {
    /// The rows.
    pub batch: &'a RecordBatch,
    /// The source that they come from.
    pub source: SourceId,
    /// Their positions within the source.
    pub positions: EntryPositions<'a>,
}

/// A batch that cannot be scanned.
#[derive(Debug, Error)]
pub enum LogScanError {
    /// The batch has no column with the name of the time column, or its type has no times.
    #[error("the column {column:?} {problem}; the columns are {columns}")]
    TimeColumn {
        /// The time column.
        column: String,
        /// What is wrong with it.
        problem: String,
        /// The columns of the batch.
        columns: String,
    },
    /// Arrow cannot copy a row.
    #[error("a row of the log cannot be copied")]
    Arrow(#[from] ArrowError),
}

/// What a scan computed.
#[derive(Debug, Clone)]
pub struct LogScanAnswer {
    /// The number of rows that were scanned.
    pub evaluated: u64,
    /// The number of rows that match.
    pub matched: u64,
    /// The number of rows in the page.
    pub returned: u64,
    /// The time of the first and the last row that was scanned in the range, in nanoseconds UTC.
    pub seen_times: Option<(i64, i64)>,
    /// The values of each field, in the order of the request.
    pub facets: Vec<FacetAnswer>,
    /// The number of rows over time.
    pub histogram: Option<LogHistogram>,
    /// The page.
    pub page: Option<LogPage>,
    /// The patterns of messages.
    pub patterns: Option<LogPatterns>,
    /// The entries before the one of the context, nearest first, and those after it.
    pub context: Option<(LogPage, LogPage)>,
}

/// The values of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FacetAnswer {
    /// Single values.
    Values(FieldFacet),
    /// Ranges of numbers.
    Ranges(NumberRanges),
}

/// A scan in progress.
#[derive(Debug)]
pub struct LogScan {
    request: LogScanRequest,
    condition: Option<ConditionMatcher>,
    pub(super) facets: Vec<AnyFacetCounter>,
    pub(super) histogram: Option<HistogramCounter>,
    page: Option<EntryPool>,
    /// The newest matching rows, for the cursor to what is added later.
    newest: Option<LogCursor>,
    patterns: Option<PatternCollector>,
    context: Option<(EntryPool, EntryPool)>,
    evaluated: u64,
    pub(super) matched: u64,
    seen_times: Option<(i64, i64)>,
}

impl LogScan {
    /// Starts a scan.
    ///
    /// # Errors
    /// If the request exceeds a bound or contradicts itself.
    pub fn new(request: LogScanRequest) -> Result<Self, LogRequestError> {
        request.validate()?;
        let facet = |facet: &FacetRequest| match facet.ranges {
            Some(_) => AnyFacetCounter::Ranges(NumberRangeCounter::new()),
            None => AnyFacetCounter::Values(FacetCounter::new(request.facets.len())),
        };
        let histogram = request.histogram.as_ref();
        let context = request.context.as_ref().map(|context| {
            let pool = |direction, limit| {
                let cursor = LogCursor::at_entry(direction, context.key, context.ordinal);
                EntryPool::new(direction, limit, request.columns.clone(), Some(&cursor))
            };
            (pool(LogDirection::Backward, context.before), pool(LogDirection::Forward, context.after))
        });
        let page = request.page.as_ref();
        let is_first_backward =
            page.is_some_and(|page| page.direction == LogDirection::Backward && page.cursor.is_none());
        Ok(Self {
            condition: request.condition.as_ref().map(ConditionMatcher::new),
            facets: request.facets.iter().map(facet).collect(),
            histogram: histogram.map(|histogram| {
                let scale = histogram.field.as_deref().and_then(CodeScale::from_column_name);
                HistogramCounter::new(request.range, histogram.bars, histogram.series_max, scale)
            }),
            page: page
                .map(|page| EntryPool::new(page.direction, page.limit, request.columns.clone(), page.cursor.as_ref())),
            newest: is_first_backward.then(|| LogCursor::at_time(LogDirection::Forward, NO_TIME)),
            patterns: request.patterns.map(|_| PatternCollector::default()),
            context,
            evaluated: 0,
            matched: 0,
            seen_times: None,
            request,
        })
    }

    /// Scans the rows of a batch.
    ///
    /// # Errors
    /// If the batch has no times. The scan can go on with other batches.
    pub fn push(&mut self, input: &LogBatch<'_>) -> Result<(), LogScanError> {
        let times = self.times(input.batch)?;
        let candidates = self.candidates(input.batch, &times);
        let encoded = self.encode_fields(input.batch, &candidates);
        let selected = self.selected_rows(&candidates, &encoded);
        let all_but = |field: Option<&str>| {
            let others = selected.iter().filter(|(other, _)| Some(other.as_str()) != field);
            others.fold(candidates.clone(), |rows, (_, selected)| &rows & selected)
        };
        let rows = all_but(None);
        self.evaluated += input.batch.num_rows() as u64;
        self.matched += rows.count_set_bits() as u64;
        for (request, counter) in self.request.facets.iter().zip(&mut self.facets) {
            let Some(encoded) = encoded.get(request.field.as_str()) else { continue };
            let has_selection = selected.iter().any(|(field, _)| *field == request.field);
            let counts =
                if has_selection { encoded.count(&all_but(Some(&request.field))) } else { encoded.count(&rows) };
            for (value, count) in encoded.values().iter().zip(counts).filter(|(_, count)| *count > 0) {
                counter.add(value, count);
            }
        }
        self.count_bars(&rows, &times, &encoded);
        self.collect_patterns(input.batch, &rows, &times);
        self.offer_entries(input, &times, &rows)?;
        Ok(())
    }

    /// Offers the rows of a batch to the page alone. Call this for rows that were already counted
    /// ([`Self::add_counts`]).
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_entries(&mut self, input: &LogBatch<'_>) -> Result<(), LogScanError> {
        let times = self.times(input.batch)?;
        let seen_times = self.seen_times;
        let candidates = self.candidates(input.batch, &times);
        self.seen_times = seen_times;
        let encoded = self.encode_fields(input.batch, &candidates);
        let selected = self.selected_rows(&candidates, &encoded);
        let rows = selected.iter().fold(candidates.clone(), |rows, (_, selected)| &rows & selected);
        self.offer_entries(input, &times, &rows)?;
        Ok(())
    }

    fn histogram_field(&self) -> Option<&str> {
        self.request.histogram.as_ref()?.field.as_deref()
    }

    fn times(&self, batch: &RecordBatch) -> Result<Int64Array, LogScanError> {
        let column = &self.request.time_column;
        let array = batch.column_by_name(column);
        array.and_then(|array| time_column(array.as_ref())).ok_or_else(|| {
            let names: Vec<&str> = batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
            let problem = match array {
                Some(array) => format!("has the type {}, which has no times", array.data_type()),
                None => "does not exist".to_owned(),
            };
            LogScanError::TimeColumn { column: column.clone(), problem, columns: names.join(", ") }
        })
    }

    /// The rows that match everything but the selections.
    fn candidates(&mut self, batch: &RecordBatch, times: &Int64Array) -> BooleanBuffer {
        let (range, length) = (self.request.range, batch.num_rows());
        let rows = if range.is_unbounded() {
            BooleanBuffer::new_set(length)
        } else {
            let values = times.values();
            let is_inside = |row: usize| values.get(row).is_some_and(|time| range.contains(*time));
            let inside = BooleanBuffer::collect_bool(length, is_inside);
            times.nulls().map_or(inside.clone(), |nulls| &inside & nulls.inner())
        };
        for row in rows.set_indices().filter(|row| times.is_valid(*row)) {
            let time = times.value(row);
            let (first, last) = self.seen_times.unwrap_or((time, time));
            self.seen_times = Some((first.min(time), last.max(time)));
        }
        match &self.condition {
            Some(matcher) if rows.count_set_bits() > 0 => matcher.matching_rows(batch, &rows),
            _ => rows,
        }
    }

    /// The rows among `candidates` that each selection includes.
    fn selected_rows(
        &self,
        candidates: &BooleanBuffer,
        encoded: &HashMap<String, EncodedColumn<'_>>,
    ) -> Vec<(String, BooleanBuffer)> {
        let selections = self.request.selections.iter();
        selections
            .filter_map(|(field, values)| {
                let rows = encoded.get(field)?.filter(candidates, |value| values.contains(value));
                Some((field.to_owned(), rows))
            })
            .collect()
    }

    /// Each field of the request once, with the display values of the rows.
    fn encode_fields<'b>(&self, batch: &'b RecordBatch, rows: &BooleanBuffer) -> HashMap<String, EncodedColumn<'b>> {
        let selected = self.request.selections.iter().map(|(field, _)| field);
        let facets = self.request.facets.iter().map(|facet| facet.field.as_str());
        let series = self.request.histogram.iter().filter_map(|histogram| histogram.field.as_deref());
        let mut encoded = HashMap::new();
        for field in selected.chain(facets).chain(series) {
            if !encoded.contains_key(field) {
                encoded.insert(field.to_owned(), EncodedColumn::from_batch(batch, field, rows));
            }
        }
        encoded
    }

    fn count_bars(&mut self, rows: &BooleanBuffer, times: &Int64Array, encoded: &HashMap<String, EncodedColumn<'_>>) {
        let field = self.histogram_field().map(str::to_owned);
        let Some(histogram) = &mut self.histogram else { return };
        let time = |row| times.is_valid(row).then(|| times.value(row));
        let field = field.as_deref();
        let Some(encoded) = field.and_then(|field| encoded.get(field)) else {
            return histogram.add(rows.set_indices().map(|row| (time(row), 0)));
        };
        // Only values of rows that match become series.
        let counts = encoded.count(rows);
        let series: Vec<usize> = encoded
            .values()
            .iter()
            .zip(counts)
            .map(|(value, count)| if count > 0 { histogram.series(value) } else { 0 })
            .collect();
        let series = |row| encoded.code(row).and_then(|code| series.get(code)).copied().unwrap_or(0);
        histogram.add(rows.set_indices().map(|row| (time(row), series(row))));
    }

    fn collect_patterns(&mut self, batch: &RecordBatch, rows: &BooleanBuffer, times: &Int64Array) {
        let (Some(patterns), Some(column)) = (&mut self.patterns, &self.request.message_column) else { return };
        let Some(messages) = batch.column_by_name(column) else { return };
        let mut buffer = String::new();
        for row in rows.set_indices() {
            let time = times.is_valid(row).then(|| times.value(row));
            let text = borrowed_text(messages.as_ref(), row).unwrap_or_else(|| {
                buffer.clear();
                write_display_value(messages.as_ref(), row, &mut buffer);
                &buffer
            });
            patterns.add(text, time);
        }
    }

    fn offer_entries(
        &mut self,
        offered: &LogBatch<'_>,
        times: &Int64Array,
        rows: &BooleanBuffer,
    ) -> Result<(), ArrowError> {
        if let Some(page) = &mut self.page {
            page.offer(offered, times, rows)?;
        }
        if let Some(newest) = &mut self.newest {
            note_newest(newest, offered, times, rows);
        }
        let Some((before, after)) = &mut self.context else { return Ok(()) };
        if self.request.context.as_ref().is_some_and(|context| context.key.source == offered.source) {
            let all = BooleanBuffer::new_set(offered.batch.num_rows());
            before.offer(offered, times, &all)?;
            after.offer(offered, times, &all)?;
        }
        Ok(())
    }

    /// Ends the scan.
    pub fn finish(self) -> LogScanAnswer {
        let request = self.request;
        let facets = request.facets.into_iter().zip(self.facets).map(|(facet, counter)| counter.finish(facet));
        let has_series = request.histogram.is_some_and(|histogram| histogram.field.is_some());
        // Without a row that matches, the tail begins at the last row of all.
        let (matched, last) = (self.matched, self.seen_times.map_or(NO_TIME, |(_, last)| last));
        let newest = self
            .newest
            .map(|newest| if matched == 0 { LogCursor::at_time(LogDirection::Forward, last) } else { newest });
        let page = self.page.map(|pool| {
            let mut page = pool.finish();
            page.tail = newest;
            page
        });
        LogScanAnswer {
            evaluated: self.evaluated,
            matched: self.matched,
            returned: page.as_ref().map_or(0, |page| page.entries.len() as u64),
            seen_times: self.seen_times,
            facets: facets.collect(),
            histogram: self.histogram.map(|histogram| histogram.finish(has_series)),
            page,
            patterns: self.patterns.map(|patterns| patterns.finish(request.patterns.unwrap_or(0))),
            context: self.context.map(|(before, after)| (before.finish(), after.finish())),
        }
    }
}

/// Keeps the rows with the newest time of all.
fn note_newest(newest: &mut LogCursor, offered: &LogBatch<'_>, times: &Int64Array, rows: &BooleanBuffer) {
    let time = |row: usize| if times.is_valid(row) { times.value(row) } else { NO_TIME };
    let Some(last) = rows.set_indices().map(time).max() else { return };
    if last < newest.time() {
        return;
    }
    if last > newest.time() {
        *newest = LogCursor::at_time(LogDirection::Forward, last);
    }
    let mut hasher = RowHasher::new(offered.batch);
    for row in rows.set_indices().filter(|row| time(*row) == last) {
        newest.add_next(offered.source, offered.positions.tie(row, &mut hasher));
    }
}

/// The counts of one source. The database applies the whole request: the range, the condition, and for each facet the
/// selections of all other fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedRows {
    /// The number of rows that the database counted.
    pub evaluated: u64,
    /// The number of rows that match.
    pub matched: u64,
    /// The time of the first and the last row that was counted, in nanoseconds UTC.
    pub seen_times: Option<(i64, i64)>,
    /// The time of the first and the last row that matches, in nanoseconds UTC.
    pub matched_times: Option<(i64, i64)>,
    /// The values of each facet, in the order of the request.
    pub facets: Vec<CountedValues>,
    /// The rows of the histogram.
    pub bars: Vec<CountedBar>,
}

/// The values of a facet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedValues {
    /// The values in their display form, with their rows. A value may occur several times.
    pub values: Vec<(String, u64)>,
    /// The values that are not among them.
    pub rare: RareValues,
}

/// Rows of a histogram that have the same value, or all of them if it has no field, and times in the same unit of
/// [`BarWidth::counting_unit`](super::BarWidth::counting_unit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedBar {
    /// One of their times in nanoseconds UTC; `None` if they have none.
    pub time: Option<i64>,
    /// The value in its display form.
    pub value: String,
    /// The number of rows.
    pub rows: u64,
}

impl LogScan {
    /// Adds what a database counted. These rows must not be pushed as well, except to
    /// [`push_entries`](Self::push_entries).
    pub fn add_counts(&mut self, counted: &CountedRows) {
        self.evaluated += counted.evaluated;
        self.matched += counted.matched;
        if let Some((first, last)) = counted.seen_times {
            let (seen_first, seen_last) = self.seen_times.unwrap_or((first, last));
            self.seen_times = Some((seen_first.min(first), seen_last.max(last)));
        }
        for (counter, counted) in self.facets.iter_mut().zip(&counted.facets) {
            counted.values.iter().for_each(|(value, rows)| counter.add(value, *rows));
            if let AnyFacetCounter::Values(counter) = counter {
                counter.add_rare(counted.rare);
            }
        }
        self.add_bars(counted);
    }

    fn add_bars(&mut self, counted: &CountedRows) {
        let has_field = self.histogram_field().is_some();
        let Some(histogram) = &mut self.histogram else { return };
        if let Some((first, last)) = counted.matched_times {
            histogram.note_times(first, last);
        }
        // The series of the values with the most rows come first, because their number is limited.
        let mut series: Vec<(&str, u64)> = Vec::new();
        if has_field {
            let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
            for bar in &counted.bars {
                *totals.entry(&bar.value).or_default() += if bar.time.is_some() { bar.rows } else { 0 };
            }
            series.extend(totals);
            series.sort_by_key(|(_, rows)| Reverse(*rows));
        }
        let series: BTreeMap<&str, usize> =
            series.into_iter().map(|(value, _)| (value, histogram.series(value))).collect();
        for bar in &counted.bars {
            match bar.time {
                Some(time) => {
                    histogram.add_counted(time, series.get(bar.value.as_str()).copied().unwrap_or(0), bar.rows);
                }
                None => histogram.add_without_time(bar.rows),
            }
        }
    }
}
