//! From a request to the one call that it asks for.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::response::Response;
use serde_json::{Map, Value};
use tidegate_core::{AnswerFormat, Call, Caller, Target};

use super::super::Door;
use super::super::identify::{Known, Shown};
use super::accept::Accept;
use super::answer::answer;
use super::arguments::{
    DATABASE, EXTRACT, LIMIT, MAX_ROWS, ORDER_BY, PATTERN, Parameter, Payload, SAMPLES, SELECT, WHERE, of_address, read,
};
use super::problem::Problem;
use super::route::Route;
use super::{discarding, problem::Sort};

/// `Tidegate-Trace: 1` has everything about the request logged, whatever the level.
const TRACE: HeaderName = HeaderName::from_static("tidegate-trace");
/// [W3C Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header)
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// The tool that a route calls, the arguments that its path holds, and the parameters that its address takes.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: Vec<(&'static str, &'a str)>,
    pub(super) parameters: &'static [Parameter],
    /// Whether the body may be a statement as it is.
    pub(super) takes_sql: bool,
}

impl Route {
    /// What the route asks for when `method` is used; none if it is no call.
    pub(super) fn asked(&self, method: &Method) -> Option<Asked<'_>> {
        let asked = |tool, arguments, parameters| Asked { tool, arguments, parameters, takes_sql: false };
        Some(match self {
            Self::Page | Self::OpenApi | Self::Tools | Self::Tool(_) | Self::Schema(_) => return None,
            Self::Call(tool) => asked(tool, vec![], &[]),
            Self::Query => asked("query", vec![], &[]),
            Self::Sql => Asked { takes_sql: true, ..asked("sql", vec![], &[DATABASE, MAX_ROWS, EXTRACT]) },
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
    door: &Arc<Door>,
    route: &Route,
    parts: &Parts,
    body: Body,
    shown: &Shown,
    caller: Caller,
) -> Result<Response, Problem> {
    let Some(asked) = route.asked(&parts.method) else {
        return Err(Problem::new(Sort::NoSuchPath, "there is nothing to call".to_owned()));
    };
    let (accept, mut arguments, payload) = match head(&asked, parts) {
        Ok(head) => head,
        Err(problem) => return Err(discarding(door, body, problem).await),
    };
    let body = read(door, parts, body).await?;
    // A body may take its time; what its sender may do is settled after it.
    let caller = if body.is_empty() { caller } else { shown.caller(door).await.map_err(|it| Problem::refused(&it))? };
    for (name, value) in payload.arguments(&body)? {
        if arguments.contains_key(&name) {
            let detail = format!("the argument {name} stands in the body and in the address");
            return Err(Problem::new(Sort::BadRequest, detail));
        }
        arguments.insert(name, value);
    }
    let standing = Known::standing(door, shown, &caller);
    let mut call = Call::new(Target::Tool(asked.tool.to_owned()), caller);
    call.arguments = arguments;
    call.format = Some(accept.best());
    trace(&mut call, &parts.headers);
    let reply = door.service.registry().call(call)?;
    answer(reply, standing, &accept, parts).await
}

/// Takes over what the headers say of tracing.
pub(in super::super) fn trace(call: &mut Call, headers: &HeaderMap) {
    call.trace = headers.get(TRACE).is_some_and(|value| value == "1");
    let trace_parent = headers.get(TRACE_PARENT).and_then(|value| value.to_str().ok());
    call.trace_parent = trace_parent.filter(|value| tidegate_mcp::is_trace_parent(value)).map(str::to_owned);
}

/// What is known before the body: the forms that are accepted, arguments, and what the body is.
fn head(asked: &Asked<'_>, parts: &Parts) -> Result<(Accept, Map<String, Value>, Payload), Problem> {
    let (mut arguments, format) = of_address(&parts.uri, asked.parameters)?;
    let accept = Accept::read(&parts.headers, format.as_deref(), &AnswerFormat::ALL)?;
    arguments.extend(asked.arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    let payload = match super::is_reading(&parts.method) {
        true => Payload::Nothing,
        false => Payload::of(&parts.headers, asked.takes_sql)?,
    };
    Ok((accept, arguments, payload))
}
