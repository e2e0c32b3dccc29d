//! Operating a running server: readiness, and stopping and starting transports.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Client;
use serde_json::{Value, json};

use super::server::Server;
use super::{ConfiguredFolder, rmcp_client, tidegate};

async fn get(url: &str) -> (u16, String) {
    get_with(&Client::new(), url).await
}

async fn get_with(client: &Client, url: &str) -> (u16, String) {
    let response = client.get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// A frozen server: it accepts connections and never answers. Counts them.
fn frozen_server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            held.push(stream);
        }
    });
    (port, count)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_database_that_does_not_answer_makes_the_server_unready() {
    let (port, connections) = frozen_server();
    let configuration = |required: &str| {
        format!(
            "databases:\n  - {{name: shop, files: shop}}\n  - {{name: ledger, postgres: 'host=127.0.0.1 port={port} \
             user=u dbname=d sslmode=disable connect_timeout=2'{required}}}\n"
        )
    };
    let configured = ConfiguredFolder::new(&configuration(""));
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--log", "warn"];
    let mut server = Server::start(tidegate().current_dir(configured.folder()).args(arguments));
    let ready = server.url.replace("/mcp", "/ready");
    let before = connections.load(Ordering::SeqCst);
    let client = Client::new();
    let requests = (0..50).map(|_| get_with(&client, &ready));
    for answer in futures::future::join_all(requests).await {
        assert_eq!(answer, (503, "a required database does not answer; the log names it\n".to_owned()));
    }
    let probes = connections.load(Ordering::SeqCst) - before;
    assert!((1..=5).contains(&probes), "{probes} probes");
    let warning = server.wait_for_log("not ready");
    assert!(warning.contains("ledger") && warning.contains("no answer within 2 s"), "{warning}");
    assert_eq!(get(&server.url.replace("/mcp", "/health")).await.0, 200);
    configured.write(&configuration(", required: false"));
    super::server::wait_until(async || get(&ready).await == (200, "ready\n".to_owned())).await;
}

/// Many clients never send DELETE.
#[tokio::test(flavor = "multi_thread")]
async fn abandoned_sessions_do_not_keep_new_clients_out() {
    let configured = ConfiguredFolder::new("databases: [{name: shop, files: shop}]\n");
    let server = rmcp_client::serve(&configured);
    let http = Client::new();
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    for number in 0..1_030 {
        let request = http.post(&server.url).header("accept", "application/json, text/event-stream").json(&initialize);
        assert_eq!(request.send().await.unwrap().status(), 200, "session {number}");
    }
    let way = rmcp_client::ClientTransport { is_http: true, is_legacy: true };
    let client = rmcp_client::connect((), way, &server, &configured).await;
    assert!(!client.list_all_tools().await.unwrap().is_empty());
    client.cancel().await.unwrap();
}

/// The answer of `node_status` over REST.
async fn node_status(base: &str) -> Value {
    let request = Client::new().post(format!("{base}/rest/tools/node_status/call")).json(&json!({}));
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_and_rest_stop_and_start_while_the_other_runs() {
    let configured = ConfiguredFolder::new("databases: [{name: shop, files: shop}]\n");
    let server = rmcp_client::serve(&configured);
    let base = server.url.strip_suffix("/mcp").unwrap();
    let transport = |arguments: &[&str]| {
        let ran = configured.run(&[&["transport"], arguments, &["--connect", base]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        ran.stdout
    };
    assert_eq!(transport(&["status"]), "mcp: running\nrest: running\n");
    assert_eq!(transport(&["stop", "mcp"]), "mcp: stopped\nrest: running\n");
    let stopped = get(&server.url).await;
    assert_eq!(stopped.0, 503);
    assert!(stopped.1.contains("an operator has stopped mcp on this server"), "{}", stopped.1);
    let status = node_status(base).await.to_string();
    assert!(status.contains("mcp stopped, rest running"), "{status}");
    assert_eq!(transport(&["stop", "rest"]), "mcp: stopped\nrest: stopped\n");
    assert_eq!(get(&format!("{base}/rest/tools")).await.0, 503);
    assert_eq!(get(&format!("{base}/ready")).await.0, 200);
    transport(&["start", "mcp"]);
    assert_eq!(get(&server.url).await.0, 400);
    assert_eq!(transport(&["start", "rest"]), "mcp: running\nrest: running\n");
    assert_eq!(get(&format!("{base}/rest/tools")).await.0, 200);
}

#[test]
fn only_operators_stop_transports() {
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}]\nauth: {keys: keys.json}\nroles:\n  \
         - {name: reader, toolsets: ['*'], databases: ['*']}\n  - {name: operator, access: [operator]}\n",
    );
    let key = |role: &str| {
        let ran = configured.run(&["key", "add", role, "--role", role]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.trim().to_owned()
    };
    let (reader, operator) = (key("reader"), key("operator"));
    let server = rmcp_client::serve(&configured);
    let base = server.url.strip_suffix("/mcp").unwrap();
    let stop = |key: &str| configured.run(&["transport", "stop", "mcp", "--connect", base, "--bearer", key]);
    let refused = stop(&reader);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("this requires a role with the access name \"operator\""), "{}", refused.stderr);
    let stopped = stop(&operator);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(0), "mcp: stopped\nrest: running\n"), "{stopped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_number_of_threads_is_that_of_the_runtime() {
    let configured = ConfiguredFolder::new("server: {threads: 3}\ndatabases: [{name: shop, files: shop}]\n");
    let server = rmcp_client::serve(&configured);
    let answered = get(&server.url.replace("/mcp", "/rest/databases/shop/tables/orders/rows?limit=1")).await;
    assert_eq!(answered.0, 200, "{}", answered.1);
    let (_, metrics) = get(&server.url.replace("/mcp", "/metrics")).await;
    for series in [
        "tidegate_runtime_threads 3",
        r#"tidegate_entry_query_duration_seconds_count{kind="tool",name="query"} 1"#,
        r#"tidegate_http_requests_total{path="/rest/databases/{database}/tables/{table}/rows",status="200"} 1"#,
    ] {
        assert!(metrics.contains(series), "{series}\n{metrics}");
    }
    for threads in ["0", "1025"] {
        configured.write(&format!("server: {{threads: {threads}}}\n"));
        let refused = configured.usage_error(&["config", "check"]);
        assert!(refused.contains("tidegate.yaml:1:10: server.threads: must be from 1 to 1024"), "{refused}");
    }
}
