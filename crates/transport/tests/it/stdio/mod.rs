//! A client over an in-memory pipe, which checks all received messages.
//!
//! - `lines`: valid and invalid messages; the connection stays usable.
//! - `order`: a slow answer does not delay others; a cancelled one is never sent.
//! - `large`: answers that are stored on disk.
//! - `revisions`: handshakes, batches, changed lists, modern requests between them.
//! - `elicitation`: requests of the server, and their answers.
//! - `listening`: notification streams, and the resources that a legacy session subscribes to.
//! - `end`: the ways in which a connection ends, and the effect on its calls.

mod elicitation;
mod end;
mod large;
mod lines;
mod listening;
mod order;
mod revisions;

use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tidegate_testkit::connections::{PipeEnds, Reader, ServerTask, Writer};
use tidegate_transport::stdio::{StdioOptions, serve};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use tidegate_testkit::host::Host;
use tidegate_testkit::message_checker::{MessageChecker, script};
use tidegate_testkit::wait::settle;

/// A client and the server at the other end of its pipe.
pub(super) struct Pipe {
    writer: Writer,
    reader: BufReader<Reader>,
    served: ServerTask,
    shutdown: CancellationToken,
    pub(super) ledger: MessageChecker,
}

impl Pipe {
    fn open(host: &Host) -> Self {
        Self::with(host, StdioOptions::default())
    }

    pub(super) fn with(host: &Host, options: StdioOptions) -> Self {
        let service = host.service.clone();
        Self::served(|reader, writer, shutdown| tokio::spawn(serve(service, reader, writer, options, shutdown)))
    }

    /// A pipe whose other end is served by `serve`.
    pub(super) fn served(serve: impl FnOnce(Reader, Writer, CancellationToken) -> ServerTask) -> Self {
        let PipeEnds { writer, reader, served, shutdown } = PipeEnds::new(serve);
        Self { writer, reader, served, shutdown, ledger: MessageChecker::default() }
    }

    /// A pipe with a handshake of `revision`.
    async fn agreed(host: &Host, revision: Revision) -> Self {
        let mut pipe = Self::open(host);
        pipe.shake_hands(revision).await;
        pipe
    }

    pub(super) async fn shake_hands(&mut self, revision: Revision) {
        let handshake = self.ledger.handshake(revision);
        self.line(handshake.as_bytes()).await;
        assert_eq!(self.hear().await.unwrap()["result"]["protocolVersion"], revision.name());
        self.line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }

    /// Sends a line unchanged.
    pub(super) async fn line(&mut self, line: &[u8]) {
        self.writer.write_all(line).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    /// Sends a request; a modern one if there was no handshake.
    pub(super) async fn send(&mut self, id: Value, method: &str, params: Value) {
        let message = self.ledger.request(&id, method, params);
        self.line(message.as_bytes()).await;
    }

    /// Calls the tool `script`.
    async fn call(&mut self, id: Value, steps: Value) {
        self.send(id, "tools/call", script(&steps)).await;
    }

    /// The next message; `None` when the server has closed its side.
    pub(super) async fn hear(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line).await.unwrap();
        if line.is_empty() {
            return None;
        }
        assert_eq!(line.pop(), Some(b'\n'));
        let message: Value = serde_json::from_slice(&line).unwrap();
        self.ledger.check(&message);
        Some(message)
    }

    /// Sends a request and returns the answer, which must be the next message.
    async fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.send(id.clone(), method, params).await;
        let answer = self.hear().await.unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Checks that the connection still answers.
    async fn lives(&mut self) {
        let method = if self.ledger.agreed.is_some() { "ping" } else { "server/discover" };
        let answer = self.ask(json!("alive?"), method, json!({})).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }

    /// Closes the client side and returns the remaining messages.
    async fn close(mut self) -> Vec<Value> {
        self.writer.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(message) = self.hear().await {
            rest.push(message);
        }
        self.served.await.unwrap().unwrap();
        rest
    }
}
