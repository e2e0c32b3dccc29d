//! Turns the reply of a call into a response: 201 if the table was created, else 200; without a body 204.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{AnswerMeta, Reply};

use crate::http::answer::{ProblemDetails, ROWS, add_job_header};
use crate::http::response::{json, retry_after_value};
use crate::revalidation::CallerRevalidator;

const REJECTED: HeaderName = HeaderName::from_static("tidegate-rejected");
const SEQUENCE: HeaderName = HeaderName::from_static("tidegate-sequence");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// An answer has the first hundred rejected rows at most, each with the beginning of its text.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) async fn answer(
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
pub(in crate::http) fn to_problem(error: Error) -> ProblemDetails {
    let (kind, retry_after) = (error.kind(), error.retry_after());
    let problem = ProblemDetails::from(error);
    match kind {
        ErrorKind::InvalidArguments => problem.into_bad_request(),
        ErrorKind::Unavailable => problem.with_header(header::RETRY_AFTER, retry_after_value(retry_after)),
        _ => problem,
    }
}
