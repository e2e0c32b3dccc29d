//! `/health`, `/ready` and `/metrics`, for operators.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::caller::AuthenticatedRequest;
use super::state::HttpState;

const METRICS_ACCESS: &str = "metrics";

/// The process runs.
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// The server accepts calls, and the databases that it needs answer.
pub(super) async fn ready(State(http_state): State<Arc<HttpState>>) -> Response {
    let problem = if http_state.draining.is_cancelled() {
        Some("shutting down".to_owned())
    } else if !http_state.service.registry().admits_calls() {
        Some("the audit log cannot be written".to_owned())
    } else if let Some(check) = &http_state.options.readiness {
        check.problem().await
    } else {
        None
    };
    match problem {
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
        None => "ready\n".into_response(),
    }
}

/// Metrics name tools and databases, so reading them requires an access name where callers authenticate.
pub(super) async fn metrics(
    State(http_state): State<Arc<HttpState>>,
    AuthenticatedRequest { caller, .. }: AuthenticatedRequest,
) -> Response {
    let may_read = caller.principal.grants.access.includes(METRICS_ACCESS);
    if http_state.options.authenticator.enforces_authentication() && !may_read {
        return (StatusCode::FORBIDDEN, "reading metrics requires the access name \"metrics\"\n").into_response();
    }
    let text = http_state.metrics.render(http_state.service.registry());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
