//! `get_trace`: the spans of one trace as a tree.

use std::sync::Arc;

use futures::StreamExt;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use tidegate_core::{Access, AllowedNames, Error, ErrorKind, Principal, PrincipalRule};
use tidegate_query::{ComparisonOperator, Operand, QueryCondition, QuerySpec, Selection};
use tidegate_runtime::{Answer, Job, RunningCall, SnapshotBuilder, Tool};
use tidegate_sql::Parameter;
use tidegate_telemetry::formats::{TelemetryLimits, TelemetryTable, TraceTree, TraceTreeError, trace_spans};

use crate::arguments::parse_arguments;
use crate::source_columns::TablePresence;
use crate::tool_definition::{InputSchemaBuilder, add_tools, context_handler, read_only_tool};
use crate::tool_services::ToolServices;
use crate::typed_rows::{MixedNumbers, open_typed_rows};

/// The columns of a span.
const COLUMNS: [&str; 9] =
    ["trace_id", "span_id", "parent_span_id", "name", "service_name", "kind", "status_code", "start_time", "end_time"];
const IDENTIFIER_DIGITS: usize = 32;

/// A database whose table `otel_traces` has spans.
#[derive(Debug, Clone)]
pub struct TraceSource {
    /// The name of the database.
    pub database: String,
    /// Whether the table exists now.
    pub presence: TablePresence,
}

struct TraceContext {
    services: Arc<ToolServices>,
    source: TraceSource,
    limits: TelemetryLimits,
}

/// Adds `get_trace` to `builder` if `allowed` includes it. A caller has it once the table exists, if it may query the
/// database of `source`.
pub fn register_traces(
    builder: SnapshotBuilder,
    services: &Arc<ToolServices>,
    source: TraceSource,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    let context = Arc::new(TraceContext { services: services.clone(), source, limits: TelemetryLimits::default() });
    let of_rule = context.clone();
    let rule = PrincipalRule::new(move |principal: &Principal| {
        let mut databases = of_rule.services.databases.visible_to(principal);
        databases.any(|database| database.name() == of_rule.source.database) && of_rule.source.presence.exists()
    });
    let access = Access { principal_rule: Some(rule), ..Access::default() };
    add_tools(builder, [tool(&context)], &access, allowed)
}

fn tool(context: &Arc<TraceContext>) -> Tool {
    let schema = InputSchemaBuilder::new()
        .with_required("trace_id", json!({"type": "string", "description": "32 hexadecimal digits"}))
        .with("database", json!({"type": "string"}));
    read_only_tool(
        "get_trace",
        "Get a trace",
        "The spans of one trace as a tree, with their times. Find traces in the table otel_traces.",
        schema,
        context_handler(context, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    trace_id: String,
    database: Option<String>,
}

async fn handle(context: Arc<TraceContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { trace_id, database } = parse_arguments(&call)?;
    let trace_id = trace_id.trim().to_ascii_lowercase();
    if trace_id.len() != IDENTIFIER_DIGITS || !trace_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let message = format!("{trace_id:?} is no identifier of a trace: it has 32 hexadecimal digits");
        return Err(Error::new(ErrorKind::InvalidArguments, message));
    }
    let name = database.as_deref().unwrap_or(&context.source.database);
    let database = context.services.databases.get(Some(name), call.principal())?.clone();
    let spans_max = context.limits.tree_spans_max;
    let of_trace = Operand::One(Parameter::Text(trace_id.clone()));
    let spec = QuerySpec {
        select: COLUMNS.map(Selection::column).into(),
        filter: Some(QueryCondition::compare("trace_id", ComparisonOperator::Equal, of_trace)),
        // One more than the limit, so that a trace that is larger is refused and not cut.
        limit: spans_max as u64 + 1,
        ..QuerySpec::new(TelemetryTable::Traces.name())
    };
    let mut rows = open_typed_rows(&context.services, &*database, &spec, call.job(), MixedNumbers::Floats).await?;
    let mut spans = Vec::new();
    while let Some(batch) = rows.next().await.transpose()? {
        call.usage().count_rows(batch.num_rows() as u64);
        spans.extend(trace_spans(&[batch]).map_err(|error| Error::new(ErrorKind::Failed, error.to_string()))?);
    }
    let tree = TraceTree::build(spans, &context.limits).map_err(|error| tree_error(error, name, &trace_id))?;
    answer(&tree, &call)
}

fn tree_error(error: TraceTreeError, database: &str, trace_id: &str) -> Error {
    match error {
        TraceTreeError::Empty => {
            let message = format!("there is no trace {trace_id:?} in {database}.{}", TelemetryTable::Traces.name());
            Error::new(ErrorKind::NotFound, message)
        }
        TraceTreeError::TooManySpans { limit, .. } => {
            Error::new(ErrorKind::TooLarge, format!("the trace has more than {limit} spans"))
                .with_hint("Ask for some of its spans with query.")
        }
        error => Error::new(ErrorKind::Failed, error.to_string()).with_hint("Ask for its spans with query."),
    }
}

/// The tree as a body over REST; else as text, and as structured data if both fit.
fn answer(tree: &TraceTree, job: &Job) -> Result<Answer, Error> {
    let mut json = tree.to_json();
    if let (Some(members), Some(missing)) = (json.as_object_mut(), job.missing_nodes()) {
        members.extend(missing.to_json_members());
    }
    if job.format().is_some() {
        return Ok(Answer::data(job.protection().redact_json(json.to_string())?));
    }
    let text = tree.to_text();
    let bytes_max = job.limits().inline.bytes;
    if let Some(max) = bytes_max.filter(|max| text.len() > *max) {
        let message = format!("the tree has {} bytes; the maximum is {max}", text.len());
        return Err(Error::new(ErrorKind::TooLarge, message).with_hint("Ask for some of its spans with query."));
    }
    let answer = Answer::data(job.protection().redact_text(text)?.into_owned());
    let structured = to_raw_value(&json).map_err(|error| Error::internal(error.to_string()))?;
    // Structured data cannot be fenced.
    let is_structured = job.protection().fence().is_none() && bytes_max.is_none_or(|max| structured.get().len() <= max);
    Ok(if is_structured { answer.with_structured(structured) } else { answer })
}
