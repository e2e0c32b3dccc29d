//! MCP over HTTP+SSE, the first network transport: one event stream for all messages of the server, and a POST for each
//! message of the client.
//!
//! [MCP 2024-11-05, HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse)

mod post;
mod sessions;
mod stream;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, OriginalUri, Request, State};
use axum::response::Response;
use tidegate_core::Caller;

use self::stream::EventStream;
use super::HttpState;
use super::get::require_event_stream;
use super::identify::{HttpCallerResolver, RequestCredentials};
use super::response::{event_stream, too_many_sessions};

pub(super) use post::post;
pub(super) use sessions::SseSessions;

/// GET: opens an event stream, whose first event contains the URL for messages. The session lives as long as the
/// stream.
pub(super) async fn open(
    State(endpoint): State<Arc<HttpState>>,
    Extension(caller): Extension<Caller>,
    Extension(request_credentials): Extension<RequestCredentials>,
    original: OriginalUri,
    request: Request,
) -> Response {
    if let Err(refusal) = require_event_stream(request.headers()) {
        return *refusal;
    }
    let permit = match endpoint.acquire_session_permit(&caller) {
        Ok(permit) => permit,
        Err(level) => return too_many_sessions(None, level),
    };
    // The path prefix under which a host application mounted the router.
    let mount = original.path().strip_suffix(request.uri().path()).unwrap_or_default();
    let resolver =
        HttpCallerResolver { http_state: endpoint, credentials: request_credentials, owner: caller.principal };
    let stream = EventStream::open(resolver, mount, permit);
    event_stream(Body::from_stream(futures::stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), stream))
    })))
}
