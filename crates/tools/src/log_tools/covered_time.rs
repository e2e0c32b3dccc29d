//! The time of the first and the last entry of a source.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{AggregateFunction, QuerySpec, Selection};
use tidegate_runtime::Job;
use tidegate_telemetry::logs::{EntryPositions, LogBatch, LogScan, LogScanRequest};

use super::statement::parse_conditions;
use crate::log_sources::ResolvedSource;
use crate::tool_context::ToolContext;
use crate::typed_rows::open_typed_rows;

/// How long the search for the first and the last entry of one source may take. It reads the whole table where the
/// database has no index or statistics.
const COVERED_TIME_TIMEOUT: Duration = Duration::from_secs(5);

const FIRST: &str = "first_time";
const LAST: &str = "last_time";

/// The time of the first and the last entry, in nanoseconds; `None` if there is no entry, or it cannot be found in time.
///
/// # Errors
/// If the call was cancelled.
pub(crate) async fn covered_time(
    node: &ToolContext,
    source: &ResolvedSource,
    job: &Arc<Job>,
) -> Result<Option<(i64, i64)>, Error> {
    match tokio::time::timeout(COVERED_TIME_TIMEOUT, read(node, source, job)).await {
        Ok(Ok(times)) => Ok(times),
        Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => Err(error),
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

async fn read(node: &ToolContext, source: &ResolvedSource, job: &Arc<Job>) -> Result<Option<(i64, i64)>, Error> {
    let aggregate = |function, alias: &str| Selection::Aggregate {
        function,
        column: Some(source.columns.time.clone()),
        distinct: false,
        alias: Some(alias.to_owned()),
    };
    let select = vec![aggregate(AggregateFunction::Min, FIRST), aggregate(AggregateFunction::Max, LAST)];
    let spec = QuerySpec { select, ..parse_conditions(&source.table, None)? };
    let statement = spec.render(&*source.database, job.principal()).await?;
    let mut rows = open_typed_rows(node, &*source.database, &statement, job).await?;
    let Some(batch) = rows.next().await.transpose()? else { return Ok(None) };
    Ok(time_of(&batch, FIRST).zip(time_of(&batch, LAST)))
}

/// The time in the column `column` of a batch of one row.
fn time_of(batch: &RecordBatch, column: &str) -> Option<i64> {
    let request = LogScanRequest { time_column: column.to_owned(), ..LogScanRequest::default() };
    let mut scan = LogScan::new(request).ok()?;
    let input = LogBatch { batch, source: Default::default(), positions: EntryPositions::From(0), condition: None };
    scan.push(&input).ok()?;
    scan.finish().seen_times.map(|(first, _)| first)
}
