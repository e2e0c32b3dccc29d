//! The answer of a receiver as a response: its metadata has the status and the headers.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use serde_json::Value;
use tidegate_core::Error;
use tidegate_runtime::{Chunk, Metadata, Outcome, Reply, ReplyEvent};

use super::to_problem;
use crate::http::answer::{ProblemDetails, add_job_header, next_event};
use crate::revalidation::CallerRevalidator;

/// An answer of the bulk API has an item for each document, and a body has a maximum number of them.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
const STATUS: &str = "dev.tidegate/status";
const HEADERS: &str = "dev.tidegate/headers";

pub(super) async fn answer(mut reply: Reply, mut validity: CallerRevalidator) -> Result<Response, ProblemDetails> {
    let job = reply.job().id().to_string();
    let collected = validity.run_while_valid(collect(&mut reply)).await?;
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

async fn collect(reply: &mut Reply) -> Result<(Bytes, Metadata), Error> {
    let mut bytes = BytesMut::new();
    loop {
        match next_event(reply).await {
            ReplyEvent::Chunk(Chunk::Bytes(piece)) if bytes.len() + piece.len() <= ANSWER_BYTES_MAX => {
                bytes.extend_from_slice(&piece);
            }
            ReplyEvent::Chunk(Chunk::Bytes(_)) => return Err(Error::internal("the answer of a receiver is too large")),
            ReplyEvent::Chunk(_) => {}
            ReplyEvent::End(Outcome::Done(metadata)) => return Ok((bytes.freeze(), metadata)),
            ReplyEvent::End(Outcome::Failed(error)) => return Err(error),
        }
    }
}
