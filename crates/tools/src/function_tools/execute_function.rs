//! `execute_function`: rows of a function, with conditions, order and limit. They are a query of its table.
//!
//! The schema of the arguments is open inside of lists and objects, because [`FunctionRequest::parse`] reports all problems
//! at once.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use futures::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_core::{Content, Error};
use tidegate_query::QueryRows;
use tidegate_runtime::{Answer, Job, RunningCall, Tool};

use super::FunctionSource;
use super::list_functions::unknown_function;
use super::oversized::describe_oversized;
use super::request::FunctionRequest;
use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, any_of, context_handler, read_only_tool, values_schema};

/// The number of rows when a request has no limit.
const LIMIT_DEFAULT: usize = 100;
/// The largest limit, because the rows of an answer are in memory.
const LIMIT_MAX: usize = 5_000;
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
            .with("columns", json!({"type": "array", "items": {"type": "string"}}))
            .with(
                "conditions",
                json!({"type": "array", "items": values_schema(), "description":
                    "[column, operator, value], all of them: [[\"name\", \"match\", \"nginx*|post*\"], \
                     [\"memory_bytes\", \">\", 1000000]]"}),
            )
            .with(
                "sort",
                json!({"type": "array", "items": any_of(&["string", "object"], ""), "description":
                    "[{\"column\": \"cpu_percent\", \"direction\": \"desc\"}]"}),
            )
            .with("limit", json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}))
            .with("parameters", json!({"type": "object"}))
            .with_output_arguments(),
        context_handler(node, move |node, call| handle(node, functions.clone(), call)),
    )
}

#[derive(Deserialize)]
struct Arguments {
    function: String,
    limit: Option<usize>,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(
    node: Arc<ToolContext>,
    functions: Arc<dyn FunctionSource>,
    call: RunningCall,
) -> Result<Answer, Error> {
    let Arguments { function: name, limit, shape } = parse_arguments(&call)?;
    let all = functions.functions(call.principal());
    let Some(function) = all.iter().find(|function| function.name == *name) else {
        return Err(unknown_function(&name, &all));
    };
    let grants_sensitive = functions.grants_sensitive(call.principal());
    let request = FunctionRequest::parse(function, call.arguments(), grants_sensitive)?;
    let output_options = shape.output_options("Add conditions, select fewer columns, or lower the limit.")?;
    let database = functions.with_parameters(&name, request.parameters.clone(), call.principal())?;
    let statement = request.spec.render_with_cache(&*database, call.principal(), &node.statements).await?;
    let rows = node.executor.open_rows(&*database, &statement, call.job()).await?;
    let (batch, matched) = first_rows(rows, limit.unwrap_or(LIMIT_DEFAULT)).await?;
    // Programs that set a format receive all rows.
    let bytes_max = call.limits().inline.bytes.filter(|_| call.format().is_none());
    if let Some(bytes_max) = bytes_max
        && let Some(oversized) = describe_oversized(function, &request, &batch, matched, bytes_max)
    {
        // The example row is data, as all rows are.
        return Ok(Answer::text(call.protection().fence_data(oversized)));
    }
    let rows = batch.num_rows();
    let answer = node.executor.answer_rows(QueryRows::from_batch(batch), output_options);
    // Programs that set a format expect only rows.
    if matched == rows || call.format().is_some() || !shape_is_default(&call) {
        return Ok(answer);
    }
    Ok(answer.followed_by(move |reply, meta| async move {
        reply.end_text().await?;
        reply.send_block(Content::text(format!("{rows} of {matched} rows that match."))).await?;
        Ok(meta)
    }))
}

/// The first rows, and the number of all rows.
async fn first_rows(rows: QueryRows, limit: usize) -> Result<(RecordBatch, usize), Error> {
    let QueryRows { schema, mut batches, .. } = rows;
    let (mut first, mut taken, mut matched) = (Vec::new(), 0, 0);
    while let Some(batch) = batches.next().await.transpose()? {
        matched += batch.num_rows();
        if taken < limit {
            let batch = batch.slice(0, batch.num_rows().min(limit - taken));
            taken += batch.num_rows();
            first.push(batch);
        }
    }
    let batch =
        concat_batches(&schema, &first).map_err(|error| Error::internal(format!("rows of a function: {error}")))?;
    Ok((batch, matched))
}

fn shape_is_default(job: &Job) -> bool {
    job.arguments().get("extract").is_none_or(Value::is_null)
}

/// The hint for a name of log entries, which have tools of their own.
pub(super) fn log_hint(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    LOG_WORDS.iter().any(|word| name.contains(word)).then_some(
        "Log entries are no function. Where the server has log sources, list_logs_sources and query_logs read them.",
    )
}
