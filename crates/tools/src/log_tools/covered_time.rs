//! The time of the first and the last entry of a source, and how many entries did not fit their format.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::StreamExt;
use tidegate_core::Error;
use tidegate_log_formats::{ENTRY_FILE_ID, PARSE_ERROR};
use tidegate_query::{AggregateFunction, QuerySpec, Selection};
use tidegate_runtime::Job;
use tidegate_telemetry::logs::time_column;

use super::scan::numbers;
use crate::log_sources::ResolvedSource;
use crate::source_columns::{FIRST_TIME, LAST_TIME, first_and_last};
use crate::tool_context::ToolContext;
use crate::typed_rows::{MixedNumbers, open_typed_rows};

/// How long the search for the first and the last entry of one source may take. It reads the whole table where the
/// database has no index or statistics.
const COVERED_TIME_TIMEOUT: Duration = Duration::from_secs(5);

const PARSE_ERRORS: &str = "parse_errors";

/// What the entries of a source cover.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CoveredEntries {
    /// The time of the first and the last entry, in nanoseconds.
    pub(crate) times: Option<(i64, i64)>,
    /// The number of entries of log files that did not fit their format or were repaired.
    pub(crate) parse_errors: Option<u64>,
}

/// What the entries of `source` cover; nothing if it cannot be found in time.
///
/// # Errors
/// If the source cannot be read, or the call was cancelled.
pub(crate) async fn covered_entries(
    node: &ToolContext,
    source: &ResolvedSource,
    job: &Arc<Job>,
) -> Result<CoveredEntries, Error> {
    tokio::time::timeout(COVERED_TIME_TIMEOUT, read(node, source, job)).await.unwrap_or_else(|_| Ok(Default::default()))
}

async fn read(node: &ToolContext, source: &ResolvedSource, job: &Arc<Job>) -> Result<CoveredEntries, Error> {
    let mut select = Vec::from(first_and_last(&source.columns.time));
    // Log files are read as a whole anyway; elsewhere, an index may have the times.
    let is_log_file = source.columns.positions.contains(&ENTRY_FILE_ID);
    if is_log_file && source.columns.columns.iter().any(|column| column.name == PARSE_ERROR) {
        select.push(Selection::aggregate(AggregateFunction::Count, PARSE_ERROR, PARSE_ERRORS));
    }
    let spec = QuerySpec { select, ..QuerySpec::new(&source.table) };
    let mut rows = open_typed_rows(node, &*source.database, &spec, job, MixedNumbers::Floats).await?;
    let Some(batch) = rows.next().await.transpose()? else { return Ok(CoveredEntries::default()) };
    let parse_errors = numbers(&batch, PARSE_ERRORS).filter(|counts| !counts.is_empty()).map(|counts| counts.value(0));
    Ok(CoveredEntries { times: time_of(&batch, FIRST_TIME).zip(time_of(&batch, LAST_TIME)), parse_errors })
}

/// The time in the column `column` of a batch of one row.
fn time_of(batch: &RecordBatch, column: &str) -> Option<i64> {
    time_column(batch.column_by_name(column)?.as_ref())?.iter().next().flatten()
}
