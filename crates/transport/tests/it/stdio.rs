//! A client over a pipe in memory, which checks everything that it hears.
//!
//! - `lines`: what is a message, what is refused, and that the connection lives on.
//! - `order`: a slow answer holds no other one up; a cancelled one never comes.
//! - `large`: answers that wait on disk.
//! - `revisions`: handshakes, batches, changed lists, modern requests between them.
//! - `asking`: requests of the server, and their answers.
//! - `listening`: streams of notifications, and the resources that a legacy session subscribes to.
//! - `end`: who may end a connection, and what becomes of its calls.

mod elicitation;
mod end;
mod large;
mod lines;
mod listening;
mod order;
mod revisions;

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tidegate_transport::stdio::{StdioOptions, serve};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::message_checker::{MessageChecker, script};

/// What the pipe holds while nobody reads, as pipes of an operating system do.
const PIPE_BYTES: usize = 64 * 1024;

pub(super) type Reader = ReadHalf<DuplexStream>;
pub(super) type Writer = WriteHalf<DuplexStream>;
pub(super) type ServerTask = JoinHandle<std::io::Result<()>>;

/// Our end of a pipe, and whatever serves the other one.
pub(super) struct PipeEnds {
    pub(super) writer: Writer,
    pub(super) reader: BufReader<Reader>,
    pub(super) served: ServerTask,
    pub(super) shutdown: CancellationToken,
}

impl PipeEnds {
    pub(super) fn of(serve: impl FnOnce(Reader, Writer, CancellationToken) -> ServerTask) -> Self {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (reader, writer) = tokio::io::split(theirs);
        let shutdown = CancellationToken::new();
        let served = serve(reader, writer, shutdown.clone());
        let (reader, writer) = tokio::io::split(ours);
        Self { writer, reader: BufReader::new(reader), served, shutdown }
    }
}

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

    /// A pipe at whose other end is whatever `serve` puts there.
    pub(super) fn served(serve: impl FnOnce(Reader, Writer, CancellationToken) -> ServerTask) -> Self {
        let PipeEnds { writer, reader, served, shutdown } = PipeEnds::of(serve);
        Self { writer, reader, served, shutdown, ledger: MessageChecker::default() }
    }

    /// A pipe on which `revision` was agreed on.
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

    /// Sends a line as it is.
    pub(super) async fn line(&mut self, line: &[u8]) {
        self.writer.write_all(line).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    /// Sends a request; without a handshake it is a modern one.
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

    /// Asks and hears the answer, with nothing before it.
    async fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.send(id.clone(), method, params).await;
        let answer = self.hear().await.unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Whether the connection still answers.
    async fn lives(&mut self) {
        let method = if self.ledger.agreed.is_some() { "ping" } else { "server/discover" };
        let answer = self.ask(json!("alive?"), method, json!({})).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }

    /// Closes our side and hears the rest.
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

/// Lets every other task run until all of them wait. Needs paused time.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
