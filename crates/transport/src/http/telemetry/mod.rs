//! Telemetry that is sent: OTLP at `/v1/logs`, `/v1/metrics` and `/v1/traces`, Prometheus remote write at `/api/v1/write`,
//! the bulk API of Elasticsearch at `/_bulk` and `/{index}/_bulk`, and what its clients ask before they send.
//!
//! A request becomes one call of one entry, which reads the body and makes the answer. This module has the paths, the
//! credentials, and the form in which each protocol expects a refusal.
//!
//! [OTLP/HTTP](https://opentelemetry.io/docs/specs/otlp/#otlphttp),
//! [remote write](https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/)

mod credentials;
mod failure;
mod reply;
mod route;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::Response;
use tidegate_core::{Error, ErrorKind, Format};
use tidegate_runtime::{Call, RequestBodyTypes, TransportGroup};

use self::route::TelemetryRoute;
use super::answer::{ProblemDetails, ProblemType, into_response, new_call, options_response};
use super::caller::{HttpCallerResolver, admit_rest_caller};
use super::data::{StreamedBody, to_problem};
use super::endpoints::ROOT;
use super::state::{HttpState, PeerAddress};
use super::{body, browser_page};

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let peer = PeerAddress::from_extensions(&parts.extensions);
    let Some(route) = TelemetryRoute::parse(parts.uri.path()).filter(|route| route.is_meant(&parts.headers)) else {
        body::discard(body, http_state.options.read_within).await;
        return browser_page::not_found(&parts.headers, &http_state.reloadable_options());
    };
    let body = StreamedBody::new(body);
    let problem = match respond(&http_state, &route, &parts, &body).await {
        Ok(response) => return into_response(&http_state, peer, Ok(response)),
        Err(problem) => problem,
    };
    body.discard_rest(&parts.headers, http_state.options.read_within).await;
    if route.endpoint.path == ROOT && !is_refused_caller(&problem) {
        return browser_page::not_found(&parts.headers, &http_state.reloadable_options());
    }
    let message = failure::message(&problem);
    let response = into_response(&http_state, peer, Err(problem));
    failure::in_protocol(response, &route, &parts.headers, &message)
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
    let registry = http_state.service.registry();
    registry.transport_switches().require_running(TransportGroup::Rest)?;
    let headers = credentials::with_bearer(&parts.headers);
    let (credentials, caller) = admit_rest_caller(http_state, &headers, &parts.extensions).await?;
    let revalidator = HttpCallerResolver::new(http_state, credentials, &caller).into_revalidator();
    let build = |target, caller, types: Option<RequestBodyTypes>| -> Result<Call, ProblemDetails> {
        route.check_parameters(&parts.uri)?;
        let mut call = new_call(target, caller, route.arguments(), Format::Json, &parts.headers);
        if let Some(types) = types.filter(|_| parts.method == Method::POST) {
            let (media_type, coding) = read_body_type(route, &parts.headers, types)?;
            call.request_body = Some(body.request_body(&media_type, coding, &http_state.reloadable_options())?);
        }
        Ok(call)
    };
    let refuse = |error: Error| match error.kind() {
        ErrorKind::NotFound => ProblemDetails::from(no_receiver(route)),
        _ => to_problem(error),
    };
    let reply = registry.write_rows(route.entry, None, caller, refuse, build)?;
    reply::answer(reply, revalidator, route.entry).await.map_err(|problem| body.describe_failure(problem))
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

/// The media type and the coding of a body.
fn read_body_type(
    route: &TelemetryRoute,
    headers: &HeaderMap,
    types: RequestBodyTypes,
) -> Result<(String, Option<String>), ProblemDetails> {
    let unsupported = |detail: String| ProblemDetails::new(ProblemType::UnsupportedMediaType, detail);
    let media_type = single_value(headers, &header::CONTENT_TYPE)?;
    let Some(media_type) = media_type.or_else(|| route.default_media_type().map(str::to_owned)) else {
        let detail = format!("Content-Type is missing; supported are {}", types.media_types.join(", "));
        return Err(unsupported(detail));
    };
    if !types.takes_media_type(&media_type) {
        let supported = types.media_types.join(", ");
        return Err(unsupported(format!("Content-Type is {media_type:?}; supported are {supported}")));
    }
    let coding = single_value(headers, &header::CONTENT_ENCODING)?;
    match &coding {
        Some(coding) if !types.takes_coding(coding) => {
            let supported = types.codings.join(", ");
            Err(unsupported(format!("Content-Encoding is {coding:?}; supported are {supported}")))
        }
        _ => Ok((media_type, coding)),
    }
}

fn single_value(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, ProblemDetails> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim().to_owned())),
        _ => Err(ProblemDetails::bad_request(format!("the header {name} is given more than once, or is not ASCII"))),
    }
}
