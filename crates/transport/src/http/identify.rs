//! Who calls, and through which toolset's door: found out before anything else is looked at.
//!
//! [MCP 2026-07-28, Authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization)

use std::sync::Arc;

use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use tidegate_core::event::Event;
use tidegate_core::{Caller, Credentials, Origin, TransportKind, Unauthenticated};
use tidegate_mcp::RpcError;

use super::response::refusal;
use super::{Door, PeerAddress, body};

/// Puts the [`Caller`] into the request's extensions; 401 for one who proves nobody, 404 for a toolset that is
/// hidden from the caller or absent.
pub(super) async fn identify(
    State(door): State<Arc<Door>>,
    path: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<PeerAddress>().map(|PeerAddress(address)| *address);
    let credentials = Credentials { bearer: bearer(request.headers()), peer };
    let refused = match door.options.authenticator.authenticate(credentials).await {
        Ok(principal) => {
            let origin = Origin { transport: TransportKind::StreamableHttp, peer };
            match enter(&door, Caller::new(principal, origin), &path) {
                Ok(caller) => {
                    request.extensions_mut().insert(caller);
                    return next.run(request).await;
                }
                Err(name) => no_such_toolset(&name),
            }
        }
        Err(reason) => unauthenticated(&door, reason),
    };
    body::discard(request.into_body(), door.options.read_within).await;
    refused
}

/// The token of `Authorization: Bearer …`; the scheme's case does not count (RFC 9110, 11.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?;
    // What cannot be read was shown all the same, and is no token.
    let (scheme, token) = value.to_str().unwrap_or("?").split_once(' ').unwrap_or(("?", ""));
    Some(if scheme.eq_ignore_ascii_case("bearer") { token.trim() } else { "" })
}

/// The caller at the door that its path names.
fn enter(door: &Door, caller: Caller, path: &RawPathParams) -> Result<Caller, String> {
    let Some((_, name)) = path.iter().find(|(parameter, _)| *parameter == "toolset") else { return Ok(caller) };
    let toolset = door.service.registry().snapshot().toolset(name, &caller).cloned();
    toolset.map(|toolset| caller.through(Some(toolset))).ok_or_else(|| name.to_owned())
}

fn no_such_toolset(name: &str) -> Response {
    let error = RpcError::invalid_request(format!("there is no toolset {name:?}; the whole of the server is at /mcp"));
    refusal(StatusCode::NOT_FOUND, None, &error)
}

fn unauthenticated(door: &Door, reason: Unauthenticated) -> Response {
    let told = reason.to_string();
    let event = Event::MessageRefused { transport: TransportKind::StreamableHttp, reason: &told };
    door.service.registry().events().tell(event);
    let mut response = refusal(StatusCode::UNAUTHORIZED, None, &RpcError::invalid_request(told));
    let challenge = match reason {
        Unauthenticated::Missing => "Bearer realm=\"tidegate\"",
        Unauthenticated::Invalid => "Bearer realm=\"tidegate\", error=\"invalid_token\"",
    };
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}
