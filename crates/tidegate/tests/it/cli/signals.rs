//! Signals: the first lets end what runs and takes nothing new, the second ends what runs.

use std::fs;

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::results::ENDLESS;
use super::server::{Server, within_reason};
use super::{Configured, tidegate};

const CONFIGURATION: &str = "databases: [{name: shop, files: shop}]\naudit: {file: audit.jsonl}\n";
/// Rows of 20 MB, more than lies between a node and somebody who does not read: the call runs until it is read.
const LARGE: &str = "SELECT g.value AS n, repeat('x', 1000) AS filler FROM generate_series(1, 20000) AS g(value)";

struct Node {
    configured: Configured,
    server: Server,
}

impl Node {
    fn start() -> Self {
        let configured = Configured::new(CONFIGURATION);
        let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
        let server = Server::start(tidegate().current_dir(configured.folder()).args(serve));
        Self { configured, server }
    }

    /// An answer that has begun.
    async fn begun(&self, sql: &str) -> (Response, Vec<u8>) {
        let request = Client::new().post(self.server.url.replace("/mcp", "/rest/sql"));
        let request = request.header("accept", "application/x-ndjson");
        let request = request.json(&json!({"sql": sql, "max_rows": 1_000_000_000}));
        let mut answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let first = answer.chunk().await.unwrap().unwrap().to_vec();
        (answer, first)
    }

    /// Waits until nobody can connect any more: so the signal was heard.
    async fn takes_nothing_new(&self) {
        let address = self.server.address();
        within_reason(async || TcpStream::connect(address).await.is_err()).await;
    }
}

/// How the calls ended of which the audit log tells, which must be whole.
fn audited(configured: &Configured) -> Vec<String> {
    let ran = configured.run(&["audit", "verify"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let log = fs::read_to_string(configured.folder().join("audit.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls = lines.filter(|line| line["kind"] == "call" && line["target"]["name"] == "sql");
    calls.map(|call| call["outcome"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_lets_a_call_end_well_and_takes_nothing_new() {
    for signal in ["TERM", "INT"] {
        let node = Node::start();
        let (mut answer, mut rows) = node.begun(LARGE).await;
        node.server.signal(signal);
        node.takes_nothing_new().await;
        while let Some(piece) = answer.chunk().await.unwrap() {
            rows.extend_from_slice(&piece);
        }
        assert_eq!(rows.split(|byte| *byte == b'\n').filter(|row| !row.is_empty()).count(), 20_000, "{signal}");
        let (status, said) = node.server.ended();
        assert_eq!((status.code(), said.as_str()), (Some(0), ""), "{signal}");
        assert_eq!(audited(&node.configured), ["done"], "{signal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_ends_what_runs_and_leaves_a_whole_audit_log_with_a_line_of_it() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT")] {
        let node = Node::start();
        let (mut answer, _) = node.begun(ENDLESS).await;
        node.server.signal(first);
        node.takes_nothing_new().await;
        node.server.signal(second);
        // Who drained in peace says nothing, and has the status 0.
        let (status, said) = node.server.ended();
        assert_eq!((status.code(), said.as_str()), (Some(1), "error: ended at once by a second signal\n"));
        while let Ok(piece) = answer.chunk().await {
            assert!(piece.is_some(), "a part is taken for the whole");
        }
        assert_eq!(audited(&node.configured), ["cancelled"], "{first}, {second}");
    }
}
