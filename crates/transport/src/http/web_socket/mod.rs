//! MCP over WebSocket: each message is a text message, and the subprotocol is `mcp`.
//!
//! [RFC 6455](https://www.rfc-editor.org/rfc/rfc6455). MCP leaves further transports to implementations:
//! [MCP 2026-07-28, Custom Transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-transports)

mod activity;
mod close;
mod connection;
mod handshake;
mod write;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use self::connection::WebSocketConnection;
use super::caller::{AuthenticatedRequest, HttpCallerResolver};
use super::response::{Refusal, require_mcp};
use super::state::{HttpConnectionPermit, HttpState};

/// GET: upgrades the connection to a WebSocket, or answers with an error.
pub(super) async fn open(
    State(http_state): State<Arc<HttpState>>,
    AuthenticatedRequest { caller, credentials, mut request }: AuthenticatedRequest,
) -> Result<Response, Refusal> {
    require_mcp(&http_state, None)?;
    let switching = handshake::accept_upgrade(request.headers()).map_err(|refused| {
        http_state.report_rejection(credentials.origin, &refused.message);
        refused.into_response()
    })?;
    let permit = http_state.acquire_session_permit(&caller, None)?;
    let http_connection_permit = request.extensions_mut().remove::<HttpConnectionPermit>();
    let upgrade = hyper::upgrade::on(&mut request);
    let resolver = Arc::new(HttpCallerResolver::new(&http_state, credentials, &caller));
    let connection = WebSocketConnection::new(http_state.clone(), resolver);
    http_state.tasks.spawn(async move {
        // An error means that the client disconnected before it received the response.
        if let Ok(upgraded) = upgrade.await {
            connection.serve(upgraded).await;
        }
        drop((permit, http_connection_permit));
    });
    Ok(switching)
}
