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
    let call = async |tool: &'static str, arguments: serde_json::Value| {
        let call = CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
        client.call_tool(call).await.unwrap().content[0].as_text().unwrap().text.clone()
    };
    let logs = call("list_logs_sources", json!({"format": "csv"})).await;
    let names: Vec<&str> = logs.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(names, ["shop_access", "shop_app"], "{logs}");
    let listed: serde_json::Value = serde_json::from_str(&call("list_metrics", json!({})).await).unwrap();
    let metric = |index: usize| (listed["metrics"][index]["name"].as_str(), listed["metrics"][index]["unit"].as_str());
    let expected =
        [("checkout_duration", "ms"), ("http_requests_total", "requests"), ("pool_connections_max", "connections")];
    for (index, (name, unit)) in expected.into_iter().enumerate() {
        assert_eq!(metric(index), (Some(name), Some(unit)), "{listed}");
    }
    // The metrics show the fault of the logs.
    let around = json!({"after": "2026-03-14T15:02:00Z", "before": "2026-03-14T15:31:00Z"});
    let compared: serde_json::Value = serde_json::from_str(&call("compare_metrics", around).await).unwrap();
    let changed: Vec<&str> = compared["changed"]
        .as_array()
        .unwrap()
        .iter()
        .take(2)
        .map(|series| series["metric"].as_str().unwrap())
        .collect();
    assert!(["checkout_duration", "pool_connections_max"].iter().all(|metric| changed.contains(metric)), "{compared}");
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
