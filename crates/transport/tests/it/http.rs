//! A client over real sockets, which sees every header and every chunk, and checks every message.
//!
//! - `wire`: HTTP/1.1 as bytes, and server-sent events.
//! - `request`: what clients of each era send; `door`: the same without a socket, for tests in which time stands still.
//! - `guard`, `bodies`, `mirrored_headers`: what is refused before a message counts, and that the connection lives on.
//! - `identity`: who calls, asked again for each message.
//! - `challenges`: what is told to who is not let in, or not yet; `uniform_rejections`: what is shown wrongly, over every transport;
//!   `revoked`: that who is let in no longer hears no more of what it began.
//! - `tls`: connections over TLS, and certificates of clients.
//! - `status`: which status each answer has.
//! - `sessions`, `listen`, `resume`: what legacy clients have beside POST; `subscriptions`: how modern ones listen;
//!   `asking`: what both are asked.
//! - `keep_alive`: streams that say nothing for long are kept open, and their events whole.
//! - `connections`: how many there are at once; `places`: how many sessions, of one principal, of one tenant, of all.
//! - `events`, `streaming`: answers that are written while they are produced, and clients that go away.
//! - `rest`: the registry as REST; `results`: stored results.
//! - `metrics`: health, readiness, metrics.
//! - `shutdown`: what runs may end.
//! - `web_socket`, `http_sse`: the transports on whose connections many requests share; `resource_usage`: that after whatever
//!   happened everything is back to where it was; `shared_connection`: what both do alike.

mod bodies;
mod challenges;
mod connections;
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
mod tls;
mod uniform_rejections;
pub(super) mod web_socket;
pub(super) mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::event::{EventDispatcher, Subscriber};
use tidegate_mcp::Revision;
use tidegate_transport::Metrics;
use tidegate_transport::http::{HttpOptions, RunningServer, serve};
use tokio_util::sync::CancellationToken;

use self::request::Post;
use self::wire::{Answer, Connection};
use crate::host::Host;
use crate::schema::check_response;

/// A server on a port of its own.
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
        let host = Host::heard_by(EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]));
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

    /// One request on a connection of its own.
    async fn ask(&self, post: &Post) -> Answer {
        self.connect().await.ask(&post.bytes()).await
    }

    /// Opens a session of `revision`.
    async fn session(&self, revision: Revision) -> Session {
        self.session_of(revision, json!({}), |post| post).await
    }

    /// Opens a session of a client that declares `capabilities`, and whose every request is as `shown` makes it.
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

    /// Waits until `record_event` calls are open.
    async fn until_open_calls(&self, count: usize) {
        until(async || self.open_calls() == count).await;
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
        // Clients before 2025-06-18 know no such header.
        if self.revision < Revision::V2025_06_18 {
            post
        } else {
            post.with("MCP-Protocol-Version", self.revision.name())
        }
    }

    /// A call of the tool `script` that wants to hear of its progress.
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

/// Waits until something holds; fails when it does not within a long time.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, waiting).await.expect("it never came to hold");
}

/// Longer than anything takes; only a test that fails waits for it.
pub(super) const TEST_TIMEOUT: Duration = Duration::from_secs(30);
