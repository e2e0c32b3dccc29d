//! MCP over HTTP+SSE of 2024-11-05: a client that listens on one connection, posts on others, and checks all messages.
//!
//! - `revisions`: handshakes, batches, changed lists, toolsets, modern requests between legacy ones.
//! - `order`: a slow answer does not delay others; long ones are whole; events are numbered.
//! - `input`: invalid input of a client, and its effect.
//! - `identity`: the caller is resolved at each message and while it is quiet; the owner of a session.
//! - `timeouts`: comments and idle timeouts, with paused time.
//! - `elicitation`: requests of the server, and their answers.
//! - `listening`: notification streams, and the resources that a legacy session subscribes to.
//! - `resume`: clients that lose their connection and continue with `Last-Event-ID`.
//! - `end`: clients that disconnect or do not read, many of them, and shutdown.

mod elicitation;
mod end;
mod identity;
mod input;
mod listening;
mod order;
mod resume;
mod revisions;
mod timeouts;

use std::net::SocketAddr;

use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tokio::time::timeout;

use super::wire::{self, Answer, Connection};
use super::{Server, TEST_TIMEOUT};
use tidegate_testkit::message_checker::{MessageChecker, script};

/// A client: its event stream, and the URL that it posts to.
pub(crate) struct Stream {
    connection: Connection,
    address: SocketAddr,
    endpoint: String,
    headers: Vec<(String, String)>,
    pub(crate) ledger: MessageChecker,
    events: u64,
}

impl Stream {
    async fn open(server: &Server) -> Self {
        Self::at(server, "/mcp/sse", &[]).await
    }

    /// A stream at another path or with further headers, which its messages have too.
    async fn at(server: &Server, path: &str, headers: &[(&str, &str)]) -> Self {
        let refused = |answer: Answer| panic!("{answer:?}");
        Self::opened(server.address, path, headers).await.unwrap_or_else(refused)
    }

    /// A stream that the server may refuse to open.
    pub(crate) async fn opened(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Self, Answer> {
        let mut connection = Connection::open(address).await;
        let all = [&[("Accept", "text/event-stream")], headers].concat();
        connection.send(&wire::request("GET", path, &all, b"")).await;
        let head = connection.head().await;
        if head.status != 200 {
            return Err(connection.rest_of(head).await);
        }
        assert!(head.is_event_stream() && head.is_chunked());
        let first = connection.event_or_comment().await.unwrap();
        assert_eq!(first.event.as_deref(), Some("endpoint"));
        let endpoint = first.data.unwrap();
        let id = endpoint.strip_prefix("/mcp/messages/").unwrap();
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()) && id.len() >= 32, "{id}");
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Ok(Self { connection, address, endpoint, headers, ledger: MessageChecker::default(), events: 0 })
    }

    /// A stream with a handshake of `revision`.
    async fn agreed(server: &Server, revision: Revision) -> Self {
        let mut stream = Self::open(server).await;
        stream.shake_hands(revision).await;
        stream
    }

    pub(crate) async fn shake_hands(&mut self, revision: Revision) {
        let handshake = self.ledger.handshake(revision);
        self.say(&handshake).await;
        assert_eq!(self.hear().await.unwrap()["result"]["protocolVersion"], revision.name());
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }

    /// Posts any body on its own connection.
    pub(crate) async fn post(&self, body: &[u8]) -> Answer {
        let mine = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<_> = std::iter::once(("Content-Type", "application/json")).chain(mine).collect();
        self.post_with(&headers, body).await
    }

    async fn post_with(&self, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        Connection::open(self.address).await.ask(&wire::request("POST", &self.endpoint, headers, body)).await
    }

    /// Posts a message that is accepted.
    async fn say(&self, text: &str) {
        let answer = self.post(text.as_bytes()).await;
        assert_eq!((answer.head.status, answer.text()), (202, ""), "{text}");
    }

    async fn send(&mut self, id: Value, method: &str, params: Value) {
        let request = self.ledger.request(&id, method, params);
        self.say(&request).await;
    }

    /// Calls the tool `script`.
    async fn call(&mut self, id: Value, steps: Value) {
        self.send(id, "tools/call", script(&steps)).await;
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        let event = self.connection.event().await?;
        self.events += 1;
        assert_eq!((event.event.as_deref(), event.id), (Some("message"), Some(self.events.to_string())));
        let message = serde_json::from_str(&event.data.unwrap()).unwrap();
        self.ledger.check(&message);
        Some(message)
    }

    /// Waits until the beginning of the next event has arrived up to these words.
    async fn wait_for_bytes(&mut self, words: &str) {
        timeout(TEST_TIMEOUT, self.connection.wait_for_bytes(words.as_bytes())).await.unwrap();
    }

    /// Sends a request and returns the answer, which must be the next message.
    async fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.send(id.clone(), method, params).await;
        let answer = timeout(TEST_TIMEOUT, self.hear()).await.unwrap().unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Checks that the session still answers.
    async fn lives(&mut self) {
        let method = if self.ledger.agreed.is_some() { "ping" } else { "server/discover" };
        let answer = self.ask(json!("alive?"), method, json!({})).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
}
