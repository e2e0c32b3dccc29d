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

/// Why a request does not open a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HandshakeError {
    /// An ordinary HTTP request.
    #[error("this path accepts only WebSocket upgrades; use /mcp for plain HTTP")]
    NoUpgrade,
    /// Another version of the protocol.
    #[error("Sec-WebSocket-Version must be {VERSION}")]
    Version,
    /// A missing or invalid nonce.
    #[error("Sec-WebSocket-Key must be {KEY_BYTES} bytes as Base64")]
    Key,
    /// The client does not offer the subprotocol `mcp`.
    #[error("the client must offer the subprotocol: Sec-WebSocket-Protocol: {SUBPROTOCOL}")]
    Subprotocol,
}

impl HandshakeError {
    pub(super) fn message(self) -> String {
        format!("Invalid request: {self}")
    }

    /// 400, or 426 with the protocol to upgrade to.
    pub(super) fn into_response(self) -> Response {
        let error = RpcError::invalid_request(self.message());
        match self {
            Self::NoUpgrade => {
                let mut response = refusal(StatusCode::UPGRADE_REQUIRED, None, &error);
                response.headers_mut().insert(header::UPGRADE, WEB_SOCKET);
                response.headers_mut().insert(header::CONNECTION, UPGRADE);
                response
            }
            Self::Version => {
                let mut response = refusal(StatusCode::UPGRADE_REQUIRED, None, &error);
                let version = HeaderValue::from_static(VERSION);
                response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, version);
                response
            }
            Self::Key | Self::Subprotocol => refusal(StatusCode::BAD_REQUEST, None, &error),
        }
    }
}

/// The response that turns the connection into a WebSocket.
///
/// # Errors
/// What is wrong with the request.
pub(super) fn accept_upgrade(headers: &HeaderMap) -> Result<Response, HandshakeError> {
    let is_upgrade =
        has_token(headers, header::CONNECTION, "upgrade") && has_token(headers, header::UPGRADE, "websocket");
    if !is_upgrade {
        return Err(HandshakeError::NoUpgrade);
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != VERSION) {
        return Err(HandshakeError::Version);
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    if STANDARD.decode(key).map_or(0, |nonce| nonce.len()) != KEY_BYTES {
        return Err(HandshakeError::Key);
    }
    if !has_token(headers, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        return Err(HandshakeError::Subprotocol);
    }
    // The derived key is Base64.
    let accept = HeaderValue::from_str(&derive_accept_key(key)).map_err(|_| HandshakeError::Key)?;
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
