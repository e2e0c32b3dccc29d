//! A client over real sockets, which sees every header and every chunk, and checks every message.
//!
//! - `wire`: HTTP/1.1 as bytes, and server-sent events.
//! - `request`: requests of clients of each era; `in_process`: the same without a socket, for tests with paused time.
//! - `host_check`, `bodies`, `mirrored_headers`: requests that are rejected before their message is processed, on
//!   connections that stay usable.
//! - `identity`: the caller is resolved again for each message.
//! - `challenges`: responses to callers that are rejected or lack access; `uniform_rejections`: invalid credentials
//!   over every transport; `revocation`: revoked credentials end running answers.
//! - `tls`: connections over TLS, and client certificates.
//! - `status`: the status of each answer.
//! - `sessions`, `listen`, `resume`: requests of legacy clients other than POST; `subscriptions`: listening of modern
//!   ones; `elicitation`: requests of the server to both.
//! - `keep_alive`: quiet streams are kept open, and their events stay whole.
//! - `connections`: the number of connections; `session_permits`: the number of sessions, of one principal, of one
//!   tenant, of all.
//! - `events`, `streaming`: answers that are written while they are produced, and clients that disconnect.
//! - `rest`: the registry as REST; `results`: stored results.
//! - `data`: rows that are sent. `console`: the page for people.
//! - `metrics`: health, readiness, metrics.
//! - `shutdown`: running calls may end. `switches`: an operator stops and starts transports.
//! - `web_socket`, `http_sse`: transports whose connections many requests share; `resource_usage`: no resources are
//!   leaked; `shared_connection`: the common behaviour of both.

mod bodies;
mod challenges;
mod connections;
mod console;
mod data;
mod elicitation;
mod events;
mod host_check;
pub(super) mod http_sse;
pub(crate) mod identity;
mod in_process;
mod keep_alive;
mod listen;
mod metrics;
mod mirrored_headers;
pub(super) mod request;
mod resource_usage;
mod rest;
mod results;
mod resume;
mod revocation;
mod session_permits;
mod sessions;
mod shared_connection;
mod shutdown;
mod status;
mod streaming;
mod subscriptions;
mod switches;
mod tls;
mod uniform_rejections;
pub(super) mod web_socket;
pub(super) mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tidegate_runtime::event::{EventDispatcher, Subscriber};
use tidegate_transport::Metrics;
use tidegate_transport::http::{HttpOptions, RunningServer, serve};
use tokio_util::sync::CancellationToken;

use self::request::Post;
use self::wire::{Answer, Connection};
use tidegate_testkit::host::Host;
use tidegate_testkit::schema::check_response;
use tidegate_testkit::wait::wait_until;

/// A server on its own port.
pub(super) struct Server {
    pub(super) host: Host,
    pub(super) address: SocketAddr,
    running: RunningServer,
    shutdown: CancellationToken,
}

impl Server {
    async fn start() -> Self {
        Self::with(HttpOptions::default()).await
    }

    async fn with(options: HttpOptions) -> Self {
        let metrics = Arc::new(Metrics::new());
        let host = Host::with_events(EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]));
        Self::of(host, metrics, options).await
    }

    pub(super) async fn of(host: Host, metrics: Arc<Metrics>, options: HttpOptions) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shutdown = CancellationToken::new();
        let running = serve(listener, host.service.clone(), metrics, options, shutdown.clone()).unwrap();
        Self { address: running.address(), host, running, shutdown }
    }

    async fn connect(&self) -> Connection {
        Connection::open(self.address).await
    }

    /// One request on its own connection.
    async fn ask(&self, post: &Post) -> Answer {
        self.connect().await.ask(&post.bytes()).await
    }

    /// Opens a session of `revision`.
    async fn session(&self, revision: Revision) -> Session {
        self.session_of(revision, json!({}), |post| post).await
    }

    /// Opens a session of a client that declares `capabilities`. `visible` modifies each of its requests.
    async fn session_of(&self, revision: Revision, capabilities: Value, visible: impl Fn(Post) -> Post) -> Session {
        let params = json!({
            "protocolVersion": revision.name(),
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = self.ask(&visible(Post::message("initialize", params))).await;
        let message = answer.message();
        check_response(revision, "initialize", &message);
        assert_eq!(message["result"]["protocolVersion"], revision.name());
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()) && id.len() >= 32, "{id}");
        Session { id, revision }
    }

    /// How many calls are open.
    pub(super) fn open_calls(&self) -> usize {
        self.host.service.registry().jobs().open_count()
    }

    /// Waits until `count` calls are open.
    async fn until_open_calls(&self, count: usize) {
        wait_until("the open calls", async || self.open_calls() == count).await;
    }
}

/// A legacy session.
struct Session {
    id: String,
    revision: Revision,
}

impl Session {
    /// A request of this session.
    fn post(&self, method: &str, params: Value) -> Post {
        let post = Post::message(method, params).with("Mcp-Session-Id", &self.id).in_revision(self.revision);
        // Clients before 2025-06-18 do not send this header.
        if self.revision < Revision::V2025_06_18 {
            post
        } else {
            post.with("MCP-Protocol-Version", self.revision.name())
        }
    }

    /// A call of the tool `script` that requests progress.
    fn call(&self, steps: Value) -> Post {
        let meta = json!({"progressToken": "p"});
        self.post("tools/call", json!({"name": "script", "arguments": {"steps": steps}, "_meta": meta}))
    }

    /// GET or DELETE, with more headers.
    fn head(&self, method: &str, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut all = vec![("Mcp-Session-Id", self.id.as_str()), ("Accept", "text/event-stream")];
        all.extend_from_slice(headers);
        wire::request(method, "/mcp", &all, b"")
    }
}

/// Longer than any operation takes; only a failing test waits this long.
pub(super) const TEST_TIMEOUT: Duration = Duration::from_secs(30);
