//! `list_jobs`: the caller's running, waiting and recent calls.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::array::{ArrayRef, TimestampMillisecondArray};
use serde::Deserialize;
use serde_json::json;
use tidegate_core::Error;
use tidegate_query::QueryRows;
use tidegate_runtime::{Answer, JobStatus, RunningCall, Tool};

use super::cancel_job::{has_id, unknown_job_error};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, text_column};

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "list_jobs",
        "List jobs",
        "Your running, waiting and recent calls, newest first.",
        InputSchemaBuilder::new().with("id", json!({"type": "string"})).with_output_arguments(),
        context_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    id: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { id, shape } = parse_arguments(&call)?;
    let mut jobs = node.jobs()?.list(call.caller());
    // The current call is omitted.
    jobs.retain(|other| other.id != call.id());
    if let Some(id) = id {
        if !jobs.iter().any(|other| has_id(other, &id)) {
            return Err(unknown_job_error(&id, &jobs, &call));
        }
        jobs.retain(|other| has_id(other, &id));
    }
    let output_options = shape.output_options("Older jobs come last; they cannot be listed separately.")?;
    Ok(node.executor.answer_rows(jobs_as_rows(&jobs)?, output_options))
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
        .into_rows()
}
