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

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use tidegate_core::Caller;

use self::connection::WebSocketConnection;
use super::HttpState;
use super::identify::{HttpCallerResolver, RequestCredentials};
use super::response::too_many_sessions;
use super::server::HttpConnectionPermit;

/// GET: upgrades the connection to a WebSocket, or answers with an error.
pub(super) async fn open(
    State(endpoint): State<Arc<HttpState>>,
    Extension(caller): Extension<Caller>,
    Extension(request_credentials): Extension<RequestCredentials>,
    mut request: Request,
) -> Response {
    let switching = match handshake::accept_upgrade(request.headers()) {
        Ok(accepted) => accepted,
        Err(refused) => {
            endpoint.report_rejection(request_credentials.origin, &refused.message());
            return refused.into_response();
        }
    };
    let permit = match endpoint.acquire_session_permit(&caller) {
        Ok(permit) => permit,
        Err(level) => return too_many_sessions(None, level),
    };
    let http_connection_permit = request.extensions_mut().remove::<HttpConnectionPermit>();
    let upgrade = hyper::upgrade::on(&mut request);
    let resolver = Arc::new(HttpCallerResolver {
        http_state: endpoint.clone(),
        credentials: request_credentials,
        owner: caller.principal,
    });
    let connection = WebSocketConnection::new(endpoint.clone(), resolver);
    endpoint.tasks.spawn(async move {
        // An error means that the client disconnected before it received the response.
        if let Ok(upgraded) = upgrade.await {
            connection.serve(upgraded).await;
        }
        drop((permit, http_connection_permit));
    });
    switching
}
