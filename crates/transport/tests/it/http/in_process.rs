//! The router without a socket, for tests with paused time.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use serde_json::json;
use tidegate_mcp::Revision;
use tidegate_transport::Metrics;
use tidegate_transport::http::{HttpOptions, router};
use tower::ServiceExt;

use super::Session;
use super::request::Post;
use tidegate_testkit::host::Host;

/// The router of a host.
pub(super) struct InProcessRouter {
    pub(super) host: Host,
    pub(super) app: Router,
}

impl InProcessRouter {
    pub(super) fn new(options: HttpOptions) -> Self {
        let host = Host::new();
        Self { app: router(host.service.clone(), Arc::new(Metrics::new()), options), host }
    }

    pub(super) async fn ask(&self, post: &Post) -> Response {
        let request = post.headers().fold(Request::post("/mcp"), |request, (name, value)| request.header(name, value));
        self.app.clone().oneshot(request.body(Body::from(post.body.clone())).unwrap()).await.unwrap()
    }

    /// Opens a session of the newest legacy revision.
    pub(super) async fn session(&self) -> Session {
        let revision = Revision::NEWEST_LEGACY;
        let opened = self.ask(&Post::message("initialize", json!({"protocolVersion": revision.name()}))).await;
        Session { id: opened.headers()["mcp-session-id"].to_str().unwrap().to_owned(), revision }
    }

    /// Listens for messages outside requests.
    pub(super) async fn listen(&self, session: &Session) -> Response {
        self.get(&session.id, &[]).await
    }

    /// The same with further headers.
    pub(super) async fn get(&self, session: &str, headers: &[(&str, &str)]) -> Response {
        let request = Request::get("/mcp").header("Accept", "text/event-stream").header("Mcp-Session-Id", session);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }
}
