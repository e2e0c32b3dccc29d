//! `list_logs_fields`: the fields of a log source, with what their values look like; and `list_logs_fields_values`:
//! facets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::Error;
use tidegate_runtime::{Answer, RunningCall, Tool};
use tidegate_telemetry::logs::{
    FACET_FIELDS_MAX, FACET_VALUES_MAX, FacetAnswer, FacetRequest, FieldFacet, LogScanRequest, MISSING,
    NUMBER_RANGES_MAX,
};

use super::LogContext;
use super::answer::{VALUES_DEFAULT, add_notes, cut_text, facet_requests, facets_json, summary_json};
use super::scan::run_scan;
use super::search::{LogSearch, SearchArguments, reject, with_search_arguments};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::log_sources::SOURCE_FIELD;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, text_column};

/// How rows with a value of a field are found.
const INDEX: &str = "index";
const SCAN: &str = "scan";
/// The number of rows whose values are counted.
const SAMPLED_ROWS_MAX: u64 = 20_000;
/// The maximum number of characters of an example.
const EXAMPLE_CHARACTERS_MAX: usize = 80;

pub(crate) fn list_logs_fields_tool(context: &Arc<LogContext>) -> Tool {
    let schema = InputSchemaBuilder::new()
        .with("source", json!({"type": "array", "items": {"type": "string"}}))
        .with_output_arguments();
    read_only_tool(
        "list_logs_fields",
        "List log fields",
        "Fields of log sources: type, role, search by index or scan, distinct values in a sample of rows, an example.",
        schema,
        context_handler(context, handle_list_logs_fields),
    )
}

#[derive(Debug, Deserialize)]
struct FieldsArguments {
    #[serde(flatten)]
    search: SearchArguments,
    #[serde(flatten)]
    output: OutputArguments,
}

async fn handle_list_logs_fields(context: Arc<LogContext>, call: RunningCall) -> Result<Answer, Error> {
    let arguments: FieldsArguments = parse_arguments(&call)?;
    let mut violations = Vec::new();
    let search = LogSearch::resolve(&context, &arguments.search, call.job(), &mut violations).await?;
    reject(violations, &search)?;
    let fields: Vec<String> = search.set.field_names().into_iter().map(str::to_owned).collect();
    let mut facets: HashMap<String, FieldFacet> = HashMap::with_capacity(fields.len());
    // A scan counts a bounded number of fields; journals have more.
    for counted in fields.chunks(FACET_FIELDS_MAX) {
        facets.extend(count_values(&search, counted).await?);
    }
    let counted: Vec<Option<&FieldFacet>> = fields.iter().map(|field| facets.get(field)).collect();
    let columns: Vec<(Option<String>, Option<&'static str>)> =
        fields.iter().map(|field| describe(&search, field)).collect();
    let scanned = scanned_fields(&search).await?;
    let search_kind = |field: &String| Some(if scanned.contains(field) { SCAN } else { INDEX }.to_owned());
    let values = counted.iter().map(|facet| facet.map(|facet| facet.distinct_values - u64::from(facet.has_missing)));
    let example = counted.iter().map(|facet| {
        let value = facet.and_then(|facet| facet.values.iter().find(|value| value.value != MISSING))?;
        Some(cut_text(&value.value, EXAMPLE_CHARACTERS_MAX))
    });
    let table = TableBuilder::new()
        .with_column("field", text_column(fields.iter().map(|field| Some(field.clone()))))
        .with_column("type", text_column(columns.iter().map(|(type_name, _)| type_name.clone())))
        .with_column("role", text_column(columns.iter().map(|(_, role)| role.map(str::to_owned))))
        .with_column("search", text_column(fields.iter().map(search_kind)))
        .with_column("values", count_column(values))
        .with_column("example", text_column(example));
    Ok(context.services.executor.answer_rows(table.into_rows()?, arguments.output.output_options("")?))
}

/// Counts the values of `fields` in a sample of rows.
async fn count_values(
    search: &LogSearch<'_>,
    fields: &[String],
) -> Result<impl Iterator<Item = (String, FieldFacet)>, Error> {
    let facet = |field: &String| FacetRequest { field: field.clone(), values_max: 2, ranges: None };
    let request = LogScanRequest { facets: fields.iter().map(facet).collect(), ..search.request.clone() };
    let outcome = run_scan(search, &request, fields, Some(SAMPLED_ROWS_MAX)).await?;
    Ok(outcome.answer.facets.into_iter().filter_map(|facet| match facet {
        FacetAnswer::Values(facet) => Some((facet.field.clone(), facet)),
        _ => None,
    }))
}

/// The fields for whose values at least one source reads all rows.
async fn scanned_fields(search: &LogSearch<'_>) -> Result<HashSet<String>, Error> {
    // The name of the source is no column.
    let mut scanned = HashSet::from([SOURCE_FIELD.to_owned()]);
    for source in &search.set.sources {
        let indexed = source.storage(search.job.principal()).await?.indexed_columns;
        let without_index = search.set.fields(source).filter(|(_, column)| !indexed.contains(&column.name));
        scanned.extend(without_index.map(|(name, _)| name.to_owned()));
    }
    Ok(scanned)
}

/// The type and the role of a field in the first source that has it.
fn describe(search: &LogSearch<'_>, field: &str) -> (Option<String>, Option<&'static str>) {
    let found = search.set.sources.iter().find_map(|source| {
        let (_, column) = search.set.fields(source).find(|(name, _)| *name == field)?;
        Some((Some(column.type_name.to_lowercase()), source.columns.role(&column.name)))
    });
    found.unwrap_or((Some("text".to_owned()), None))
}

pub(crate) fn list_logs_fields_values_tool(context: &Arc<LogContext>) -> Tool {
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
        context_handler(context, handle_list_logs_fields_values),
    )
}

#[derive(Debug, Deserialize)]
struct ValuesArguments {
    #[serde(flatten)]
    search: SearchArguments,
    fields: Vec<String>,
    limit: Option<usize>,
    ranges: Option<usize>,
}

async fn handle_list_logs_fields_values(context: Arc<LogContext>, call: RunningCall) -> Result<Answer, Error> {
    let arguments: ValuesArguments = parse_arguments(&call)?;
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
