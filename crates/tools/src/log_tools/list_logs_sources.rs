//! `list_logs_sources`: the log sources of the caller, their size, and the time that they cover.

use std::sync::Arc;

use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{Answer, Job, RunningCall, Tool};
use tidegate_telemetry::logs::format_time;

use super::LogContext;
use super::covered_time::{CoveredEntries, covered_entries};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::log_sources::{LogSource, ResolvedSource};
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, text_column};

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
    let databases = &context.node.databases;
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
    Ok(context.node.executor.answer_rows(table.into_rows()?, shape.output_options("")?))
}

async fn describe(context: &LogContext, source: &LogSource, job: &Arc<Job>) -> Result<SourceRow, Error> {
    let principal = job.principal();
    let failed = |error: &Error, roles| SourceRow { roles, error: Some(error.to_string()), ..SourceRow::default() };
    let resolved = match ResolvedSource::resolve(source, &context.node.databases, principal).await {
        Ok(resolved) => resolved,
        Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
        Err(error) => return Ok(failed(&error, None)),
    };
    let roles = Some(resolved.columns.to_string());
    let covered = match covered_entries(&context.node, &resolved, job).await {
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
