//! Reads the rows of the sources of a search into one scan, up to its bounds. The statement may return more rows than
//! match, because each row is checked again.

use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_log_formats::{ENTRY_FILE_ID, ENTRY_OFFSET};
use tidegate_query::{ComparisonOperator, DatabaseKind, Operand, QueryCondition, QuerySpec, Selection, batch_bytes};
use tidegate_sql::Parameter;
use tidegate_telemetry::logs::{
    EntryPositions, LogBatch, LogDirection, LogScan, LogScanAnswer, LogScanError, LogScanRequest, NO_TIME, TimeRange,
};
use tokio::time::Instant;

use super::counting::count_source;
use super::search::LogSearch;
use crate::log_sources::ResolvedSource;
use crate::source_columns::{FieldKind, ceil_microseconds, floor_microseconds, time_conditions};
use crate::typed_rows::{MixedNumbers, open_typed_rows};

/// The maximum number of rows that one call reads.
const SCAN_ROWS_MAX: u64 = 100_000_000;
/// The maximum size of the rows that one call reads, in memory.
const SCAN_BYTES_MAX: u64 = 32 * 1024 * 1024 * 1024;
/// The maximum time that one call reads.
const SCAN_TIME_MAX: Duration = Duration::from_secs(20);
/// The time that is left for the answer when the time limit of the call is near.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// What a search found.
pub(crate) struct ScanOutcome {
    pub(crate) answer: LogScanAnswer,
    /// Why the scan ended before its end.
    pub(crate) partial: Option<String>,
    /// The sources whose scan failed, with the reason.
    pub(crate) failures: Vec<(String, Error)>,
}

/// The search of one source.
#[derive(Clone, Copy)]
pub(super) struct SourceSearch<'a> {
    pub(super) search: &'a LogSearch<'a>,
    pub(super) request: &'a LogScanRequest,
    pub(super) source: &'a ResolvedSource,
    /// The columns of entries.
    pub(super) columns: &'a [&'a str],
    pub(super) rows: RowRange,
    pub(super) deadline: Instant,
}

/// Rows by their time.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRange {
    pub(super) range: TimeRange,
    /// Whether rows without a time belong to them although there is a range.
    pub(super) includes_no_time: bool,
}

impl RowRange {
    /// The rows that are read for `request`: if only a page after a cursor is needed, those that may come after it.
    fn from_request(request: &LogScanRequest) -> Self {
        let range = request.range;
        let is_page_alone = request.facets.is_empty() && request.histogram.is_none() && request.patterns.is_none();
        let cursor = request.page.as_ref().and_then(|page| page.cursor.as_ref()).filter(|_| is_page_alone);
        let Some(cursor) = cursor.filter(|cursor| cursor.time() != NO_TIME) else {
            return Self { range, includes_no_time: false };
        };
        let time = cursor.time();
        match cursor.direction() {
            LogDirection::Forward => {
                let time = floor_microseconds(time);
                let start = range.start.map_or(time, |start| start.max(time));
                Self { range: TimeRange { start: Some(start), ..range }, includes_no_time: false }
            }
            LogDirection::Backward => {
                let end = ceil_microseconds(time.saturating_add(1));
                let end = range.end.map_or(end, |before| before.min(end));
                let includes_no_time = range.is_unbounded();
                Self { range: TimeRange { end: Some(end), ..range }, includes_no_time }
            }
        }
    }
}

struct ScanBounds {
    rows: u64,
    rows_max: u64,
    bytes: u64,
}

impl ScanBounds {
    /// Counts `batch`; the reason to stop, if a bound is reached.
    fn count(&mut self, batch: &RecordBatch) -> Option<String> {
        self.rows += batch.num_rows() as u64;
        self.bytes += batch_bytes(batch) as u64;
        if self.rows >= self.rows_max {
            return Some(format!("the scan ended after {} rows, its maximum", self.rows));
        }
        (self.bytes >= SCAN_BYTES_MAX).then(|| format!("the scan ended after {} bytes, its maximum", self.bytes))
    }
}

/// Computes `request`, for which `fields` are read besides the time: over all rows, or over `sample` rows. If a source
/// fails, the others answer.
///
/// # Errors
/// If no source can be read, or the request is refused.
pub(crate) async fn run_scan(
    search: &LogSearch<'_>,
    request: &LogScanRequest,
    fields: &[String],
    sample: Option<u64>,
) -> Result<ScanOutcome, Error> {
    let mut scan =
        LogScan::new(request.clone()).map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
    let end = search.job.deadline();
    let deadline = (Instant::now() + SCAN_TIME_MAX).min(end.checked_sub(ANSWER_TIME).unwrap_or(end));
    let mut bounds = ScanBounds { rows: 0, rows_max: sample.unwrap_or(SCAN_ROWS_MAX), bytes: 0 };
    let (mut failures, mut partial) = (Vec::new(), None);
    let rows = RowRange::from_request(request);
    for source in &search.set.sources {
        let columns = &columns_to_read(search, source, fields);
        let of_source = SourceSearch { search, request, source, columns, rows, deadline };
        match of_source.run(sample.is_none(), &mut scan, &mut bounds).await {
            Ok(None) => {}
            Ok(Some(reason)) => {
                partial = Some(reason);
                break;
            }
            Err(error) if error.kind() == ErrorKind::Cancelled || search.set.is_single() => return Err(error),
            Err(error) => failures.push((source.name.clone(), error)),
        }
    }
    let has_failed = failures.len() == search.set.sources.len();
    if let Some((_, error)) = search.failures.iter().chain(&failures).next().filter(|_| has_failed) {
        return Err(error.clone());
    }
    Ok(ScanOutcome { answer: scan.finish(), partial, failures })
}

/// The columns of `source` that are read. Those with the position of an entry are read even if callers do not see them.
fn columns_to_read<'a>(search: &'a LogSearch<'_>, source: &'a ResolvedSource, fields: &[String]) -> Vec<&'a str> {
    let is_needed =
        |name: &str, column: &str| column == source.columns.time || fields.iter().any(|field| field == name);
    let named = search.set.fields(source).filter(|(name, column)| is_needed(name, &column.name));
    let mut columns: Vec<&str> = named.map(|(_, column)| column.name.as_str()).collect();
    for position in &source.columns.positions {
        if !columns.contains(position) {
            columns.push(position);
        }
    }
    columns
}

impl SourceSearch<'_> {
    /// Adds the rows of the source to `scan`, counted or scanned; the reason if not all were.
    async fn run(&self, may_count: bool, scan: &mut LogScan, bounds: &mut ScanBounds) -> Result<Option<String>, Error> {
        let counted = if may_count { count_source(self).await? } else { None };
        let Some((counts, entries, uncountable)) = counted else { return self.scan(None, scan, bounds).await };
        scan.add_counts(&counts);
        for batch in &entries {
            self.push_batch(batch, |input| scan.push_entries(input))?;
        }
        match uncountable {
            None => Ok(None),
            uncountable => self.scan(uncountable, scan, bounds).await,
        }
    }

    /// Scans the rows, or those that meet a further condition.
    async fn scan(
        &self,
        further: Option<QueryCondition>,
        scan: &mut LogScan,
        bounds: &mut ScanBounds,
    ) -> Result<Option<String>, Error> {
        let Self { search, source, deadline, .. } = *self;
        let ended = || Some("the scan ended at its time limit".to_owned());
        let spec = build_query(self, further);
        let opened =
            open_typed_rows(&search.context.services, &*source.database, &spec, search.job, MixedNumbers::Text);
        let Ok(opened) = tokio::time::timeout_at(deadline, opened).await else { return Ok(ended()) };
        let mut batches = opened?;
        loop {
            let next = tokio::select! {
                biased;
                () = search.job.cancelled() => return Err(Error::cancelled()),
                next = tokio::time::timeout_at(deadline, batches.next()) => next,
            };
            let Ok(next) = next else { return Ok(ended()) };
            let Some(batch) = next.transpose()? else { return Ok(None) };
            self.push_batch(&batch, |input| scan.push(input))?;
            if let Some(reason) = bounds.count(&batch) {
                // The last row may have been the last of all.
                let is_last = matches!(tokio::time::timeout_at(deadline, batches.next()).await, Ok(None));
                return Ok((!is_last).then_some(reason));
            }
        }
    }

    /// Scans a batch with the names and positions of the call.
    fn push_batch(
        &self,
        batch: &RecordBatch,
        push: impl FnOnce(&LogBatch<'_>) -> Result<(), LogScanError>,
    ) -> Result<(), Error> {
        let source = self.source;
        let renamed = self.search.set.rename(source, batch)?;
        let (files, offsets) = (numbers(&renamed, ENTRY_FILE_ID), numbers(&renamed, ENTRY_OFFSET));
        let positions = match (&files, &offsets) {
            (Some(files), Some(offsets)) => EntryPositions::InFiles { files, offsets },
            // The files of a journal share one order. An offset alone may be that of any file.
            (None, Some(offsets)) if source.database.kind() == DatabaseKind::Journal => EntryPositions::Column(offsets),
            _ => EntryPositions::RowHash,
        };
        push(&LogBatch { batch: &renamed, source: source.id(), positions }).map_err(|error| {
            Error::new(ErrorKind::Unavailable, format!("the log source {:?} cannot be searched: {error}", source.name))
        })
    }
}

/// A column of whole numbers that are not negative.
pub(super) fn numbers(batch: &RecordBatch, column: &str) -> Option<UInt64Array> {
    let column = batch.column_by_name(column)?;
    if !column.data_type().is_integer() {
        return None;
    }
    let numbers = cast(column, &DataType::UInt64).ok()?.as_primitive::<UInt64Type>().clone();
    // A negative number has become null.
    (numbers.null_count() == 0).then_some(numbers)
}

/// The values of a selection that become a part of the statement.
pub(super) const PUSHED_VALUES_MAX: usize = 200;

/// The query for the rows of a source that may match and meet `further`; with a context, for all rows of the range.
fn build_query(input: &SourceSearch<'_>, further: Option<QueryCondition>) -> QuerySpec {
    let (conditions, selections) = match input.request.context {
        Some(_) => (None, Vec::new()),
        None => (input.search.conditions.clone(), selection_filters(input)),
    };
    let filters = conditions.into_iter().chain(time_filter(input.source, input.rows)).chain(selections).chain(further);
    input.query(filters.collect(), input.columns.iter().copied().map(Selection::column).collect())
}

impl SourceSearch<'_> {
    /// A query for the rows with `conditions`.
    pub(super) fn query(&self, conditions: Vec<QueryCondition>, select: Vec<Selection>) -> QuerySpec {
        let filter = QueryCondition::all(conditions);
        QuerySpec { select, filter, limit: QuerySpec::UNLIMITED, ..QuerySpec::new(&self.source.table) }
    }
}

/// The range of time, where the database compares the column as a time.
fn time_filter(source: &ResolvedSource, rows: RowRange) -> Option<QueryCondition> {
    let name = &source.columns.time;
    let kind = source.columns.columns.iter().find(|column| column.name == *name)?.kind;
    let bounds: Vec<QueryCondition> = time_conditions(name, kind, source.database.dialect(), rows.range).collect();
    if bounds.is_empty() {
        return None;
    }
    let bounded = QueryCondition::And(bounds);
    if !rows.includes_no_time {
        return Some(bounded);
    }
    let is_null = QueryCondition::compare(name, ComparisonOperator::IsNull, Operand::None);
    Some(QueryCondition::Or(vec![bounded, is_null]))
}

/// The selections of text columns that apply to everything that is computed.
pub(super) fn selection_filters(input: &SourceSearch<'_>) -> Vec<QueryCondition> {
    let SourceSearch { search, request, source, .. } = *input;
    let mut filters = Vec::new();
    for (field, values) in request.selections.iter() {
        let values_sorted = values.to_sorted();
        if values.selects_missing()
            || values_sorted.len() > PUSHED_VALUES_MAX
            || request.facets.iter().any(|facet| facet.field == field)
        {
            continue;
        }
        let Some((_, column)) = search.set.fields(source).find(|(name, _)| *name == field) else { continue };
        // In SQLite, an integer in a column without a type is no text, although its display form may be equal.
        let has_type = source.database.dialect().has_typed_columns();
        if column.kind != FieldKind::Text || !has_type && !has_text_affinity(&column.type_name) {
            continue;
        }
        let list = values_sorted.into_iter().map(|value| Parameter::Text(value.to_owned())).collect();
        filters.push(QueryCondition::compare(&column.name, ComparisonOperator::In, Operand::List(list)));
    }
    filters
}

/// Whether SQLite stores numbers in a column of this declared type as text. A type of integers has another kind.
fn has_text_affinity(type_name: &str) -> bool {
    let name = type_name.to_ascii_lowercase();
    ["char", "clob", "text"].into_iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn a_scan_ends_at_its_maximum_of_rows_and_bytes() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let bounds = |rows_max, bytes| ScanBounds { rows: 0, rows_max, bytes };
        let mut of_rows = bounds(6, 0);
        assert_eq!(of_rows.count(&batch), None);
        assert_eq!(of_rows.count(&batch).as_deref(), Some("the scan ended after 6 rows, its maximum"));
        let reason = bounds(100, SCAN_BYTES_MAX - 1).count(&batch).unwrap();
        assert!(reason.starts_with("the scan ended after 3435") && reason.ends_with(" bytes, its maximum"), "{reason}");
    }
}
