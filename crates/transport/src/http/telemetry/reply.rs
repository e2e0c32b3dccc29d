//! The answer of a receiver as a response: its metadata has the status and the headers.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::Value;
use tidegate_runtime::Reply;

use super::to_problem;
use crate::http::answer::{ProblemDetails, add_job_header, collect_bytes};
use crate::revalidation::CallerRevalidator;

/// An answer of the bulk API has an item for each document, and a body has a maximum number of them.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
const STATUS: &str = "dev.tidegate/status";
const HEADERS: &str = "dev.tidegate/headers";

pub(super) async fn answer(mut reply: Reply, mut validity: CallerRevalidator) -> Result<Response, ProblemDetails> {
    let job = reply.job().id().to_string();
    let collected =
        validity.run_while_valid(collect_bytes(&mut reply, ANSWER_BYTES_MAX, "the answer of a receiver")).await?;
    let (bytes, metadata) = collected.map_err(to_problem)?;
    let mut response = Response::new(Body::from(bytes));
    let status = metadata.get(STATUS).and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
    *response.status_mut() = status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    for (name, value) in metadata.get(HEADERS).and_then(Value::as_object).into_iter().flatten() {
        let name = HeaderName::from_bytes(name.as_bytes()).ok();
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        headers.extend(name.zip(value));
    }
    add_job_header(headers, &job);
    if response.status() == StatusCode::NO_CONTENT {
        response.headers_mut().remove(axum::http::header::CONTENT_TYPE);
    }
    Ok(response)
}
