//! POST: one message of the client. Its answer is sent on the event stream.

use std::sync::Arc;

use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use tidegate_core::Caller;
use tidegate_mcp::{IncomingMessage, RpcError};

use crate::batch::CallerResolver;
use crate::http::identify::{HttpCallerResolver, RequestCredentials};
use crate::http::post::{TRACE, read_message};
use crate::http::response::{accepted, refusal};
use crate::http::{HttpState, body};

/// Receives a message for session `id`. The status is 202, whatever the answer will be.
pub(in crate::http) async fn post(
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
