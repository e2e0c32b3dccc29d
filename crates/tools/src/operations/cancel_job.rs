//! `cancel_job`: cancels one of the caller's calls.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::OutputOptions;
use tidegate_runtime::{Answer, Job, JobStatus, Jobs, RunningCall, Tool};

use crate::arguments::parse_arguments;
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, built_in_tool, changing_hints, context_handler};
use crate::typed_rows::{TableBuilder, text_column};

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    built_in_tool(
        "cancel_job",
        "Cancel a job",
        "Ends one of your running calls; list_jobs gives its id.",
        InputSchemaBuilder::new().with_required("id", json!({"type": "string"})),
        changing_hints(false, true),
        context_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    id: String,
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { id } = parse_arguments(&call)?;
    let jobs = node.jobs()?;
    let status = cancel(&jobs, &id, &call)?;
    let answer = TableBuilder::new()
        .with_column("id", text_column([Some(id)].into_iter()))
        .with_column("status", text_column([Some(status)].into_iter()));
    Ok(node.executor.answer_rows(answer.into_rows()?, OutputOptions::default()))
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

pub(super) fn has_id(job: &JobStatus, id: &str) -> bool {
    job.id.to_string().eq_ignore_ascii_case(id.trim())
}

pub(crate) fn unknown_job_error(id: &str, mine: &[JobStatus], caller: &Job) -> Error {
    let open = mine.iter().filter(|job| !job.state.has_ended() && job.id != caller.id());
    let choices: Vec<String> = open.map(|job| job.id.to_string()).take(20).collect();
    let hint = if choices.is_empty() { "None of your jobs is running." } else { "list_jobs describes each of them." };
    Error::new(ErrorKind::NotFound, format!("you have no job {id:?}")).with_choices(choices).with_hint(hint)
}
