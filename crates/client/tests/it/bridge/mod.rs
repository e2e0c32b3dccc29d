//! A client over an in-memory pipe, the bridge, and a server behind real sockets that can be cut.
//!
//! - `server`: the server of this project; `proxy`: a proxy to it that breaks connections on demand; `scripted`:
//!   servers with arbitrary answers.
//! - `elicitation`: requests of the server, and their answers.
//! - `revisions`: messages pass through the bridge byte by byte as over direct stdio.
//! - `reconnection`: servers that become unreachable, come back, or restart; `at_most_once`: no call runs twice,
//!   whatever breaks.
//! - `refusals`: rejected callers receive the reason. `invalid_answers`: invalid answers of the server.
//! - `listening`: notification streams pass through, and end with either side.
//! - `bounds`: long lines, large answers, slow readers. `cancellation`: cancelled calls. `end`: how a bridge ends.

mod at_most_once;
mod bounds;
mod cancellation;
mod elicitation;
mod end;
mod invalid_answers;
mod listening;
mod proxy;
mod reconnection;
mod refusals;
mod revisions;
mod scripted;
mod server;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_client::bridge::{self, BridgeNotice, BridgeOptions};
use tidegate_mcp::Revision;
use tidegate_transport::stdio::{self, StdioOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use tidegate_testkit::connections::{PipeEnds, Reader, ServerTask, Writer};
use tidegate_testkit::host::Host;
use tidegate_testkit::wait::within_timeout;

/// The transport between bridge and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BridgeTransport {
    Http,
    Socket,
}

impl BridgeTransport {
    const BOTH: [Self; 2] = [Self::Http, Self::Socket];
}

/// A client and the task that serves it.
struct Client {
    writer: Writer,
    reader: BufReader<Reader>,
    served: ServerTask,
    shutdown: CancellationToken,
    notices: Arc<Mutex<Vec<BridgeNotice>>>,
    /// Whether a handshake was performed.
    is_legacy: bool,
}

impl Client {
    /// A client of a bridge.
    fn bridged(mut options: BridgeOptions) -> Self {
        let notices = Arc::new(Mutex::new(Vec::new()));
        let received = notices.clone();
        options.notice_listener = Arc::new(move |notice: &BridgeNotice| received.lock().push(notice.clone()));
        let client =
            Self::of(|reader, writer, shutdown| tokio::spawn(bridge::serve(reader, writer, options, shutdown)));
        Self { notices, ..client }
    }

    /// A client without a bridge.
    fn direct(host: &Host) -> Self {
        let service = host.service.clone();
        let options = StdioOptions::default();
        Self::of(|reader, writer, shutdown| tokio::spawn(stdio::serve(service, reader, writer, options, shutdown)))
    }

    fn of(serve: impl FnOnce(Reader, Writer, CancellationToken) -> ServerTask) -> Self {
        let PipeEnds { writer, reader, served, shutdown } = PipeEnds::new(serve);
        Self { writer, reader, served, shutdown, notices: Arc::default(), is_legacy: false }
    }

    /// Performs the handshake of `revision`.
    async fn agree(mut self, revision: Revision) -> Self {
        self.line(&handshake(revision)).await;
        let answer: Value = serde_json::from_str(&self.hear().await).unwrap();
        assert_eq!(answer["result"]["protocolVersion"], revision.name(), "{answer}");
        self.line(INITIALIZED).await;
        self.is_legacy = true;
        self
    }

    /// Performs a handshake of the newest legacy revision if `is_legacy` is true.
    async fn of_era(self, is_legacy: bool) -> Self {
        if is_legacy { self.agree(Revision::NEWEST_LEGACY).await } else { self }
    }

    /// Sends a line unchanged.
    async fn line(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    async fn send(&mut self, id: Value, method: &str, params: Value) {
        let line = if self.is_legacy { legacy(&id, method, &params) } else { modern(&id, method, params) };
        self.line(&line).await;
    }

    /// Calls the tool `script`.
    async fn call(&mut self, id: impl Into<Value>, steps: Value) {
        self.send(id.into(), "tools/call", json!({"name": "script", "arguments": {"steps": steps}})).await;
    }

    /// The next line; fails if there is none.
    async fn hear(&mut self) -> String {
        self.hear_if_open().await.expect("the output is closed")
    }

    /// The next line; `None` when the output is closed.
    async fn hear_if_open(&mut self) -> Option<String> {
        let mut line = String::new();
        within_timeout("a line of the server", self.reader.read_line(&mut line)).await.unwrap();
        line.pop().map(|end| {
            assert_eq!(end, '\n');
            line
        })
    }

    /// The next answer; notifications before it are skipped.
    async fn answer(&mut self) -> Value {
        loop {
            let line = self.hear().await;
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id = id.into();
        self.send(id.clone(), method, params).await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls the tool `script` and returns the first text of the answer.
    async fn text(&mut self, id: impl Into<Value>, steps: Value) -> String {
        let id = id.into();
        self.call(id.clone(), steps).await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], id, "{answer}");
        text(&answer).to_owned()
    }

    /// Checks that the bridge still forwards calls.
    async fn lives(&mut self) {
        assert_eq!(self.text("alive?", json!([["text", "yes"]])).await, "yes");
    }

    /// Closes the client side and returns the remaining lines.
    async fn close(mut self) -> Vec<String> {
        self.writer.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.hear_if_open().await {
            rest.push(line);
        }
        self.served.await.unwrap().unwrap();
        rest
    }
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn handshake(revision: Revision) -> String {
    let about = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": revision.name(), "capabilities": {}, "clientInfo": about});
    legacy(&json!("hello"), "initialize", &params)
}

fn legacy(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn modern(id: &Value, method: &str, mut params: Value) -> String {
    let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = json!(Revision::V2026_07_28.name());
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    legacy(id, method, &params)
}

fn cancelled(id: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string()
}

/// The text of the first block of a result.
fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}
