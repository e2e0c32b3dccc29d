//! `execute_function`: rows of a function, with conditions, order and limit.
//!
//! The schema of the arguments is open inside of lists and objects: the validation of the request reports all problems
//! at once, with the nearest names, so that an agent needs one correction only.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_core::{Content, Error, ErrorKind};
use tidegate_query::QueryRows;
use tidegate_runtime::{Job, Metadata, ReplySender, Tool};
use tidegate_system::{LIMIT_MAX, OversizedAnswer, RequestViolations, SelectedRows};

use super::FunctionSource;
use super::list_functions::unknown_function;
use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, node_handler, read_only_tool};

/// The arguments that the validation of the request checks.
const REQUEST_ARGUMENTS: [&str; 5] = ["columns", "sort", "limit", "conditions", "parameters"];
/// Parts of names with which agents call functions of other servers that return log entries.
const LOG_WORDS: [&str; 4] = ["log", "journal", "syslog", "events"];

pub(crate) fn tool(node: &Arc<ToolContext>, functions: &Arc<dyn FunctionSource>) -> Tool {
    let functions = functions.clone();
    read_only_tool(
        "execute_function",
        "Execute a function",
        "Rows of a function. Use list_functions before it. sql on the same tables can also join and aggregate.",
        InputSchemaBuilder::new()
            .with_required("function", json!({"type": "string"}))
            .with("columns", json!({"type": "array", "items": {}}))
            .with(
                "conditions",
                json!({"type": "array", "items": {}, "description":
                    "[column, operator, value], all of them: [[\"name\", \"match\", \"nginx*|post*\"], \
                     [\"memory_bytes\", \">\", 1000000]]"}),
            )
            .with(
                "sort",
                json!({"type": "array", "items": {}, "description":
                    "[{\"column\": \"cpu_percent\", \"direction\": \"desc\"}]"}),
            )
            .with("limit", json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}))
            .with("parameters", json!({"type": "object"}))
            .with_output_arguments(),
        node_handler(node, move |node, job, reply| handle(node, functions.clone(), job, reply)),
    )
}

#[derive(Deserialize)]
struct Arguments {
    function: String,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(
    node: Arc<ToolContext>,
    functions: Arc<dyn FunctionSource>,
    job: Arc<Job>,
    reply: ReplySender,
) -> Result<Metadata, Error> {
    let Arguments { function: name, shape } = parse_arguments(&job)?;
    let all = functions.functions(job.principal());
    let Some(function) = all.iter().find(|function| function.name == *name) else {
        return Err(unknown_function(&name, &all));
    };
    let mut arguments = job.arguments().clone();
    arguments.retain(|name, _| REQUEST_ARGUMENTS.contains(&name.as_str()));
    let request = functions.validate(&name, &arguments, job.principal())?;
    let request = request.map_err(|violations| to_error(&name, &violations))?;
    let output_options = shape.output_options("Add conditions, select fewer columns, or lower the limit.")?;
    job.record_database(functions.database());
    let answer = functions.run(&name, request.clone(), &job).await?;
    // Programs that set a format receive all rows.
    let bytes_max = job.inline_budget().bytes.filter(|_| job.format().is_none());
    if let Some(bytes_max) = bytes_max {
        let bytes = answer.selected.estimated_bytes();
        if let Some(oversized) = OversizedAnswer::check(function, &request, &answer.selected, bytes, bytes_max) {
            return send_oversized(&oversized, &job, &reply).await;
        }
    }
    let counts = describe_counts(&answer.selected, answer.is_truncated);
    let rows = QueryRows::from_batch(answer.batch);
    let metadata = node.executor.answer_rows(rows, output_options, &job, &reply).await?;
    // Programs that set a format expect only rows.
    if let Some(counts) = counts.filter(|_| job.format().is_none() && shape_is_default(&job)) {
        reply.end_text().await?;
        reply.send_block(Content::text(counts)).await?;
    }
    Ok(metadata)
}

fn shape_is_default(job: &Job) -> bool {
    job.arguments().get("extract").is_none_or(Value::is_null)
}

/// What the rows leave out; `None` if nothing.
fn describe_counts(selected: &SelectedRows, is_truncated: bool) -> Option<String> {
    let partial = match is_truncated {
        true => format!(" Only the first {} rows of the table were checked.", selected.evaluated),
        false => String::new(),
    };
    let is_limited = selected.is_limited() || is_truncated;
    is_limited.then(|| format!("{} of {} rows that match.{partial}", selected.rows.len(), selected.matched))
}

/// Sends the example row and the advice. The row is data, as all rows are.
async fn send_oversized(oversized: &OversizedAnswer, job: &Job, reply: &ReplySender) -> Result<Metadata, Error> {
    let text = match job.fence() {
        Some(fence) => format!("{}{oversized}{}", fence.opening(), fence.closing(true)),
        None => oversized.to_string(),
    };
    reply.send_block(Content::text(text)).await?;
    Ok(Metadata::new())
}

fn to_error(name: &str, violations: &RequestViolations) -> Error {
    let count = violations.violations.len() + violations.omitted;
    let problems = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
    Error::new(ErrorKind::InvalidArguments, format!("the request for {name:?} has {problems}:\n{violations}"))
}

/// The hint for a name of log entries, which have tools of their own.
pub(super) fn log_hint(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    LOG_WORDS.iter().any(|word| name.contains(word)).then_some(
        "Log entries are no function. Where the server has log sources, list_logs_sources and query_logs read them.",
    )
}
