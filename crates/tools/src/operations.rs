//! Operations tools. `list_jobs` has the caller's running, waiting and recent calls, and `cancel_job` cancels one of
//! them; `node_status` has the health of the server, and `server_info` its identity and limits.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::array::{ArrayRef, TimestampMillisecondArray};
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, ErrorKind};
use tidegate_process_memory::anonymous_bytes;
use tidegate_query::{OutputOptions, QueryRows, TableStatus};
use tidegate_runtime::{Answer, Job, JobStatus, Jobs, RunningCall, Tool};

use crate::arguments::{OutputArguments, parse_arguments};
use crate::catalog_tools::{DatabaseListing, list_catalogs};
use crate::tool_definition::{InputSchemaBuilder, built_in_tool, changing_hints, context_handler, read_only_tool};
use crate::tool_services::ToolServices;
use crate::typed_rows::{TableBuilder, count_column, text_column};

pub(crate) fn list_jobs_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "list_jobs",
        "List jobs",
        "Your running, waiting and recent calls, newest first.",
        InputSchemaBuilder::new().with("id", json!({"type": "string"})).with_output_arguments(),
        context_handler(services, handle_list_jobs),
    )
}

#[derive(Deserialize)]
struct ListJobsArguments {
    id: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle_list_jobs(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let ListJobsArguments { id, shape } = parse_arguments(&call)?;
    let mut jobs = services.jobs()?.list(call.caller());
    // The current call is omitted.
    jobs.retain(|other| other.id != call.id());
    if let Some(id) = id {
        if !jobs.iter().any(|other| has_id(other, &id)) {
            return Err(unknown_job_error(&id, &jobs, &call));
        }
        jobs.retain(|other| has_id(other, &id));
    }
    let output_options = shape.output_options("Older jobs come last; they cannot be listed separately.")?;
    Ok(services.executor.answer_rows(jobs_as_rows(&jobs)?, output_options))
}

pub(crate) fn jobs_as_rows(jobs: &[JobStatus]) -> Result<QueryRows, Error> {
    let started = jobs.iter().map(|job| {
        let since_epoch = job.started_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_millis()).ok()
    });
    let started: ArrayRef = Arc::new(started.collect::<TimestampMillisecondArray>().with_timezone("UTC"));
    TableBuilder::new()
        .with_column("id", text_column(jobs.iter().map(|job| Some(job.id.to_string()))))
        .with_column("kind", text_column(jobs.iter().map(|job| Some(job.target.0.to_owned()))))
        .with_column("target", text_column(jobs.iter().map(|job| Some(job.target.1.clone()))))
        .with_column("status", text_column(jobs.iter().map(|job| Some(job.state.name().to_owned()))))
        .with_column("started_at", started)
        .with_column("elapsed_ms", count_column(jobs.iter().map(|job| u64::try_from(job.elapsed.as_millis()).ok())))
        .with_column("rows", count_column(jobs.iter().map(|job| Some(job.rows))))
        .with_column("result", text_column(jobs.iter().map(|job| job.result.clone())))
        .with_column("bytes", count_column(jobs.iter().map(|job| Some(job.bytes))))
        .with_column("arguments", text_column(jobs.iter().map(|job| job.arguments.clone())))
        .with_column("message", text_column(jobs.iter().map(|job| job.message.clone())))
        .into_rows()
}

pub(crate) fn cancel_job_tool(services: &Arc<ToolServices>) -> Tool {
    built_in_tool(
        "cancel_job",
        "Cancel a job",
        "Ends one of your running calls; list_jobs gives its id.",
        InputSchemaBuilder::new().with_required("id", json!({"type": "string"})),
        changing_hints(false, true),
        context_handler(services, handle_cancel_job),
    )
}

#[derive(Deserialize)]
struct CancelJobArguments {
    id: String,
}

async fn handle_cancel_job(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let CancelJobArguments { id } = parse_arguments(&call)?;
    let jobs = services.jobs()?;
    let status = cancel(&jobs, &id, &call)?;
    let answer = TableBuilder::new()
        .with_column("id", text_column([Some(id)].into_iter()))
        .with_column("status", text_column([Some(status)].into_iter()));
    Ok(services.executor.answer_rows(answer.into_rows()?, OutputOptions::default()))
}

/// Cancels the job and returns its state. A job that has ended keeps its state.
fn cancel(jobs: &Jobs, id: &str, caller: &Job) -> Result<String, Error> {
    let mine = jobs.list(caller.caller());
    let found = mine.iter().find(|job| has_id(job, id));
    match found {
        Some(job) if job.state.has_ended() => Ok(job.state.name().to_owned()),
        // The job may end before the cancellation, which is as good.
        Some(job) => {
            jobs.cancel(job.id, caller.caller());
            Ok("cancelling".to_owned())
        }
        None => Err(unknown_job_error(id, &mine, caller)),
    }
}

fn has_id(job: &JobStatus, id: &str) -> bool {
    job.id.to_string().eq_ignore_ascii_case(id.trim())
}

pub(crate) fn unknown_job_error(id: &str, mine: &[JobStatus], caller: &Job) -> Error {
    let open = mine.iter().filter(|job| !job.state.has_ended() && job.id != caller.id());
    let choices: Vec<String> = open.map(|job| job.id.to_string()).take(20).collect();
    let hint = if choices.is_empty() { "None of your jobs is running." } else { "list_jobs describes each of them." };
    Error::new(ErrorKind::NotFound, format!("you have no job {id:?}")).with_choices(choices).with_hint(hint)
}

/// The maximum number of unreadable tables, and of notes.
const LINES_MAX: usize = 20;

pub(crate) fn node_status_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "node_status",
        "Server status",
        "Server health: reachable databases, open calls, memory, uptime.",
        InputSchemaBuilder::new().with_output_arguments(),
        context_handler(services, handle_node_status),
    )
}

async fn handle_node_status(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let shape: OutputArguments = parse_arguments(&call)?;
    let found = list_catalogs(&services.databases, None, call.principal()).await?;
    let reachable = found.iter().filter(|listing| listing.catalog.is_ok()).count();
    let unreadable = describe_catalogs(&found, unreadable_tables);
    let notes = describe_catalogs(&found, |listing| {
        let notes = listing.catalog.iter().flat_map(|catalog| &catalog.notes);
        notes.map(|note| format!("{}: {note}", listing.database.name())).collect()
    });
    let status = match (reachable == found.len(), &unreadable) {
        (false, _) => "degraded; see list_databases",
        (true, Some(_)) => "degraded; see unreadable_tables",
        (true, None) => "ok",
    };
    let open_calls = services.jobs()?.open_count_for(call.caller());
    let transports = services.registry()?.transport_switches().describe();
    let one = |value: Option<u64>| count_column([value].into_iter());
    let answer = TableBuilder::new()
        .with_column("status", text_column([Some(status.to_owned())].into_iter()))
        .with_column("databases", one(Some(found.len() as u64)))
        .with_column("databases_reachable", one(Some(reachable as u64)))
        .with_column("unreadable_tables", text_column([unreadable].into_iter()))
        .with_column("notes", text_column([notes].into_iter()))
        .with_column("transports", text_column([transports].into_iter()))
        .with_column("open_calls", one(Some(open_calls as u64)))
        .with_column("memory_bytes", one(anonymous_bytes().map(|bytes| bytes as u64)))
        .with_column("uptime_seconds", one(Some(services.uptime_seconds())));
    Ok(services.executor.answer_rows(answer.into_rows()?, shape.output_options("")?))
}

/// The first lines about all databases as one text; `None` if there are none.
fn describe_catalogs(found: &[DatabaseListing], lines: impl Fn(&DatabaseListing) -> Vec<String>) -> Option<String> {
    let lines: Vec<String> = found.iter().flat_map(lines).take(LINES_MAX).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn unreadable_tables(listing: &DatabaseListing) -> Vec<String> {
    let tables = listing.catalog.iter().flat_map(|catalog| &catalog.tables);
    let unreadable = tables.filter_map(|table| match &table.status {
        TableStatus::Unreadable(reason) => Some(format!("{}.{}: {reason}", listing.database.name(), table.name)),
        TableStatus::Readable => None,
    });
    unreadable.collect()
}

pub(crate) fn server_info_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "server_info",
        "Server information",
        "Name, version, SQL dialects, and the limits of an answer.",
        InputSchemaBuilder::new().with_output_arguments(),
        context_handler(services, handle_server_info),
    )
}

async fn handle_server_info(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let shape: OutputArguments = parse_arguments(&call)?;
    let limits = services.limits()?;
    let inline = call.limits().inline;
    let mut dialects: Vec<&str> =
        services.databases.visible_to(call.principal()).map(|database| database.dialect().name()).collect();
    dialects.sort_unstable();
    dialects.dedup();
    let label = |value: &str| text_column([Some(value.to_owned())].into_iter());
    let one = |value: Option<u64>| count_column([value].into_iter());
    let answer = TableBuilder::new()
        .with_column("name", label(&services.identity.name))
        .with_column("title", label(&services.identity.title))
        .with_column("version", label(&services.identity.version))
        .with_column("sql", label(&dialects.join(", ")))
        .with_column("timeout_seconds", one(Some(limits.timeout.as_secs())))
        .with_column("inline_rows", one(inline.rows))
        .with_column("inline_bytes", one(inline.bytes.map(|bytes| bytes as u64)));
    Ok(services.executor.answer_rows(answer.into_rows()?, shape.output_options("")?))
}
