//! MCP over WebSocket: a message is a text message, and the subprotocol is `mcp`.
//!
//! [RFC 6455](https://www.rfc-editor.org/rfc/rfc6455). MCP leaves further transports to implementations:
//! [MCP 2026-07-28, Custom Transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-transports)

mod arrival;
mod close;
mod connection;
mod handshake;
mod liveness;
mod write;

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use tidegate_core::Caller;

use self::connection::Connection;
use super::Door;
use super::identify::{Known, Shown};
use super::response::too_many_sessions;
use super::server::Seat;

/// GET: the connection becomes a WebSocket, or learns why not.
pub(super) async fn open(
    State(door): State<Arc<Door>>,
    Extension(caller): Extension<Caller>,
    Extension(shown): Extension<Shown>,
    mut request: Request,
) -> Response {
    let switching = match handshake::check(request.headers()) {
        Ok(accepted) => accepted,
        Err(refused) => {
            door.tell_of_refusal(shown.origin, &refused.message());
            return refused.response();
        }
    };
    let place = match door.place(&caller) {
        Ok(place) => place,
        Err(level) => return too_many_sessions(None, level),
    };
    let seat = request.extensions_mut().remove::<Seat>();
    let upgrade = hyper::upgrade::on(&mut request);
    let known = Arc::new(Known { door: door.clone(), shown, owner: caller.principal });
    let connection = Connection::new(door.clone(), known);
    door.tasks.spawn(async move {
        // A client that went away before it heard our answer.
        if let Ok(upgraded) = upgrade.await {
            connection.serve(upgraded).await;
        }
        drop((place, seat));
    });
    switching
}
