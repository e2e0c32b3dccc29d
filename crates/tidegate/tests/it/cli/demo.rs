//! `tidegate demo`.

use std::path::PathBuf;

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::json;

use super::server::{Server, wait_until};
use super::tidegate;

#[tokio::test(flavor = "multi_thread")]
async fn demo_serves_prints_help_and_cleans_up() {
    let temporary = tempfile::tempdir().unwrap();
    let server = Server::start(
        tidegate().args(["demo", "--listen", "127.0.0.1:0", "--log", "warn"]).env("TMPDIR", temporary.path()),
    );
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let sql = "SELECT a.name, count(*) AS flights FROM flights f JOIN airlines a USING (carrier) \
               GROUP BY a.name ORDER BY flights DESC LIMIT 1";
    let arguments = json!({"sql": sql, "format": "csv"}).as_object().unwrap().clone();
    let answer = client.call_tool(CallToolRequestParams::new("sql").with_arguments(arguments)).await.unwrap();
    let text = &answer.content[0].as_text().unwrap().text;
    assert_eq!(text.lines().collect::<Vec<_>>(), ["name,flights", "United Air Lines Inc.,58665"]);
    client.cancel().await.unwrap();
    let folders = || -> Vec<PathBuf> {
        std::fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    assert!(folders().iter().any(|folder| folder.join("flights.parquet").exists()));
    let url = server.url.clone();
    server.signal("TERM");
    let (status, output) = server.wait_for_exit();
    assert_eq!(status.code(), Some(0));
    assert!(output.contains("\"mcpServers\"") && output.contains(&url), "{output}");
    assert_eq!(folders(), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn live_rows_arrive_while_they_are_counted() {
    let temporary = tempfile::tempdir().unwrap();
    let arguments = ["demo", "--live", "--listen", "127.0.0.1:0", "--log", "warn"];
    let server = Server::start(tidegate().args(arguments).env("TMPDIR", temporary.path()));
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let count = async || {
        let arguments = json!({"database": "live", "sql": "SELECT count(*) FROM readings", "format": "csv"});
        let call = CallToolRequestParams::new("sql").with_arguments(arguments.as_object().unwrap().clone());
        let answer = client.call_tool(call).await.unwrap();
        answer.content[0].as_text().unwrap().text.lines().nth(1).and_then(|line| line.parse::<u64>().ok()).unwrap_or(0)
    };
    wait_until(async || count().await > 0).await;
    let first = count().await;
    wait_until(async || count().await > first).await;
    client.cancel().await.unwrap();
    server.signal("TERM");
    let (status, output) = server.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("How many readings"), "{output}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}
