//! The answer of a receiver as a response: its metadata has the status and the headers.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use tidegate_runtime::{AdapterDetail, Reply};

use super::to_problem;
use crate::http::answer::{ProblemDetails, add_job_header};
use crate::revalidation::CallerRevalidator;

/// An answer of the bulk API has an item for each document, and a body has a maximum number of them.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;

pub(super) async fn answer(mut reply: Reply, mut validity: CallerRevalidator) -> Result<Response, ProblemDetails> {
    let job = reply.job().id().to_string();
    let collected = validity.run_while_valid(reply.collect_body(ANSWER_BYTES_MAX)).await?;
    let (bytes, metadata) = collected.map_err(to_problem)?;
    let mut response = Response::new(Body::from(bytes));
    if let Some(AdapterDetail::Receiver { status, headers }) = metadata.adapter.as_deref() {
        *response.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::OK);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok();
            response.headers_mut().extend(name.zip(HeaderValue::from_str(value).ok()));
        }
    }
    add_job_header(response.headers_mut(), &job);
    if response.status() == StatusCode::NO_CONTENT {
        response.headers_mut().remove(axum::http::header::CONTENT_TYPE);
    }
    Ok(response)
}
