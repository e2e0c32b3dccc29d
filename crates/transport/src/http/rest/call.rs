//! Turns a request into the call of one tool.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Map, Value};
use tidegate_core::{CallTarget, Caller, Format};
use tidegate_runtime::Call;

use super::super::answer::{Accept, ProblemDetails, ProblemType, QueryParameter, apply_trace_headers, parse_query};
use super::super::caller::{HttpCallerResolver, REVALIDATE_AFTER, RequestCredentials};
use super::super::state::HttpState;
use super::answer::answer;
use super::arguments::{
    BodyKind, DATABASE, DISTINCT, EXTRACT, LIMIT, MAX_ROWS, OFFSET, ORDER_BY, PATTERN, SAMPLES, SELECT, WHERE,
    discard_body, is_read_method, read_body,
};
use super::route::RestRoute;
use super::telemetry_parameters::{FIELD_VALUES, LOG_ENTRIES, METRIC_LIST, METRIC_POINTS};

#[derive(Debug, Default)]
pub(super) struct ToolRequest<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: Vec<(&'static str, &'a str)>,
    pub(super) parameters: &'static [QueryParameter],
    pub(super) takes_sql: bool,
}

impl RestRoute {
    pub(super) fn tool_request(&self, method: &Method) -> Option<ToolRequest<'_>> {
        let requested = |tool, arguments, parameters| ToolRequest { tool, arguments, parameters, takes_sql: false };
        Some(match self {
            Self::Page | Self::OpenApi | Self::Tools | Self::Tool(_) | Self::Schema(_) => return None,
            Self::Transports | Self::Transport { .. } => return None,
            Self::Call(tool) => requested(tool, vec![], &[]),
            Self::Query => requested("query", vec![], &[]),
            Self::Sql => ToolRequest { takes_sql: true, ..requested("sql", vec![], &[DATABASE, MAX_ROWS, EXTRACT]) },
            Self::Databases => requested("list_databases", vec![], &[EXTRACT]),
            Self::Tables { database } => requested("list_tables", vec![("database", database)], &[PATTERN, EXTRACT]),
            Self::Table { database, table } => {
                requested("get_schema", vec![("database", database), ("table", table)], &[SAMPLES, EXTRACT])
            }
            Self::Rows { database, table } => {
                let parameters = &[SELECT, DISTINCT, WHERE, ORDER_BY, LIMIT, OFFSET, EXTRACT];
                requested("query", vec![("database", database), ("table", table)], parameters)
            }
            Self::Logs => requested("list_logs_sources", vec![], &[EXTRACT]),
            Self::LogEntries { source } => requested("query_logs", vec![("source", source)], &LOG_ENTRIES),
            Self::LogFields { source } => requested("list_logs_fields", vec![("source", source)], &[EXTRACT]),
            Self::LogFieldValues { source, field } => {
                // A text is accepted where a list is expected.
                requested("list_logs_fields_values", vec![("source", source), ("fields", field)], &FIELD_VALUES)
            }
            Self::Metrics => requested("list_metrics", vec![], &METRIC_LIST),
            Self::SourceMetrics { source } => requested("list_metrics", vec![("source", source)], &METRIC_LIST),
            Self::MetricPoints { source, metric } => {
                requested("query_metrics", vec![("source", source), ("metric", metric)], &METRIC_POINTS)
            }
            Self::Jobs => requested("list_jobs", vec![], &[EXTRACT]),
            Self::Job(id) if *method == Method::DELETE => requested("cancel_job", vec![("id", id)], &[]),
            Self::Job(id) => requested("list_jobs", vec![("id", id)], &[]),
        })
    }
}

pub(super) async fn call(
    http_state: &Arc<HttpState>,
    route: &RestRoute,
    parts: &Parts,
    body: Body,
    credentials: &RequestCredentials,
    caller: Caller,
) -> Result<Response, ProblemDetails> {
    let Some(tool_request) = route.tool_request(&parts.method) else {
        return Err(ProblemDetails::new(ProblemType::NoSuchPath, "this path calls no tool"));
    };
    let (accept, mut arguments, payload) = match parse_head(&tool_request, parts) {
        Ok(head) => head,
        Err(problem) => return Err(discard_body(http_state, body, problem).await),
    };
    let requested = Instant::now();
    let body = read_body(http_state, parts, body).await?;
    // Reading the body may have taken long, so the permissions of the caller are resolved again.
    let is_recent = requested.elapsed() <= REVALIDATE_AFTER;
    let caller = if is_recent { caller } else { credentials.resolve_caller(http_state).await? };
    for (name, value) in payload.parse_arguments(&body)? {
        if arguments.contains_key(&name) {
            let detail = format!("the argument {name} is given both in the body and in the query string");
            return Err(ProblemDetails::bad_request(detail));
        }
        arguments.insert(name, value);
    }
    let validity = HttpCallerResolver::new(http_state, credentials.clone(), &caller).into_revalidator();
    let mut call = Call::new(CallTarget::Tool(tool_request.tool.to_owned()), caller);
    call.arguments = arguments;
    call.format = Some(accept.best());
    apply_trace_headers(&mut call, &parts.headers);
    let registry = http_state.service.registry();
    let cache = registry.snapshot_for(&call.caller).tool_cache_hint(tool_request.tool);
    let reply = registry.call(call)?;
    answer(reply, validity, &accept, parts, cache).await
}

/// Parses everything before the body: accepted formats, arguments, and the type of the body.
fn parse_head(
    tool_request: &ToolRequest<'_>,
    parts: &Parts,
) -> Result<(Accept, Map<String, Value>, BodyKind), ProblemDetails> {
    let (mut arguments, format) = parse_query(&parts.uri, tool_request.parameters)?;
    let accept = Accept::read(&parts.headers, format.as_deref(), &Format::FOR_REST)?;
    arguments.extend(tool_request.arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    let payload = match is_read_method(&parts.method) {
        true => BodyKind::Nothing,
        false => BodyKind::from_headers(&parts.headers, tool_request.takes_sql)?,
    };
    Ok((accept, arguments, payload))
}
