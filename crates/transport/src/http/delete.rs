//! DELETE: a legacy client ends its session.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tidegate_core::Caller;

use super::HttpState;
use super::post::{no_such_session, session_id};

pub(super) async fn delete(
    State(http_state): State<Arc<HttpState>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    match session_id(&headers, None) {
        Ok(id) if http_state.sessions.end(id, &caller.principal) => StatusCode::NO_CONTENT.into_response(),
        Ok(_) => no_such_session(None),
        Err(refusal) => *refusal,
    }
}
