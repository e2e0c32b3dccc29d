//! `/health`, `/ready` and `/metrics`, for those who run the server.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use super::Door;

/// The process lives.
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// The process takes calls.
pub(super) async fn ready(State(door): State<Arc<Door>>) -> impl IntoResponse {
    if door.draining.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
    } else {
        (StatusCode::OK, "ready\n")
    }
}

/// Prometheus' text format.
pub(super) async fn metrics(State(door): State<Arc<Door>>) -> impl IntoResponse {
    let text = door.metrics.render(door.service.registry());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}
