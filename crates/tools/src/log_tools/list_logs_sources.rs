//! `list_logs_sources`: the log sources of the caller, their size, the time of their first and last entry, and how many
//! entries did not fit their format.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_log_formats::{ENTRY_FILE_ID, PARSE_ERROR};
use tidegate_query::{AggregateFunction, QuerySpec, Selection};
use tidegate_runtime::{Answer, Job, RunningCall, Tool};
use tidegate_telemetry::logs::{format_time, time_column};

use super::LogContext;
use super::scan::numbers;
use crate::arguments::{OutputArguments, parse_arguments};
use crate::log_sources::{LogSource, ResolvedSource};
use crate::source_columns::{FIRST_TIME, LAST_TIME, first_and_last};
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::tool_services::ToolServices;
use crate::typed_rows::{MixedNumbers, TableBuilder, count_column, open_typed_rows, text_column};

/// The sources that are read concurrently.
const READ_AT_ONCE: usize = 4;

pub(crate) fn tool(context: &Arc<LogContext>) -> Tool {
    read_only_tool(
        "list_logs_sources",
        "List log sources",
        "Tables with logs, their size, and the time they cover. Begin here, then query_logs.",
        InputSchemaBuilder::new().with_output_arguments(),
        context_handler(context, handle),
    )
}

#[derive(Default)]
struct SourceRow {
    rows: Option<u64>,
    bytes: Option<u64>,
    covered: CoveredEntries,
    roles: Option<String>,
    error: Option<String>,
}

async fn handle(context: Arc<LogContext>, call: RunningCall) -> Result<Answer, Error> {
    let shape: OutputArguments = parse_arguments(&call)?;
    let databases = &context.services.databases;
    let visible = context.sources.visible_to(databases, call.principal());
    let described = visible.iter().map(|source| describe(&context, source, call.job()));
    let described: Vec<Result<SourceRow, Error>> =
        futures::stream::iter(described.collect::<Vec<_>>()).buffered(READ_AT_ONCE).collect().await;
    let rows: Vec<SourceRow> = described.into_iter().collect::<Result<_, _>>()?;
    let kind = |source: &&LogSource| {
        databases.get(Some(&source.database), call.principal()).ok().map(|database| database.kind().name().to_owned())
    };
    let text = |value: &dyn Fn(&LogSource) -> String| text_column(visible.iter().map(|source| Some(value(source))));
    let time =
        |pick: fn((i64, i64)) -> i64| text_column(rows.iter().map(|row| row.covered.times.map(pick).map(format_time)));
    let mut table = TableBuilder::new()
        .with_column("name", text(&|source| source.name.clone()))
        .with_column("kind", text_column(visible.iter().map(kind)))
        .with_column("table", text(&|source| format!("{}.{}", source.database, source.table)))
        .with_column("rows", count_column(rows.iter().map(|row| row.rows)))
        .with_column("bytes", count_column(rows.iter().map(|row| row.bytes)))
        .with_column("first", time(|(first, _)| first))
        .with_column("last", time(|(_, last)| last))
        .with_column("roles", text_column(rows.iter().map(|row| row.roles.clone())));
    if rows.iter().any(|row| row.covered.parse_errors.is_some()) {
        table = table.with_column("parse_errors", count_column(rows.iter().map(|row| row.covered.parse_errors)));
    }
    if rows.iter().any(|row| row.error.is_some()) {
        table = table.with_column("error", text_column(rows.iter().map(|row| row.error.clone())));
    }
    Ok(context.services.executor.answer_rows(table.into_rows()?, shape.output_options("")?))
}

async fn describe(context: &LogContext, source: &LogSource, job: &Arc<Job>) -> Result<SourceRow, Error> {
    let principal = job.principal();
    let failed = |error: &Error, roles| SourceRow { roles, error: Some(error.to_string()), ..SourceRow::default() };
    let resolved = match ResolvedSource::resolve(source, &context.services.databases, principal).await {
        Ok(resolved) => resolved,
        Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
        Err(error) => return Ok(failed(&error, None)),
    };
    let roles = Some(resolved.columns.to_string());
    let covered = match covered_entries(&context.services, &resolved, job).await {
        Ok(covered) => covered,
        Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
        Err(error) => return Ok(failed(&error, roles)),
    };
    let catalog = resolved.database.catalog(principal).await;
    let rows = catalog.ok().and_then(|catalog| {
        catalog.tables.iter().find(|table| table.name == source.table).and_then(|table| table.rows)
    });
    let storage = resolved.storage(principal).await?;
    Ok(SourceRow { rows, bytes: storage.bytes, covered, roles, error: None })
}

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
    parse_errors: Option<u64>,
}

/// What the entries of `source` cover; nothing if it cannot be found in time.
///
/// # Errors
/// If the source cannot be read, or the call was cancelled.
pub(crate) async fn covered_entries(
    services: &ToolServices,
    source: &ResolvedSource,
    job: &Arc<Job>,
) -> Result<CoveredEntries, Error> {
    tokio::time::timeout(COVERED_TIME_TIMEOUT, read(services, source, job))
        .await
        .unwrap_or_else(|_| Ok(Default::default()))
}

async fn read(services: &ToolServices, source: &ResolvedSource, job: &Arc<Job>) -> Result<CoveredEntries, Error> {
    let mut select = Vec::from(first_and_last(&source.columns.time));
    // Log files are read as a whole anyway; elsewhere, an index may have the times.
    let is_log_file = source.columns.positions.contains(&ENTRY_FILE_ID);
    if is_log_file && source.columns.columns.iter().any(|column| column.name == PARSE_ERROR) {
        select.push(Selection::aggregate(AggregateFunction::Count, PARSE_ERROR, PARSE_ERRORS));
    }
    let spec = QuerySpec { select, ..QuerySpec::new(&source.table) };
    let mut rows = open_typed_rows(services, &*source.database, &spec, job, MixedNumbers::Floats).await?;
    let Some(batch) = rows.next().await.transpose()? else { return Ok(CoveredEntries::default()) };
    let parse_errors = numbers(&batch, PARSE_ERRORS).filter(|counts| !counts.is_empty()).map(|counts| counts.value(0));
    Ok(CoveredEntries { times: time_of(&batch, FIRST_TIME).zip(time_of(&batch, LAST_TIME)), parse_errors })
}

/// The time in the column `column` of a batch of one row.
fn time_of(batch: &RecordBatch, column: &str) -> Option<i64> {
    time_column(batch.column_by_name(column)?.as_ref())?.iter().next().flatten()
}
