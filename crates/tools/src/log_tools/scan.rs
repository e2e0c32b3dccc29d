//! Reads the rows of the sources of a search into one scan, up to its bounds.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_log_formats::{ENTRY_FILE_ID, ENTRY_OFFSET};
use tidegate_query::batch_bytes;
use tidegate_runtime::Job;
use tidegate_telemetry::logs::{
    EntryPositions, LogBatch, LogScan, LogScanAnswer, LogScanError, LogScanRequest, TimeRange,
};
use tokio::time::Instant;

use super::LogContext;
use super::counting::{CountedSource, CountingInput, count_source};
use super::search::LogSearch;
use super::statement::{RowSelection, build_query};
use crate::log_sources::ResolvedSource;
use crate::typed_rows::open_display_rows;

/// The maximum number of rows that one call reads.
pub(crate) const SCAN_ROWS_MAX: u64 = 100_000_000;
/// The maximum size of the rows that one call reads, in memory.
pub(crate) const SCAN_BYTES_MAX: u64 = 32 * 1024 * 1024 * 1024;
/// The maximum time that one call reads.
const SCAN_TIME_MAX: Duration = Duration::from_secs(20);
/// The kind of a database with a journal of systemd.
const JOURNAL: &str = "journal";
/// The time that is left for the answer when the time limit of the call is near.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// What a search found.
pub(crate) struct ScanOutcome {
    pub(crate) answer: LogScanAnswer,
    /// Why the scan ended before its end.
    pub(crate) partial: Option<String>,
    /// The sources that cannot be read, with the reason.
    pub(crate) failures: Vec<(String, Error)>,
}

/// Which rows and columns are read.
pub(crate) struct ScanInput<'a> {
    pub(crate) request: LogScanRequest,
    /// The fields that are read, besides the time.
    pub(crate) fields: Vec<String>,
    /// A range that is smaller than that of the request, where only these rows are needed.
    pub(crate) range: TimeRange,
    pub(crate) includes_no_time: bool,
    /// Whether rows are needed that do not match the selections and conditions.
    pub(crate) reads_all_rows: bool,
    /// The maximum number of rows.
    pub(crate) rows_max: u64,
    pub(crate) search: &'a mut LogSearch,
}

struct ScanBounds {
    deadline: Instant,
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

/// Runs the scan. If a source fails, the others answer.
///
/// # Errors
/// If no source can be read, or the request is refused.
pub(crate) async fn run_scan(context: &LogContext, input: ScanInput<'_>, job: &Arc<Job>) -> Result<ScanOutcome, Error> {
    let ScanInput { request, fields, range, includes_no_time, reads_all_rows, rows_max, search } = input;
    let facet_fields: Vec<String> = request.facets.iter().map(|facet| facet.field.clone()).collect();
    let mut scan = LogScan::new(request).map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
    let deadline =
        (Instant::now() + SCAN_TIME_MAX).min(job.deadline().checked_sub(ANSWER_TIME).unwrap_or(job.deadline()));
    let mut bounds = ScanBounds { deadline, rows: 0, rows_max, bytes: 0 };
    let mut failures = std::mem::take(&mut search.failures);
    let (resolved, unresolved) = (search.set.sources.len(), failures.len());
    let mut partial = None;
    let rows = RowSelection {
        range,
        includes_no_time,
        selections: if reads_all_rows { &Default::default() } else { &search.selections },
        excepted_fields: &facet_fields,
        conditions: search.conditions.as_ref().filter(|_| !reads_all_rows),
        further: None,
    };
    let request = (!reads_all_rows && rows_max == SCAN_ROWS_MAX).then(|| scan.request().clone());
    let reader = SourceReader { context, search, job, rows, request };
    for source in &search.set.sources {
        let columns = columns_to_read(search, source, &fields);
        match reader.read(source, &columns, &mut scan, &mut bounds).await {
            Ok(None) => {}
            Ok(Some(reason)) => {
                partial = Some(reason);
                break;
            }
            Err(error) if error.kind() == ErrorKind::Cancelled || search.set.is_single() => return Err(error),
            Err(error) => failures.push((source.name.clone(), error)),
        }
    }
    match failures.first() {
        Some((_, error)) if failures.len() - unresolved == resolved => Err(error.clone()),
        _ => Ok(ScanOutcome { answer: scan.finish(), partial, failures }),
    }
}

/// Scans a batch of a source with the names and positions of the call.
fn push_batch(
    search: &LogSearch,
    source: &ResolvedSource,
    batch: &RecordBatch,
    push: impl FnOnce(&LogBatch<'_>) -> Result<(), LogScanError>,
) -> Result<(), Error> {
    let renamed = search.set.rename(source, batch)?;
    let (files, offsets) = (numbers(&renamed, ENTRY_FILE_ID), numbers(&renamed, ENTRY_OFFSET));
    let positions = match (&files, &offsets) {
        (Some(files), Some(offsets)) => EntryPositions::InFiles { files, offsets },
        // The files of a journal share one order. An offset alone may be that of any file.
        (None, Some(offsets)) if source.database.kind() == JOURNAL => EntryPositions::Column(offsets),
        _ => EntryPositions::RowHash,
    };
    push(&LogBatch { batch: &renamed, source: source.id(), positions, condition: None }).map_err(|error| {
        Error::new(ErrorKind::Unavailable, format!("the log source {:?} cannot be searched: {error}", source.name))
    })
}

/// The columns of `source` that are read. Those with the position of an entry are read even if callers do not see them.
fn columns_to_read<'a>(search: &'a LogSearch, source: &'a ResolvedSource, fields: &[String]) -> Vec<&'a str> {
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

/// Reads the rows of sources.
struct SourceReader<'a> {
    context: &'a LogContext,
    search: &'a LogSearch,
    job: &'a Arc<Job>,
    rows: RowSelection<'a>,
    /// What the database may count itself.
    request: Option<LogScanRequest>,
}

impl SourceReader<'_> {
    /// Adds the rows of `source` to `scan`, counted or scanned; the reason if not all were.
    async fn read(
        &self,
        source: &ResolvedSource,
        columns: &[&str],
        scan: &mut LogScan,
        bounds: &mut ScanBounds,
    ) -> Result<Option<String>, Error> {
        let Some(counted) = self.count(source, columns, bounds.deadline).await? else {
            return self.scan(source, (columns, &self.rows), scan, bounds).await;
        };
        scan.add_counts(&counted.counts);
        for batch in &counted.entries {
            push_batch(self.search, source, batch, |input| scan.push_entries(input))?;
        }
        let Some(uncountable) = counted.uncountable else { return Ok(None) };
        let rest = RowSelection { further: Some(uncountable), ..self.rows.clone() };
        self.scan(source, (columns, &rest), scan, bounds).await
    }

    async fn count(
        &self,
        source: &ResolvedSource,
        columns: &[&str],
        deadline: Instant,
    ) -> Result<Option<CountedSource>, Error> {
        let Some(request) = &self.request else { return Ok(None) };
        let RowSelection { range, includes_no_time, .. } = self.rows;
        let input = CountingInput {
            node: &self.context.node,
            search: self.search,
            source,
            request,
            range,
            includes_no_time,
            columns,
            uniform_times: &self.context.uniform_times,
            job: self.job,
            deadline,
        };
        count_source(&input).await
    }

    async fn scan(
        &self,
        source: &ResolvedSource,
        (columns, rows): (&[&str], &RowSelection<'_>),
        scan: &mut LogScan,
        bounds: &mut ScanBounds,
    ) -> Result<Option<String>, Error> {
        let (search, job) = (self.search, self.job);
        let ended = || Some("the scan ended at its time limit".to_owned());
        let statement = async {
            let spec = build_query(&search.set, source, columns, rows);
            let statement = spec.render(&*source.database, job.principal()).await?;
            open_display_rows(&self.context.node, &*source.database, &statement, job).await
        };
        let Ok(opened) = tokio::time::timeout_at(bounds.deadline, statement).await else { return Ok(ended()) };
        let mut batches = opened?;
        loop {
            let next = tokio::select! {
                biased;
                () = job.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
                next = tokio::time::timeout_at(bounds.deadline, batches.next()) => next,
            };
            let Ok(next) = next else { return Ok(ended()) };
            let Some(batch) = next.transpose()? else { return Ok(None) };
            push_batch(search, source, &batch, |input| scan.push(input))?;
            if let Some(reason) = bounds.count(&batch) {
                // The last row may have been the last of all.
                let is_last = matches!(tokio::time::timeout_at(bounds.deadline, batches.next()).await, Ok(None));
                return Ok((!is_last).then_some(reason));
            }
        }
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

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn a_scan_ends_at_its_maximum_of_rows_and_bytes() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let bounds = |rows_max, bytes| ScanBounds { deadline: Instant::now(), rows: 0, rows_max, bytes };
        let mut of_rows = bounds(6, 0);
        assert_eq!(of_rows.count(&batch), None);
        assert_eq!(of_rows.count(&batch).as_deref(), Some("the scan ended after 6 rows, its maximum"));
        let reason = bounds(100, SCAN_BYTES_MAX - 1).count(&batch).unwrap();
        assert!(reason.starts_with("the scan ended after 3435") && reason.ends_with(" bytes, its maximum"), "{reason}");
    }
}
