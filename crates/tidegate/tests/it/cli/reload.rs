//! A configuration that changes while the node serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::CallToolRequestParams;
use rmcp::service::NotificationContext;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use tokio::sync::Notify;

use super::server::{Server, wait_until};
use super::{ConfiguredFolder, tidegate};

const INITIAL_CONFIGURATION: &str = "databases: [{name: shop, files: shop}]\nbuilt_in: []\n";
const COUNT: &str = "{name: count, description: C, sql: SELECT count(*) AS n FROM orders}";

#[tokio::test(flavor = "multi_thread")]
async fn applies_valid_and_keeps_on_invalid_configuration() {
    let configured = ConfiguredFolder::new(INITIAL_CONFIGURATION);
    let server = Server::start(tidegate().current_dir(configured.folder()).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "error",
    ]));
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let names = async || {
        let tools = client.list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name.into_owned()).collect::<Vec<_>>()
    };
    assert!(names().await.is_empty());
    let after = format!("{INITIAL_CONFIGURATION}tools: [{COUNT}]\n");
    configured.write(&after);
    wait_until(async || names().await == ["count"]).await;
    configured.write("databases: [{name: shop, files: nowhere}]\n");
    configured.write(&after.replace("count(*)", "nothing(*)"));
    server.signal("HUP");
    assert_eq!(names().await, ["count"]);
    configured.write(INITIAL_CONFIGURATION);
    wait_until(async || names().await.is_empty()).await;
    client.cancel().await.unwrap();
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
}

/// Receives the notification that the list of tools changed.
struct ToolListListener(Arc<Notify>);

impl ClientHandler for ToolListListener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.notify_one();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_under_load_drops_no_call() {
    let configuration = |name: &str| {
        format!(
            "{INITIAL_CONFIGURATION}tools:\n  - {COUNT}\n  - {{name: {name}, description: D, sql: SELECT 1 AS one}}\n"
        )
    };
    let configured = ConfiguredFolder::new(&configuration("first"));
    let server = Server::start(tidegate().current_dir(configured.folder()).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "error",
    ]));
    let changed = Arc::new(Notify::new());
    let transport = StreamableHttpClientTransport::from_uri(server.url.as_str());
    let client = ToolListListener(changed.clone()).serve(transport).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let callers = (0..4).map(|_| {
        let (peer, is_over) = (client.peer().clone(), is_over.clone());
        tokio::spawn(async move {
            let mut calls = 0;
            while !is_over.load(Ordering::Relaxed) {
                let answer = peer.call_tool(CallToolRequestParams::new("count")).await.unwrap();
                assert_eq!(answer.content[0].as_text().unwrap().text, r#"[{"n":3}]"#);
                calls += 1;
            }
            calls
        })
    });
    let callers: Vec<_> = callers.collect();
    for name in ["second", "third", "fourth"] {
        configured.write(&configuration(name));
        loop {
            changed.notified().await;
            let tools = client.list_all_tools().await.unwrap();
            if tools.iter().any(|tool| tool.name == name) {
                break;
            }
        }
    }
    is_over.store(true, Ordering::Relaxed);
    for caller in callers {
        assert!(caller.await.unwrap() > 0);
    }
    client.cancel().await.unwrap();
}

/// Writes into the configuration's folder until it is dropped, as a log would.
struct BackgroundWriter(Arc<AtomicBool>);

impl BackgroundWriter {
    fn in_folder(folder: &std::path::Path) -> Self {
        let (is_over, file) = (Arc::new(AtomicBool::new(false)), folder.join("log"));
        let over = is_over.clone();
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) && std::fs::write(&file, "line").is_ok() {
                // Simulates the pace of a log.
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        Self(is_over)
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_works_in_a_busy_folder() {
    let configured = ConfiguredFolder::new(&format!("{INITIAL_CONFIGURATION}tools: [{COUNT}]\n"));
    let _noise = BackgroundWriter::in_folder(configured.folder());
    let server = serve(&configured);
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    configured.write(INITIAL_CONFIGURATION);
    wait_until(async || client.list_all_tools().await.unwrap().is_empty()).await;
    let version = || async {
        let metrics = reqwest::get(server.url.replace("/mcp", "/metrics")).await.unwrap().text().await.unwrap();
        metrics.lines().find(|line| line.starts_with("tidegate_registry_version")).unwrap().to_owned()
    };
    let before = version().await;
    server.signal("HUP");
    wait_until(async || version().await != before).await;
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_variables_are_watched() {
    let elsewhere = tempfile::tempdir().unwrap();
    let words = elsewhere.path().join("words");
    std::fs::write(&words, "before").unwrap();
    let tool = format!("{{name: one, description: '${{file:{}}}', sql: SELECT 1 AS one}}", words.display());
    let configured = ConfiguredFolder::new(&format!("{INITIAL_CONFIGURATION}tools: [{tool}]\n"));
    let server = serve(&configured);
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let says = async |words: &str| {
        let tools = client.list_all_tools().await.unwrap();
        tools.iter().any(|tool| tool.description.as_deref() == Some(words))
    };
    assert!(says("before").await);
    std::fs::write(&words, "after").unwrap();
    wait_until(async || says("after").await).await;
    client.cancel().await.unwrap();
}

fn serve(configured: &ConfiguredFolder) -> Server {
    Server::start(tidegate().current_dir(configured.folder()).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "error",
    ]))
}
