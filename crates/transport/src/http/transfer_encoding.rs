//! Refuses bodies with a transfer coding other than `chunked`. The HTTP library decodes only `chunked`, so it would pass
//! the compressed bytes on as the body.
//!
//! [RFC 9112, Transfer-Encoding](https://www.rfc-editor.org/rfc/rfc9112#section-6.1)

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use super::answer::ProblemDetails;
use super::endpoints::Endpoint;
use super::response::refused_request;
use super::state::HttpState;

/// Answers 400 to requests with another transfer coding, and closes their connection, whose next request may not begin
/// where the body ends.
pub(super) async fn check_transfer_encoding<F: Future<Output = Response>>(
    http_state: &HttpState,
    endpoint: &Endpoint,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let Some(codings) = unsupported_codings(request.headers()) else { return next(request).await };
    let reason = format!(
        "the transfer coding {codings:?} is not supported; send the body uncompressed, with Transfer-Encoding: chunked \
         or Content-Length"
    );
    let origin = endpoint.origin(request.extensions());
    let mut response = refused_request(http_state, origin, ProblemDetails::bad_request(reason));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The value of `Transfer-Encoding`, unless it is absent or just `chunked`.
fn unsupported_codings(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::TRANSFER_ENCODING).iter().map(|value| value.to_str().unwrap_or("?").trim());
    let codings = values.collect::<Vec<_>>().join(", ");
    (!codings.is_empty() && !codings.eq_ignore_ascii_case("chunked")).then_some(codings)
}
