//! A client over a pipe in memory, which checks everything that it hears.
//!
//! - `lines`: what is a message, what is refused, and that the connection lives on.
//! - `order`: a slow answer holds no other one up; a cancelled one never comes.
//! - `large`: answers that wait on disk.
//! - `eras`: handshakes, batches, changed lists, modern requests between them.
//! - `end`: who may end a connection, and what becomes of its calls.

mod end;
mod eras;
mod large;
mod lines;
mod order;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tidegate_transport::stdio::{StdioOptions, serve};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::schema::{check_notification, check_response};

/// What the pipe holds while nobody reads, as pipes of an operating system do.
const PIPE_BYTES: usize = 64 * 1024;

/// A client and the server at the other end of its pipe.
struct Pipe {
    writer: WriteHalf<DuplexStream>,
    reader: BufReader<ReadHalf<DuplexStream>>,
    served: JoinHandle<std::io::Result<()>>,
    shutdown: CancellationToken,
    /// What a legacy handshake agreed on.
    agreed: Option<Revision>,
    /// Method and revision of each open request, by id.
    open: HashMap<String, (String, Revision)>,
}

impl Pipe {
    fn open(host: &Host) -> Self {
        Self::with(host, StdioOptions::default())
    }

    fn with(host: &Host, options: StdioOptions) -> Self {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (reader, writer) = tokio::io::split(theirs);
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(serve(host.service.clone(), reader, writer, options, shutdown.clone()));
        let (reader, writer) = tokio::io::split(ours);
        Self { writer, reader: BufReader::new(reader), served, shutdown, agreed: None, open: HashMap::new() }
    }

    /// A pipe on which `revision` was agreed on.
    async fn agreed(host: &Host, revision: Revision) -> Self {
        let mut pipe = Self::open(host);
        pipe.agreed = Some(revision);
        let params = json!({
            "protocolVersion": revision.name(),
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = pipe.ask(json!("hello"), "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], revision.name());
        pipe.line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        pipe
    }

    /// Sends a line as it is.
    async fn line(&mut self, line: &[u8]) {
        self.writer.write_all(line).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    /// Sends a request; without a handshake it is a modern one.
    async fn send(&mut self, id: Value, method: &str, mut params: Value) {
        let revision = self.agreed.unwrap_or(Revision::V2026_07_28);
        if self.agreed.is_none() {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(revision.name());
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.open.insert(id.to_string(), (method.to_owned(), revision));
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.line(message.to_string().as_bytes()).await;
    }

    /// Calls the tool `script`.
    async fn call(&mut self, id: Value, steps: Value) {
        self.send(id, "tools/call", json!({"name": "script", "arguments": {"steps": steps}})).await;
    }

    /// The next message; `None` when the server has closed its side.
    async fn hear(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line).await.unwrap();
        if line.is_empty() {
            return None;
        }
        assert_eq!(line.pop(), Some(b'\n'));
        let message: Value = serde_json::from_slice(&line).unwrap();
        for message in message.as_array().map_or(std::slice::from_ref(&message), Vec::as_slice) {
            self.check(message);
        }
        Some(message)
    }

    fn check(&mut self, message: &Value) {
        let revision = self.agreed.unwrap_or(Revision::V2026_07_28);
        if message.get("method").is_some() {
            return check_notification(revision, message);
        }
        let (method, revision) = match &message["id"] {
            Value::Null => (String::new(), revision),
            id => self.open.remove(&id.to_string()).unwrap_or_else(|| panic!("nobody asked: {message}")),
        };
        check_response(revision, &method, message);
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
        let method = if self.agreed.is_some() { "ping" } else { "server/discover" };
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

/// The text of the first block of a result.
fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}
