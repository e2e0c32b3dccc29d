//! From a request to the one call that it asks for.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::response::Response;
use serde_json::{Map, Value};
use tidegate_core::{AnswerFormat, Call, CallTarget, Caller};

use super::super::HttpState;
use super::super::identify::{HttpCallerResolver, RequestCredentials};
use super::accept::Accept;
use super::answer::answer;
use super::arguments::{
    BodyKind, DATABASE, EXTRACT, LIMIT, MAX_ROWS, ORDER_BY, PATTERN, QueryParameter, SAMPLES, SELECT, WHERE,
    parse_query, read_body,
};
use super::problem::ProblemDetails;
use super::route::RestRoute;
use super::{discard_body, problem::ProblemType};

/// `Tidegate-Trace: 1` has everything about the request logged, whatever the level.
const TRACE: HeaderName = HeaderName::from_static("tidegate-trace");
/// [W3C Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header)
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// The tool that a route calls, the arguments that its path holds, and the parameters that its address takes.
#[derive(Debug, Default)]
pub(super) struct ToolRequest<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: Vec<(&'static str, &'a str)>,
    pub(super) parameters: &'static [QueryParameter],
    /// Whether the body may be a statement as it is.
    pub(super) takes_sql: bool,
}

impl RestRoute {
    /// What the route asks for when `method` is used; none if it is no call.
    pub(super) fn tool_request(&self, method: &Method) -> Option<ToolRequest<'_>> {
        let asked = |tool, arguments, parameters| ToolRequest { tool, arguments, parameters, takes_sql: false };
        Some(match self {
            Self::Page | Self::OpenApi | Self::Tools | Self::Tool(_) | Self::Schema(_) => return None,
            Self::Call(tool) => asked(tool, vec![], &[]),
            Self::Query => asked("query", vec![], &[]),
            Self::Sql => ToolRequest { takes_sql: true, ..asked("sql", vec![], &[DATABASE, MAX_ROWS, EXTRACT]) },
            Self::Databases => asked("list_databases", vec![], &[EXTRACT]),
            Self::Tables { database } => asked("list_tables", vec![("database", database)], &[PATTERN, EXTRACT]),
            Self::Table { database, table } => {
                asked("get_schema", vec![("database", database), ("table", table)], &[SAMPLES, EXTRACT])
            }
            Self::Rows { database, table } => {
                let parameters = &[SELECT, WHERE, ORDER_BY, LIMIT, EXTRACT];
                asked("query", vec![("database", database), ("table", table)], parameters)
            }
            Self::Jobs => asked("list_jobs", vec![], &[EXTRACT]),
            Self::Job(id) if *method == Method::DELETE => asked("cancel_job", vec![("id", id)], &[]),
            Self::Job(id) => asked("list_jobs", vec![("id", id)], &[]),
        })
    }
}

/// Calls what `route` asks for and answers in the form that the request accepts.
pub(super) async fn call(
    door: &Arc<HttpState>,
    route: &RestRoute,
    parts: &Parts,
    body: Body,
    shown: &RequestCredentials,
    caller: Caller,
) -> Result<Response, ProblemDetails> {
    let Some(asked) = route.tool_request(&parts.method) else {
        return Err(ProblemDetails::new(ProblemType::NoSuchPath, "there is nothing to call".to_owned()));
    };
    let (accept, mut arguments, payload) = match parse_head(&asked, parts) {
        Ok(head) => head,
        Err(problem) => return Err(discard_body(door, body, problem).await),
    };
    let body = read_body(door, parts, body).await?;
    // A body may take its time; what its sender may do is settled after it.
    let caller = if body.is_empty() {
        caller
    } else {
        shown.resolve_caller(door).await.map_err(|it| ProblemDetails::from_admission_error(&it))?
    };
    for (name, value) in payload.parse_arguments(&body)? {
        if arguments.contains_key(&name) {
            let detail = format!("the argument {name} stands in the body and in the address");
            return Err(ProblemDetails::new(ProblemType::BadRequest, detail));
        }
        arguments.insert(name, value);
    }
    let standing = HttpCallerResolver::session_validity(door, shown, &caller);
    let mut call = Call::new(CallTarget::Tool(asked.tool.to_owned()), caller);
    call.arguments = arguments;
    call.format = Some(accept.best());
    apply_trace_headers(&mut call, &parts.headers);
    let reply = door.service.registry().call(call)?;
    answer(reply, standing, &accept, parts).await
}

/// Takes over what the headers say of tracing.
pub(in super::super) fn apply_trace_headers(call: &mut Call, headers: &HeaderMap) {
    call.trace = headers.get(TRACE).is_some_and(|value| value == "1");
    let trace_parent = headers.get(TRACE_PARENT).and_then(|value| value.to_str().ok());
    call.trace_parent = trace_parent.filter(|value| tidegate_mcp::is_trace_parent(value)).map(str::to_owned);
}

/// What is known before the body: the forms that are accepted, arguments, and what the body is.
fn parse_head(
    asked: &ToolRequest<'_>,
    parts: &Parts,
) -> Result<(Accept, Map<String, Value>, BodyKind), ProblemDetails> {
    let (mut arguments, format) = parse_query(&parts.uri, asked.parameters)?;
    let accept = Accept::read(&parts.headers, format.as_deref(), &AnswerFormat::ALL)?;
    arguments.extend(asked.arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    let payload = match super::is_read_method(&parts.method) {
        true => BodyKind::Nothing,
        false => BodyKind::from_headers(&parts.headers, asked.takes_sql)?,
    };
    Ok((accept, arguments, payload))
}
