//! Telemetry that is sent: OTLP at `/v1/logs`, `/v1/metrics` and `/v1/traces`, Prometheus remote write at `/api/v1/write`,
//! the bulk API of Elasticsearch at `/_bulk` and `/{index}/_bulk`, and what its clients ask before they send.
//!
//! A request becomes one call of one entry, which reads the body and makes the answer. This module has the paths, the
//! credentials, and the form in which each protocol expects a refusal.
//!
//! Senders that cannot send a bearer token send the key or token itself as the password of `Basic`, or as the secret of
//! `ApiKey`. The name before it has no meaning.
//!
//! Senders keep what they may send again and drop the rest, by the status alone. OTLP repeats 429, 502, 503 and 504;
//! Prometheus repeats 429 and 5xx; clients of the bulk API do as well.
//!
//! [OTLP/HTTP](https://opentelemetry.io/docs/specs/otlp/#otlphttp),
//! [remote write](https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/)

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, WriteRows};
use tidegate_mcp::NAME_BYTES_MAX;
use tidegate_runtime::{AdapterDetail, Reply, WrittenRecords};

use super::answer::{ProblemDetails, add_job_header, into_response, options_response};
use super::body::{self, StreamedBody};
use super::browser;
use super::console;
use super::data::{RowsTarget, call_with_rows, to_problem};
use super::endpoints::{Endpoint, EndpointHandler, ROOT, endpoint_at};
use super::response::retry_after_value;
use super::state::{HttpState, PeerAddress};
use crate::revalidation::CallerRevalidator;

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let peer = PeerAddress::from_extensions(&parts.extensions);
    let Some(route) = TelemetryRoute::parse(parts.uri.path()).filter(|route| route.is_meant(&parts.headers)) else {
        body::discard(body, http_state.options.read_within).await;
        let options = http_state.reloadable_options();
        let is_root = parts.uri.path() == ROOT;
        return if is_root { console::page(&parts, &options) } else { browser::not_found(&parts.headers, &options) };
    };
    let body = StreamedBody::new(body);
    let problem = match respond(&http_state, &route, &parts, &body).await {
        Ok(response) => return into_response(&http_state, peer, Ok(response)),
        Err(problem) => problem,
    };
    body.discard_rest(&parts.headers, http_state.options.read_within).await;
    if route.endpoint.path == ROOT && !is_refused_caller(&problem) {
        return browser::not_found(&parts.headers, &http_state.reloadable_options());
    }
    let message = problem_message(&problem);
    let response = into_response(&http_state, peer, Err(problem));
    in_protocol(response, &route, &parts.headers, &message)
}

async fn respond(
    http_state: &Arc<HttpState>,
    route: &TelemetryRoute,
    parts: &Parts,
    body: &StreamedBody,
) -> Result<Response, ProblemDetails> {
    route.endpoint.for_method(&parts.method)?;
    if parts.method == Method::OPTIONS {
        return Ok(options_response(route.endpoint));
    }
    let headers = with_bearer(&parts.headers);
    let target = RowsTarget { entry: route.entry, table: None, default_media_type: route.default_media_type() };
    let arguments = |_| route.check_parameters(&parts.uri).map(|()| route.arguments());
    let refuse = |error: Error| match error.kind() {
        ErrorKind::NotFound => ProblemDetails::from(no_receiver(route)),
        _ => to_problem(error),
    };
    let (reply, revalidator) = call_with_rows(http_state, &target, parts, &headers, body, arguments, refuse).await?;
    collect_response(reply, revalidator, route.entry).await.map_err(|problem| body.describe_failure(problem))
}

fn no_receiver(route: &TelemetryRoute) -> Error {
    let message = format!("there is no receiver for {} that takes anything from you", route.protocol_name());
    Error::new(ErrorKind::NotFound, message)
        .with_hint("The key receivers of the configuration has them, and roles grant tables with their key ingest.")
}

/// Whether the problem is that of a caller without valid credentials.
fn is_refused_caller(problem: &ProblemDetails) -> bool {
    problem.status() == StatusCode::UNAUTHORIZED
}

/// What the header `User-Agent` of clients of Elasticsearch contains.
const ELASTIC_AGENTS: [&str; 5] = ["elastic", "vector", "fluent", "logstash", "beat"];

struct TelemetryRoute {
    endpoint: &'static Endpoint,
    entry: WriteRows,
    /// The argument that the path stands for.
    argument: Option<(&'static str, &'static str)>,
    /// The index of the path.
    index: Option<String>,
}

impl TelemetryRoute {
    fn parse(path: &str) -> Option<Self> {
        let endpoint = endpoint_at(path);
        let EndpointHandler::Telemetry(entry, argument) = endpoint.handler else { return None };
        let index = match endpoint.parameters(path.split('/')).next() {
            Some((_, index)) => Some(parse_index(index)?),
            None => None,
        };
        Some(Self { endpoint, entry, argument, index })
    }

    /// Whether the request is meant for a receiver. At the root, only clients of Elasticsearch expect one.
    fn is_meant(&self, headers: &HeaderMap) -> bool {
        if self.endpoint.path != ROOT {
            return true;
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let agent = text(header::USER_AGENT).to_ascii_lowercase();
        ELASTIC_AGENTS.iter().any(|name| agent.contains(name)) || text(header::ACCEPT).contains("vnd.elasticsearch")
    }

    /// The name of the protocol for people.
    fn protocol_name(&self) -> &'static str {
        match self.entry {
            WriteRows::ReceivePrometheus => "remote write",
            WriteRows::ReceiveBulk => "the bulk API",
            _ => "OTLP",
        }
    }

    /// The media type of a body without `Content-Type`.
    fn default_media_type(&self) -> Option<&'static str> {
        match self.entry {
            WriteRows::ReceivePrometheus => Some("application/x-protobuf"),
            WriteRows::ReceiveBulk => Some("application/x-ndjson"),
            _ => None,
        }
    }

    fn arguments(&self) -> Map<String, Value> {
        let index = self.index.as_deref().map(|index| ("index", index));
        let argument = self.argument.or(index);
        argument.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
    }

    /// Refuses parameters that would change what is stored. Others are about the answer or about replicas.
    fn check_parameters(&self, uri: &Uri) -> Result<(), ProblemDetails> {
        if self.entry != WriteRows::ReceiveBulk || self.argument.is_some() {
            return Ok(());
        }
        let parameters = uri.query().unwrap_or_default().split('&');
        let pipeline = parameters.filter_map(|parameter| parameter.strip_prefix("pipeline=")).next();
        match pipeline.filter(|name| !matches!(*name, "" | "_none")) {
            Some(name) => Err(ProblemDetails::bad_request(format!("the pipeline {name:?} does not exist"))),
            None => Ok(()),
        }
    }
}

fn parse_index(segment: &str) -> Option<String> {
    let is_name = !segment.is_empty() && segment.len() <= NAME_BYTES_MAX;
    let index = percent_decode_str(segment).decode_utf8().ok().filter(|_| is_name)?;
    Some(index.into_owned())
}

/// The headers with a bearer token in the place of the other forms. What has none of them is left as it is.
fn with_bearer(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let bearer = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().and_then(bearer_of),
        _ => None,
    };
    if let Some(bearer) = bearer {
        headers.insert(header::AUTHORIZATION, bearer);
    }
    headers
}

fn bearer_of(value: &str) -> Option<HeaderValue> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") && !scheme.eq_ignore_ascii_case("apikey") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (_name, secret) = decoded.split_once(':')?;
    let mut bearer = HeaderValue::try_from(format!("Bearer {secret}")).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

/// An answer of the bulk API has an item for each document, and a body has a maximum number of them.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
const ELASTIC_PRODUCT: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-elastic-product"), HeaderValue::from_static("Elasticsearch"));
const WRITTEN: [HeaderName; 3] = [
    HeaderName::from_static("x-prometheus-remote-write-samples-written"),
    HeaderName::from_static("x-prometheus-remote-write-histograms-written"),
    HeaderName::from_static("x-prometheus-remote-write-exemplars-written"),
];

async fn collect_response(
    mut reply: Reply,
    mut revalidator: CallerRevalidator,
    entry: WriteRows,
) -> Result<Response, ProblemDetails> {
    let job = reply.job().id().to_string();
    let collected = revalidator.run_while_valid(reply.collect_body(ANSWER_BYTES_MAX)).await?;
    let (bytes, metadata) = collected.map_err(to_problem)?;
    let mut response = Response::new(Body::from(bytes));
    if let Some(AdapterDetail::Receiver(outcome)) = metadata.adapter.as_deref() {
        let status = match entry {
            WriteRows::ReceivePrometheus if outcome.rejected == 0 => StatusCode::NO_CONTENT,
            // The sender reports the records that were left out, and does not repeat the request.
            WriteRows::ReceivePrometheus => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        };
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if status != StatusCode::NO_CONTENT {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(outcome.media_type));
        }
        add_protocol_headers(headers, entry, outcome.written);
    }
    add_job_header(response.headers_mut(), &job);
    Ok(response)
}

/// Adds the headers that senders need in each answer, also in refusals. Those of remote write 1.0 need none.
fn add_protocol_headers(headers: &mut HeaderMap, entry: WriteRows, written: Option<WrittenRecords>) {
    match (entry, written) {
        (WriteRows::ReceivePrometheus, Some(WrittenRecords { samples, exemplars })) => {
            // Native histograms are never stored.
            headers.extend(WRITTEN.into_iter().zip([samples, 0, exemplars].map(HeaderValue::from)));
        }
        (WriteRows::ReceiveBulk, _) => headers.extend([ELASTIC_PRODUCT]),
        _ => {}
    }
}

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";
/// Codes of `google.rpc.Status`.
mod rpc_code {
    pub(super) const UNKNOWN: u32 = 2;
    pub(super) const INVALID_ARGUMENT: u32 = 3;
    pub(super) const DEADLINE_EXCEEDED: u32 = 4;
    pub(super) const NOT_FOUND: u32 = 5;
    pub(super) const PERMISSION_DENIED: u32 = 7;
    pub(super) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(super) const INTERNAL: u32 = 13;
    pub(super) const UNAVAILABLE: u32 = 14;
    pub(super) const UNAUTHENTICATED: u32 = 16;
}

/// The text of a problem with its choices and its hint, which have no members of their own here.
fn problem_message(problem: &ProblemDetails) -> String {
    let members = problem.to_json();
    let choices = members["choices"].as_array().map(|choices| {
        let choices: Vec<_> = choices.iter().filter_map(Value::as_str).collect();
        format!("Valid choices: {}.", choices.join(", "))
    });
    let hint = members["hint"].as_str().map(str::to_owned);
    match Vec::from_iter(choices.into_iter().chain(hint)) {
        more if more.is_empty() => problem.detail().to_owned(),
        more => format!("{}. {}", problem.detail().trim_end_matches('.'), more.join(" ")),
    }
}

/// The response of a problem, with the status and the body that the protocol has for it.
fn in_protocol(mut response: Response, route: &TelemetryRoute, request: &HeaderMap, message: &str) -> Response {
    // A call that was cancelled, a conflict and a slow body may succeed when they are repeated.
    let status = match response.status() {
        StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT => StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    *response.status_mut() = status;
    let (media_type, body) = match route.entry {
        WriteRows::ReceivePrometheus => ("text/plain; charset=utf-8", message.as_bytes().to_vec()),
        WriteRows::ReceiveBulk => (JSON, bulk_body(status, message)),
        _ => otlp_body(status, request, message),
    };
    *response.body_mut() = Body::from(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.remove(header::CONTENT_LENGTH);
    if status == StatusCode::SERVICE_UNAVAILABLE && !headers.contains_key(header::RETRY_AFTER) {
        headers.insert(header::RETRY_AFTER, retry_after_value(None));
    }
    add_protocol_headers(headers, route.entry, Some(WrittenRecords::default()));
    response
}

/// `google.rpc.Status` in the encoding of the request.
fn otlp_body(status: StatusCode, request: &HeaderMap, message: &str) -> (&'static str, Vec<u8>) {
    let code = match status.as_u16() {
        400 | 405 | 413 | 415 => rpc_code::INVALID_ARGUMENT,
        401 => rpc_code::UNAUTHENTICATED,
        403 => rpc_code::PERMISSION_DENIED,
        404 => rpc_code::NOT_FOUND,
        429 => rpc_code::RESOURCE_EXHAUSTED,
        500 => rpc_code::INTERNAL,
        503 => rpc_code::UNAVAILABLE,
        504 => rpc_code::DEADLINE_EXCEEDED,
        _ => rpc_code::UNKNOWN,
    };
    let content_type = request.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(PROTOBUF) {
        return (PROTOBUF, encode_status(code, message));
    }
    (JSON, json!({"code": code, "message": message}).to_string().into_bytes())
}

/// The message with the fields 1 (code) and 2 (message).
fn encode_status(code: u32, message: &str) -> Vec<u8> {
    let mut bytes = vec![0x08];
    write_varint(&mut bytes, u64::from(code));
    bytes.push(0x12);
    write_varint(&mut bytes, message.len() as u64);
    bytes.extend_from_slice(message.as_bytes());
    bytes
}

fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        // The lowest seven bits.
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn bulk_body(status: StatusCode, message: &str) -> Vec<u8> {
    let error_type = match status.as_u16() {
        401 | 403 => "security_exception",
        404 => "resource_not_found_exception",
        429 | 503 | 504 => "es_rejected_execution_exception",
        500 => "exception",
        _ => "illegal_argument_exception",
    };
    let cause = json!({"type": error_type, "reason": message});
    let error = json!({"root_cause": [cause], "type": error_type, "reason": message});
    json!({"error": error, "status": status.as_u16()}).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_protocols_and_arguments() {
        let argument = |path: &str| {
            let route = TelemetryRoute::parse(path)?;
            Some((route.entry.name(), Value::Object(route.arguments()).to_string()))
        };
        let cases = [
            ("/v1/logs", "receive_otlp", r#"{"signal":"logs"}"#),
            ("/api/v1/write", "receive_prometheus", "{}"),
            ("/_bulk", "receive_bulk", "{}"),
            ("/app-1%2E2/_bulk", "receive_bulk", r#"{"index":"app-1.2"}"#),
            ("/_license", "receive_bulk", r#"{"probe":"license"}"#),
        ];
        for (path, tool, arguments) in cases {
            assert_eq!(argument(path), Some((tool, arguments.to_owned())), "{path}");
        }
        for path in ["/v1/logs/", "/v1", "//_bulk", "/a/b/_bulk", "/a%ff/_bulk", "/_bulk/", "/mcp", "/rest/_bulk/x"] {
            assert!(TelemetryRoute::parse(path).is_none(), "{path}");
        }
    }

    #[test]
    fn the_root_is_for_clients_of_elasticsearch() {
        let root = TelemetryRoute::parse("/").unwrap();
        let is_meant = |name: header::HeaderName, value: &'static str| {
            root.is_meant(&HeaderMap::from_iter([(name, header::HeaderValue::from_static(value))]))
        };
        assert!(is_meant(header::USER_AGENT, "Elastic-filebeat/8.17.0 (linux; amd64)"));
        assert!(is_meant(header::USER_AGENT, "Vector/0.43.0 (x86_64-unknown-linux-gnu)"));
        assert!(is_meant(header::ACCEPT, "application/vnd.elasticsearch+json;compatible-with=8"));
        assert!(!is_meant(header::USER_AGENT, "curl/8.0") && !root.is_meant(&HeaderMap::new()));
    }

    #[test]
    fn pipelines_are_refused() {
        let check = |uri: &str| {
            let uri: Uri = uri.parse().unwrap();
            TelemetryRoute::parse(uri.path()).unwrap().check_parameters(&uri).is_ok()
        };
        assert!(check("/_bulk?filter_path=errors&pipeline=") && check("/_bulk") && check("/v1/logs?pipeline=x"));
        assert!(!check("/_bulk?timeout=60s&pipeline=geo"));
    }

    #[test]
    fn passwords_and_api_keys_are_bearer_tokens() {
        let with = |value: &str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::try_from(value).unwrap())]);
            with_bearer(&headers).get(header::AUTHORIZATION).unwrap().to_str().unwrap().to_owned()
        };
        let encoded = STANDARD.encode("sender:tg_abc:d");
        assert_eq!(with(&format!("Basic {encoded}")), "Bearer tg_abc:d");
        assert_eq!(with(&format!("ApiKey {encoded}")), "Bearer tg_abc:d");
        for unchanged in ["Bearer abc", "Basic !", "Digest abc", "Basic YWJj"] {
            assert_eq!(with(unchanged), unchanged);
        }
    }

    #[test]
    fn a_status_is_encoded_as_protocol_buffers() {
        assert_eq!(encode_status(3, "wrong"), b"\x08\x03\x12\x05wrong");
        let long = "x".repeat(300);
        assert_eq!(encode_status(14, &long)[..5], [0x08, 14, 0x12, 0xac, 0x02]);
    }

    #[test]
    fn what_may_be_repeated_is_unavailable() {
        let route = TelemetryRoute::parse("/api/v1/write").unwrap();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::CONFLICT;
        let response = in_protocol(response, &route, &HeaderMap::new(), "running");
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(response.headers()["x-prometheus-remote-write-samples-written"], "0");
    }
}
