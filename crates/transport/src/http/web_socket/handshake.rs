//! The opening handshake: turns the headers of a GET into `101 Switching Protocols`, or into an error.
//!
//! [RFC 6455, 4.2](https://www.rfc-editor.org/rfc/rfc6455#section-4.2)

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tidegate_mcp::RpcError;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::response::refusal;

const SUBPROTOCOL: &str = "mcp";
const VERSION: &str = "13";
const KEY_BYTES: usize = 16;

const UPGRADE: HeaderValue = HeaderValue::from_static("upgrade");
const WEB_SOCKET: HeaderValue = HeaderValue::from_static("websocket");

#[derive(Debug)]
pub(super) struct HandshakeError {
    status: StatusCode,
    pub(super) message: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl HandshakeError {
    fn new(status: StatusCode, problem: &str, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { status, message: format!("Invalid request: {problem}"), headers }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = refusal(self.status, None, &RpcError::invalid_request(self.message));
        response.headers_mut().extend(self.headers);
        response
    }
}

/// The response that turns the connection into a WebSocket.
pub(super) fn accept_upgrade(headers: &HeaderMap) -> Result<Response, HandshakeError> {
    let is_upgrade =
        has_token(headers, header::CONNECTION, "upgrade") && has_token(headers, header::UPGRADE, "websocket");
    if !is_upgrade {
        let problem = "this path accepts only WebSocket upgrades; use /mcp for plain HTTP";
        let headers = vec![(header::UPGRADE, WEB_SOCKET), (header::CONNECTION, UPGRADE)];
        return Err(HandshakeError::new(StatusCode::UPGRADE_REQUIRED, problem, headers));
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != VERSION) {
        let problem = format!("Sec-WebSocket-Version must be {VERSION}");
        let headers = vec![(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION))];
        return Err(HandshakeError::new(StatusCode::UPGRADE_REQUIRED, &problem, headers));
    }
    let bad_request = |problem: String| HandshakeError::new(StatusCode::BAD_REQUEST, &problem, Vec::new());
    let invalid_key = || bad_request(format!("Sec-WebSocket-Key must be {KEY_BYTES} bytes as Base64"));
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    if STANDARD.decode(key).map_or(0, |nonce| nonce.len()) != KEY_BYTES {
        return Err(invalid_key());
    }
    if !has_token(headers, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        let problem = format!("the client must offer the subprotocol: Sec-WebSocket-Protocol: {SUBPROTOCOL}");
        return Err(bad_request(problem));
    }
    // The derived key is Base64.
    let accept = HeaderValue::from_str(&derive_accept_key(key)).map_err(|_| invalid_key())?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let all = response.headers_mut();
    all.insert(header::CONNECTION, UPGRADE);
    all.insert(header::UPGRADE, WEB_SOCKET);
    all.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    all.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    Ok(response)
}

/// Whether one of the comma-separated values of the header is `token`, ignoring case.
fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
}
