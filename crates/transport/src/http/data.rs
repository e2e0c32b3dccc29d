//! Rows that are sent: `POST`, `PUT` and `DELETE` of `/data/{database}/{table}`.
//!
//! A request becomes one call of one entry, whose handler reads the body while it arrives. What the body means is the matter
//! of the entry: this module passes on bytes, and at most one piece of them is in memory here. The arguments come from the
//! address and the headers. The response is 201 if the table was created, else 200; without a body 204.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, Format, WriteRows};
use tidegate_mcp::NAME_BYTES_MAX;
use tidegate_runtime::{AnswerMeta, Call, Reply, RequestBodyTypes, TransportGroup};

use super::answer::{ProblemDetails, ProblemType, ROWS, add_job_header, into_response, new_call, options_response};
use super::body::{StreamedBody, read_body_type};
use super::caller::{HttpCallerResolver, admit_rest_caller};
use super::endpoints::{Endpoint, EndpointHandler, endpoint_at};
use super::parameters::{ParameterKind, QueryParameter, parse_parameters};
use super::response::{json, retry_after_value};
use super::state::{HttpState, PeerAddress};
use crate::revalidation::CallerRevalidator;

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = StreamedBody::new(body);
    let result = respond(&http_state, &parts, &body).await;
    if result.is_err() {
        body.discard_rest(&parts.headers, http_state.options.read_within).await;
    }
    into_response(&http_state, PeerAddress::from_extensions(&parts.extensions), result)
}

async fn respond(http_state: &Arc<HttpState>, parts: &Parts, body: &StreamedBody) -> Result<Response, ProblemDetails> {
    let route = DataRoute::parse(parts.uri.path(), &parts.method)?;
    if parts.method == Method::OPTIONS {
        return Ok(options_response(route.endpoint));
    }
    let target = RowsTarget {
        entry: route.entry,
        table: Some((route.database.as_str(), route.table.as_str())),
        default_media_type: None,
    };
    let arguments = |has_body| read_arguments(&route, parts, has_body);
    let (reply, revalidator) =
        call_with_rows(http_state, &target, parts, &parts.headers, body, arguments, to_problem).await?;
    let answered = collect_response(reply, revalidator, prefers_minimal(parts)).await;
    answered.map_err(|problem| body.describe_failure(problem))
}

/// What a request with rows calls.
pub(super) struct RowsTarget<'a> {
    pub(super) entry: WriteRows,
    /// The database and the table, where the rows do not name their tables.
    pub(super) table: Option<(&'a str, &'a str)>,
    /// The media type of a body without `Content-Type`.
    pub(super) default_media_type: Option<&'static str>,
}

/// Starts the call of a request with rows, whose credentials are in `headers`. `arguments` depend on whether the entry takes
/// a body, and `refuse` makes the problem of a refused call.
pub(super) async fn call_with_rows(
    http_state: &Arc<HttpState>,
    target: &RowsTarget<'_>,
    parts: &Parts,
    headers: &HeaderMap,
    body: &StreamedBody,
    arguments: impl FnOnce(bool) -> Result<Map<String, Value>, ProblemDetails>,
    refuse: impl Fn(Error) -> ProblemDetails,
) -> Result<(Reply, CallerRevalidator), ProblemDetails> {
    let registry = http_state.service.registry();
    registry.transport_switches().require_running(TransportGroup::Rest)?;
    let (credentials, caller) = admit_rest_caller(http_state, headers, &parts.extensions).await?;
    let revalidator = HttpCallerResolver::new(http_state, credentials, &caller).into_revalidator();
    let build = |call_target, caller, types: Option<RequestBodyTypes>| -> Result<Call, ProblemDetails> {
        let arguments = arguments(types.is_some())?;
        let mut call = new_call(call_target, caller, arguments, Format::Json, &parts.headers);
        // Requests with other methods have no body.
        if let Some(types) = types.filter(|_| matches!(parts.method, Method::POST | Method::PUT)) {
            let (media_type, coding) = read_body_type(&parts.headers, types, target.default_media_type)?;
            call.request_body = Some(body.request_body(&media_type, coding, &http_state.reloadable_options())?);
        }
        Ok(call)
    };
    let reply = registry.write_rows(target.entry, target.table, caller, refuse, build)?;
    Ok((reply, revalidator))
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// [RFC 7240](https://www.rfc-editor.org/rfc/rfc7240)
const PREFER: HeaderName = HeaderName::from_static("prefer");
const KEY_BYTES_MAX: usize = 255;

pub(super) const PARAMETERS: [QueryParameter; 6] = [
    QueryParameter::new(
        "on_reject",
        ParameterKind::Text,
        "all: one row that does not fit refuses the request (default); row: it is kept in the table of rejected rows",
    ),
    QueryParameter::new("create", ParameterKind::Flag, "false: only a table that exists gets rows"),
    QueryParameter::new("delimiter", ParameterKind::Text, "CSV: what separates fields"),
    QueryParameter::new("null", ParameterKind::Text, "CSV: the text without quotes that is null"),
    QueryParameter::new("header", ParameterKind::Flag, "CSV: whether the first line has the names of the columns"),
    QueryParameter::new("binary", ParameterKind::Text, "JSON and CSV: how bytes are written, base64 or hex"),
];

/// The arguments of a call, whose request has a body or none.
fn read_arguments(route: &DataRoute, parts: &Parts, has_body: bool) -> Result<Map<String, Value>, ProblemDetails> {
    let parameters: &[QueryParameter] = if has_body { &PARAMETERS } else { &[] };
    let mut arguments = parse_parameters(&parts.uri, parameters)?;
    arguments.insert("database".to_owned(), route.database.as_str().into());
    arguments.insert("table".to_owned(), route.table.as_str().into());
    if let Some(key) = read_key(parts)?.filter(|_| has_body) {
        arguments.insert("key".to_owned(), key.into());
    }
    Ok(arguments)
}

/// The key of `Idempotency-Key`, with or without the quotes of a structured header.
fn read_key(parts: &Parts) -> Result<Option<String>, ProblemDetails> {
    let invalid = |reason: &str| Err(ProblemDetails::bad_request(format!("Idempotency-Key {reason}")));
    let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return invalid("is given more than once");
    }
    let Ok(text) = value.to_str() else { return invalid("must consist of visible ASCII characters") };
    let text = text.trim();
    let key = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match key.len() {
        0 => invalid("is empty"),
        bytes if bytes > KEY_BYTES_MAX => invalid(&format!("is {bytes} bytes long; at most {KEY_BYTES_MAX}")),
        _ => Ok(Some(key.to_owned())),
    }
}

/// Whether the answer needs no body.
fn prefers_minimal(parts: &Parts) -> bool {
    let values = parts.headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let mut preferences = values.flat_map(|value| value.split(',')).map(|preference| {
        let preference = preference.split(';').next().unwrap_or_default();
        preference.split_whitespace().collect::<String>().to_ascii_lowercase()
    });
    // Of several, the first applies.
    preferences.find(|preference| preference.starts_with("return=")).is_some_and(|first| first == "return=minimal")
}

struct DataRoute {
    endpoint: &'static Endpoint,
    entry: WriteRows,
    database: String,
    table: String,
}

impl DataRoute {
    /// Parses the path of a table. Each segment is percent-decoded separately, because names may contain slashes.
    fn parse(path: &str, method: &Method) -> Result<Self, ProblemDetails> {
        let no_such_path = || {
            let detail = format!("there is no path {path}; rows are sent to /data/{{database}}/{{table}}");
            ProblemDetails::new(ProblemType::NoSuchPath, detail)
        };
        let at_path = endpoint_at(path);
        let names: Vec<_> = at_path.parameters(path.split('/')).collect();
        let [(_, database), (_, table)] = names[..] else { return Err(no_such_path()) };
        let (database, table) = (parse_name("database", database)?, parse_name("table", table)?);
        let endpoint = at_path.for_method(method)?;
        let EndpointHandler::Rows(Some(entry)) = endpoint.handler else { return Err(no_such_path()) };
        Ok(Self { endpoint, entry, database, table })
    }
}

fn parse_name(subject: &str, segment: &str) -> Result<String, ProblemDetails> {
    let name = percent_decode_str(segment).decode_utf8();
    let name = name.map_err(|_| ProblemDetails::bad_request("the path is not UTF-8 after percent-decoding"))?;
    match name.len() {
        0 => Err(ProblemDetails::bad_request(format!("the name of the {subject} in the path is empty"))),
        bytes if bytes > NAME_BYTES_MAX => {
            let detail = format!("the name of the {subject} is {bytes} bytes long; at most {NAME_BYTES_MAX}");
            Err(ProblemDetails::bad_request(detail))
        }
        _ => Ok(name.into_owned()),
    }
}

const REJECTED: HeaderName = HeaderName::from_static("tidegate-rejected");
const SEQUENCE: HeaderName = HeaderName::from_static("tidegate-sequence");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// An answer has the first hundred rejected rows at most, each with the beginning of its text.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

async fn collect_response(
    mut reply: Reply,
    mut revalidator: CallerRevalidator,
    prefers_minimal: bool,
) -> Result<Response, ProblemDetails> {
    let job = reply.job().id().to_string();
    let collected = revalidator.run_while_valid(reply.collect_body(ANSWER_BYTES_MAX)).await?;
    let (bytes, metadata) = collected.map_err(to_problem)?;
    let is_created = metadata.write.as_ref().is_some_and(|write| write.is_created);
    let status = match (is_created, prefers_minimal) {
        (true, _) => StatusCode::CREATED,
        (false, true) => StatusCode::NO_CONTENT,
        (false, false) => StatusCode::OK,
    };
    let mut response = match prefers_minimal {
        true => Response::new(axum::body::Body::empty()),
        false => json(status, bytes),
    };
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if prefers_minimal {
        headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static("return=minimal"));
    }
    add_headers(headers, &metadata, &job);
    Ok(response)
}

/// The numbers of rows are headers, too, so that they can be read without a body.
fn add_headers(headers: &mut HeaderMap, metadata: &AnswerMeta, job: &str) {
    headers.extend(metadata.rows.map(|rows| (ROWS, HeaderValue::from(rows))));
    if let Some(write) = &metadata.write {
        headers.insert(REJECTED, HeaderValue::from(write.rejected));
        headers.insert(SEQUENCE, HeaderValue::from(write.sequence));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    add_job_header(headers, job);
}

/// The problem of a call: what is wrong with a body is 400, and what is unavailable may be tried again.
pub(super) fn to_problem(error: Error) -> ProblemDetails {
    let (kind, retry_after) = (error.kind(), error.retry_after());
    let problem = ProblemDetails::from(error);
    match kind {
        ErrorKind::InvalidArguments => problem.into_bad_request(),
        ErrorKind::Unavailable => problem.with_header(header::RETRY_AFTER, retry_after_value(retry_after)),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_after_the_path_is_split() {
        let route = DataRoute::parse("/data/plant/a%2Fb%20c", &Method::PUT).unwrap();
        assert_eq!((&*route.database, &*route.table, route.entry), ("plant", "a/b c", WriteRows::ReplaceRows));
        for path in ["/data", "/data/", "/data/plant", "/data/plant/", "/data//sensors", "/data/a/b/c", "/data/a/%ff"] {
            assert!(DataRoute::parse(path, &Method::POST).is_err(), "{path}");
        }
    }
}
