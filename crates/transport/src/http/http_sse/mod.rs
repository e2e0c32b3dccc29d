//! MCP over HTTP+SSE, the first network transport: one event stream for all messages of the server, and a POST for each
//! message of the client.
//!
//! [MCP 2024-11-05, HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse)

mod stream;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tidegate_mcp::{IncomingMessage, RpcError};

use self::stream::EventStream;
use super::body;
use super::caller::{AuthenticatedRequest, HttpCallerResolver};
use super::get::require_event_stream;
use super::post::read_message;
use super::response::{Refusal, accepted, event_stream, refusal, require_mcp};
use super::state::{HttpState, TRACE};
use crate::revalidation::CallerResolver;

/// GET: opens an event stream, whose first event contains the URL for messages. The session ends with the stream.
pub(super) async fn open(
    State(http_state): State<Arc<HttpState>>,
    original: OriginalUri,
    AuthenticatedRequest { caller, credentials, request }: AuthenticatedRequest,
) -> Result<Response, Refusal> {
    require_mcp(&http_state, None)?;
    require_event_stream(request.headers())?;
    let permit = http_state.acquire_session_permit(&caller, None)?;
    // The path prefix under which a host application mounted the router.
    let mount = original.path().strip_suffix(request.uri().path()).unwrap_or_default();
    let resolver = HttpCallerResolver::new(&http_state, credentials, &caller);
    let stream = EventStream::open(resolver, mount, permit);
    Ok(event_stream(Body::from_stream(futures::stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), stream))
    }))))
}

/// Receives a message for session `id`. The status is 202, whatever the answer will be.
pub(super) async fn post(
    State(http_state): State<Arc<HttpState>>,
    Path(id): Path<String>,
    AuthenticatedRequest { caller, mut credentials, request }: AuthenticatedRequest,
) -> Result<Response, Refusal> {
    let origin = credentials.origin;
    let Some(session) = http_state.streams.get(&id, &caller.principal) else {
        http_state.report_rejection(origin, NO_SUCH_SESSION);
        body::discard(request.into_body(), http_state.options.read_within).await;
        return Err(no_such_session().into());
    };
    let (parts, body) = request.into_parts();
    let message = read_message(&parts.headers, body, &http_state, origin).await;
    // Reading the body may have taken long, so the permissions of the caller are resolved now.
    credentials.toolset = session.toolset.clone();
    let resolver = Arc::new(HttpCallerResolver::new(&http_state, credentials, &caller));
    let caller = resolver.resolve_caller().await.map_err(|refused| refused.to_response(&http_state, origin))?;
    let mut incoming = match message? {
        Ok(incoming) => incoming,
        Err(rejection) => {
            if let Some(id) = &rejection.id {
                // The client expects the response with this id on the stream.
                session.connection.refuse(Some(id), &rejection.error).await;
            } else {
                http_state.report_rejection(origin, &rejection.error.message);
            }
            return Err(refusal(StatusCode::BAD_REQUEST, rejection.id.as_ref(), &rejection.error).into());
        }
    };
    match &incoming {
        IncomingMessage::Request(request) => require_mcp(&http_state, Some(&request.id))?,
        IncomingMessage::Batch(_) => require_mcp(&http_state, None)?,
        IncomingMessage::Notification(_) | IncomingMessage::Response(_) => {}
    }
    session.touch();
    if let IncomingMessage::Request(request) = &mut incoming {
        request.meta.trace |= parts.headers.get(TRACE).is_some_and(|value| value == "1");
    }
    let resolver: Arc<dyn CallerResolver> = resolver;
    session.connection.receive(incoming, caller, &resolver).await;
    if session.connection.is_output_closed() { Err(no_such_session().into()) } else { Ok(accepted()) }
}

const NO_SUCH_SESSION: &str = "the session does not exist or has ended; open a new one with GET /mcp/sse";

/// 404, which makes a client open a new stream.
fn no_such_session() -> Response {
    refusal(StatusCode::NOT_FOUND, None, &RpcError::invalid_request(NO_SUCH_SESSION))
}
