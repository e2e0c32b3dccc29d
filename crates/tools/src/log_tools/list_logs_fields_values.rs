//! `list_logs_fields_values`: facets.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::Error;
use tidegate_runtime::{Answer, RunningCall, Tool};
use tidegate_telemetry::logs::{FACET_VALUES_MAX, LogScanRequest, NUMBER_RANGES_MAX};

use super::LogContext;
use super::answer::summary_json;
use super::facets::{VALUES_DEFAULT, facet_requests, facets_json};
use super::notes::add_notes;
use super::scan::run_scan;
use super::search::{LogSearch, SearchArguments, reject, with_search_arguments};
use crate::arguments::parse_arguments;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};

pub(crate) fn tool(context: &Arc<LogContext>) -> Tool {
    let schema = with_search_arguments(InputSchemaBuilder::new())
        .with_required("fields", json!({"type": "array", "items": {"type": "string"}, "minItems": 1}))
        .with("limit", json!({"type": "integer", "minimum": 1, "maximum": FACET_VALUES_MAX, "default": VALUES_DEFAULT}))
        .with(
            "ranges",
            json!({"type": "integer", "minimum": 2, "maximum": NUMBER_RANGES_MAX, "description": "Numbers as ranges"}),
        );
    read_only_tool(
        "list_logs_fields_values",
        "Count log values",
        "Values of fields with their rows; each under the selections of all other fields.",
        schema,
        context_handler(context, handle),
    )
}

#[derive(Debug, Deserialize)]
struct Arguments {
    #[serde(flatten)]
    search: SearchArguments,
    fields: Vec<String>,
    limit: Option<usize>,
    ranges: Option<usize>,
}

async fn handle(context: Arc<LogContext>, call: RunningCall) -> Result<Answer, Error> {
    let arguments: Arguments = parse_arguments(&call)?;
    let mut violations = Vec::new();
    let search = LogSearch::resolve(&context, &arguments.search, call.job(), &mut violations).await?;
    let values_max = arguments.limit.unwrap_or(VALUES_DEFAULT);
    let facets = facet_requests(&search, "fields", &arguments.fields, values_max, arguments.ranges, &mut violations);
    reject(violations, &search)?;
    let request = LogScanRequest { facets, ..search.request.clone() };
    let mut fields = search.filter_fields();
    fields.extend(arguments.fields);
    let outcome = run_scan(&search, &request, &fields, None).await?;
    let mut json = summary_json(&outcome, &search);
    json.insert("facets".to_owned(), facets_json(&outcome.answer.facets));
    add_notes(&search, &request, &outcome, &mut json).await;
    Ok(Answer::json(json))
}
