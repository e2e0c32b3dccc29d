//! Signals: the first lets end what runs and takes nothing new, the second ends what runs.

use std::fs;

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::results::ENDLESS_QUERY;
use super::server::{Server, wait_until};
use super::{ConfiguredFolder, tidegate};

const CONFIGURATION: &str = "databases: [{name: shop, files: shop}]\naudit: {file: audit.jsonl}\n";
/// Rows of 20 MB, more than lies between a node and somebody who does not read: the call runs until it is read.
const LARGE_QUERY: &str = "SELECT g.value AS n, repeat('x', 1000) AS filler FROM generate_series(1, 20000) AS g(value)";

struct Node {
    configured: ConfiguredFolder,
    server: Server,
}

impl Node {
    fn start() -> Self {
        let configured = ConfiguredFolder::new(CONFIGURATION);
        let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
        let server = Server::start(tidegate().current_dir(configured.folder()).args(serve));
        Self { configured, server }
    }

    /// An answer that has begun.
    async fn start_streaming(&self, sql: &str) -> (Response, Vec<u8>) {
        let request = Client::new().post(self.server.url.replace("/mcp", "/rest/sql"));
        let request = request.header("accept", "application/x-ndjson");
        let request = request.json(&json!({"sql": sql, "max_rows": 1_000_000_000}));
        let mut answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let first = answer.chunk().await.unwrap().unwrap().to_vec();
        (answer, first)
    }

    /// Waits until no client can connect any more, which shows that the signal was received.
    async fn wait_until_refusing(&self) {
        let address = self.server.address();
        wait_until(async || TcpStream::connect(address).await.is_err()).await;
    }
}

/// The outcomes of the calls in the audit log, which must be complete.
fn audit_outcomes(configured: &ConfiguredFolder) -> Vec<String> {
    let ran = configured.run(&["audit", "verify"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let log = fs::read_to_string(configured.folder().join("audit.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls = lines.filter(|line| line["kind"] == "call" && line["target"]["name"] == "sql");
    calls.map(|call| call["outcome"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn first_signal_drains_running_calls() {
    for signal in ["TERM", "INT"] {
        let node = Node::start();
        let (mut answer, mut rows) = node.start_streaming(LARGE_QUERY).await;
        node.server.signal(signal);
        node.wait_until_refusing().await;
        while let Some(piece) = answer.chunk().await.unwrap() {
            rows.extend_from_slice(&piece);
        }
        assert_eq!(rows.split(|byte| *byte == b'\n').filter(|row| !row.is_empty()).count(), 20_000, "{signal}");
        let (status, text) = node.server.wait_for_exit();
        assert_eq!((status.code(), text.as_str()), (Some(0), ""), "{signal}");
        assert_eq!(audit_outcomes(&node.configured), ["done"], "{signal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_cancels_calls_and_audits_them() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT")] {
        let node = Node::start();
        let (mut answer, _) = node.start_streaming(ENDLESS_QUERY).await;
        node.server.signal(first);
        node.wait_until_refusing().await;
        node.server.signal(second);
        // Who drained in peace says nothing, and has the status 0.
        let (status, text) = node.server.wait_for_exit();
        assert_eq!((status.code(), text.as_str()), (Some(1), "error: ended at once by a second signal\n"));
        while let Ok(piece) = answer.chunk().await {
            assert!(piece.is_some(), "a part is taken for the whole");
        }
        assert_eq!(audit_outcomes(&node.configured), ["cancelled"], "{first}, {second}");
    }
}
