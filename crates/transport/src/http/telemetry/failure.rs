//! Refusals in the form that each protocol has for them.
//!
//! Senders keep what they may send again and drop the rest, by the status alone. OTLP repeats 429, 502, 503 and 504;
//! Prometheus repeats 429 and 5xx; clients of the bulk API do as well.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;
use tidegate_core::WriteRows;
use tidegate_runtime::WrittenRecords;

use super::reply::add_protocol_headers;
use super::route::TelemetryRoute;
use crate::http::answer::ProblemDetails;
use crate::http::response::retry_after_value;

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";
/// Codes of `google.rpc.Status`.
mod rpc_code {
    pub(super) const UNKNOWN: u32 = 2;
    pub(super) const INVALID_ARGUMENT: u32 = 3;
    pub(super) const DEADLINE_EXCEEDED: u32 = 4;
    pub(super) const NOT_FOUND: u32 = 5;
    pub(super) const PERMISSION_DENIED: u32 = 7;
    pub(super) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(super) const INTERNAL: u32 = 13;
    pub(super) const UNAVAILABLE: u32 = 14;
    pub(super) const UNAUTHENTICATED: u32 = 16;
}

/// The text of a problem with its hint.
pub(super) fn message(problem: &ProblemDetails) -> String {
    match problem.to_json().get("hint").and_then(|hint| hint.as_str()) {
        Some(hint) => format!("{}. {hint}", problem.detail().trim_end_matches('.')),
        None => problem.detail().to_owned(),
    }
}

/// The response of a problem, with the status and the body that the protocol has for it.
pub(super) fn in_protocol(
    mut response: Response,
    route: &TelemetryRoute,
    request: &HeaderMap,
    message: &str,
) -> Response {
    // A call that was cancelled, a conflict and a slow body may succeed when they are repeated.
    let status = match response.status() {
        StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT => StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    *response.status_mut() = status;
    let (media_type, body) = match route.entry {
        WriteRows::ReceivePrometheus => ("text/plain; charset=utf-8", message.as_bytes().to_vec()),
        WriteRows::ReceiveBulk => (JSON, bulk_body(status, message)),
        _ => otlp_body(status, request, message),
    };
    *response.body_mut() = Body::from(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.remove(header::CONTENT_LENGTH);
    if status == StatusCode::SERVICE_UNAVAILABLE && !headers.contains_key(header::RETRY_AFTER) {
        headers.insert(header::RETRY_AFTER, retry_after_value(None));
    }
    add_protocol_headers(headers, route.entry, Some(WrittenRecords::default()));
    response
}

/// `google.rpc.Status` in the encoding of the request.
fn otlp_body(status: StatusCode, request: &HeaderMap, message: &str) -> (&'static str, Vec<u8>) {
    let code = match status.as_u16() {
        400 | 405 | 413 | 415 => rpc_code::INVALID_ARGUMENT,
        401 => rpc_code::UNAUTHENTICATED,
        403 => rpc_code::PERMISSION_DENIED,
        404 => rpc_code::NOT_FOUND,
        429 => rpc_code::RESOURCE_EXHAUSTED,
        500 => rpc_code::INTERNAL,
        503 => rpc_code::UNAVAILABLE,
        504 => rpc_code::DEADLINE_EXCEEDED,
        _ => rpc_code::UNKNOWN,
    };
    let content_type = request.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(PROTOBUF) {
        return (PROTOBUF, encode_status(code, message));
    }
    (JSON, json!({"code": code, "message": message}).to_string().into_bytes())
}

/// The message with the fields 1 (code) and 2 (message).
fn encode_status(code: u32, message: &str) -> Vec<u8> {
    let mut bytes = vec![0x08];
    write_varint(&mut bytes, u64::from(code));
    bytes.push(0x12);
    write_varint(&mut bytes, message.len() as u64);
    bytes.extend_from_slice(message.as_bytes());
    bytes
}

fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        // The lowest seven bits.
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn bulk_body(status: StatusCode, message: &str) -> Vec<u8> {
    let error_type = match status.as_u16() {
        401 | 403 => "security_exception",
        404 => "resource_not_found_exception",
        429 | 503 | 504 => "es_rejected_execution_exception",
        500 => "exception",
        _ => "illegal_argument_exception",
    };
    let cause = json!({"type": error_type, "reason": message});
    let error = json!({"root_cause": [cause], "type": error_type, "reason": message});
    json!({"error": error, "status": status.as_u16()}).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_encoded_as_protocol_buffers() {
        assert_eq!(encode_status(3, "wrong"), b"\x08\x03\x12\x05wrong");
        let long = "x".repeat(300);
        assert_eq!(encode_status(14, &long)[..5], [0x08, 14, 0x12, 0xac, 0x02]);
    }

    #[test]
    fn what_may_be_repeated_is_unavailable() {
        let route = TelemetryRoute::parse("/api/v1/write").unwrap();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::CONFLICT;
        let response = in_protocol(response, &route, &HeaderMap::new(), "running");
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(response.headers()["x-prometheus-remote-write-samples-written"], "0");
    }
}
