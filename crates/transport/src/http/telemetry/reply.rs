//! The answer of a receiver as a response, with the status and the headers that its protocol has for the outcome.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use tidegate_core::WriteRows;
use tidegate_runtime::{AdapterDetail, Reply, WrittenRecords};

use super::to_problem;
use crate::http::answer::{ProblemDetails, add_job_header};
use crate::revalidation::CallerRevalidator;

/// An answer of the bulk API has an item for each document, and a body has a maximum number of them.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
const ELASTIC_PRODUCT: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-elastic-product"), HeaderValue::from_static("Elasticsearch"));
const WRITTEN: [HeaderName; 3] = [
    HeaderName::from_static("x-prometheus-remote-write-samples-written"),
    HeaderName::from_static("x-prometheus-remote-write-histograms-written"),
    HeaderName::from_static("x-prometheus-remote-write-exemplars-written"),
];

pub(super) async fn answer(
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
pub(super) fn add_protocol_headers(headers: &mut HeaderMap, entry: WriteRows, written: Option<WrittenRecords>) {
    match (entry, written) {
        (WriteRows::ReceivePrometheus, Some(WrittenRecords { samples, exemplars })) => {
            // Native histograms are never stored.
            headers.extend(WRITTEN.into_iter().zip([samples, 0, exemplars].map(HeaderValue::from)));
        }
        (WriteRows::ReceiveBulk, _) => headers.extend([ELASTIC_PRODUCT]),
        _ => {}
    }
}
