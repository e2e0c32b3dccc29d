//! MCP over HTTP+SSE, the first network transport: one event stream for all messages of the server, and a POST for each
//! message of the client.
//!
//! [MCP 2024-11-05, HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse)

mod stream;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, OriginalUri, Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use tidegate_core::Caller;
use tidegate_mcp::{IncomingMessage, RpcError};

use self::stream::EventStream;
pub(super) use self::stream::SseSessions;
use super::get::require_event_stream;
use super::identify::{HttpCallerResolver, RequestCredentials};
use super::post::read_message;
use super::response::{accepted, event_stream, refusal, too_many_sessions};
use super::{HttpState, TRACE, body};
use crate::revalidation::CallerResolver;

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

/// Receives a message for session `id`. The status is 202, whatever the answer will be.
pub(super) async fn post(
    State(endpoint): State<Arc<HttpState>>,
    Extension(caller): Extension<Caller>,
    Extension(mut request_credentials): Extension<RequestCredentials>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let Some(session) = endpoint.streams.get(&id, &caller.principal) else {
        endpoint.report_rejection(request_credentials.origin, NO_SUCH_SESSION);
        body::discard(request.into_body(), endpoint.options.read_within).await;
        return no_such_session();
    };
    let (parts, body) = request.into_parts();
    let read = read_message(&parts.headers, body, &endpoint, request_credentials.origin).await;
    // Reading the body may have taken long, so the permissions of the caller are resolved now.
    let origin = request_credentials.origin;
    request_credentials.toolset = session.toolset.clone();
    let resolver = Arc::new(HttpCallerResolver {
        http_state: endpoint.clone(),
        credentials: request_credentials,
        owner: session.owner.clone(),
    });
    let caller = match resolver.resolve_caller().await {
        Ok(caller) => caller,
        Err(refused) => return refused.to_response(&endpoint, origin),
    };
    let mut incoming = match read {
        Ok(Ok(incoming)) => incoming,
        Ok(Err(rejection)) => {
            if let Some(id) = &rejection.id {
                // The client expects the response with this id on the stream.
                session.conversation.refuse(Some(id), &rejection.error).await;
            } else {
                endpoint.report_rejection(origin, &rejection.error.message);
            }
            return refusal(StatusCode::BAD_REQUEST, rejection.id.as_ref(), &rejection.error);
        }
        Err(refusal) => return *refusal,
    };
    session.touch();
    if let IncomingMessage::Request(request) = &mut incoming {
        request.meta.trace |= parts.headers.get(TRACE).is_some_and(|value| value == "1");
    }
    let identity: Arc<dyn CallerResolver> = resolver;
    session.conversation.receive(incoming, caller, &identity).await;
    if session.conversation.is_output_closed() { no_such_session() } else { accepted() }
}

const NO_SUCH_SESSION: &str = "the session does not exist or has ended; open a new one with GET /mcp/sse";

/// 404, which makes a client open a new stream.
fn no_such_session() -> Response {
    refusal(StatusCode::NOT_FOUND, None, &RpcError::invalid_request(NO_SUCH_SESSION))
}
