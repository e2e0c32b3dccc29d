//! Refuses bodies with a transfer coding other than `chunked`. The HTTP library decodes only `chunked`, so it would pass
//! the compressed bytes on as the body.
//!
//! [RFC 9112, Transfer-Encoding](https://www.rfc-editor.org/rfc/rfc9112#section-6.1)

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use tidegate_core::{CallOrigin, TransportKind};
use tidegate_mcp::RpcError;

use super::answer::ProblemDetails;
use super::path::transport_of;
use super::response::refusal;
use super::state::{HttpState, PeerAddress};

/// Answers 400 to requests with another transfer coding, and closes their connection, whose next request may not begin
/// where the body ends.
pub(super) async fn check_transfer_encoding<F: Future<Output = Response>>(
    http_state: &HttpState,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let Some(codings) = unsupported_codings(request.headers()) else { return next(request).await };
    let reason = format!(
        "the transfer coding {codings:?} is not supported; send the body uncompressed, with Transfer-Encoding: chunked \
         or Content-Length"
    );
    let transport = transport_of(request.uri().path());
    let origin = CallOrigin { transport, peer: PeerAddress::from_extensions(request.extensions()) };
    http_state.report_rejection(origin, &reason);
    let mut response = match transport {
        TransportKind::Rest => ProblemDetails::bad_request(reason).into_response(http_state),
        _ => refusal(StatusCode::BAD_REQUEST, None, &RpcError::invalid_request(reason)),
    };
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The value of `Transfer-Encoding`, unless it is absent or just `chunked`.
fn unsupported_codings(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::TRANSFER_ENCODING).iter().map(|value| value.to_str().unwrap_or("?").trim());
    let codings = values.collect::<Vec<_>>().join(", ");
    (!codings.is_empty() && !codings.eq_ignore_ascii_case("chunked")).then_some(codings)
}
