//! The size of answers in events: `server.max_event`.

use reqwest::Client;
use serde_json::json;

use super::ConfiguredFolder;
use super::rmcp_client::serve;

/// An answer with about 1 MB of rows, as an event.
async fn event(limits: &str) -> String {
    let configured = ConfiguredFolder::new(&format!(
        "databases: [{{name: shop, files: shop}}]\nresults: {{folder: spool, keep_free: 0B}}\n{limits}"
    ));
    let server = serve(&configured);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    });
    let sql = "SELECT i, repeat('x', 1000) AS text FROM generate_series(1, 1000) AS s(i) ORDER BY i";
    let params = json!({"name": "sql", "arguments": {"sql": sql, "max_rows": 1000}, "_meta": meta});
    let request = Client::new()
        .post(&server.url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "sql")
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    text.rsplit("data: ").next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_hold_as_much_as_is_configured() {
    let bounded = event("limits: {inline_bytes: 2MB}\n").await;
    assert!(bounded.len() < 600_000 && bounded.contains("dev.tidegate/cursor"), "{}", bounded.len());
    let larger = event("server: {max_event: 2MB}\nlimits: {inline_bytes: 2MB}\n").await;
    assert!(larger.len() > 1_000_000 && !larger.contains("dev.tidegate/cursor"), "{}", larger.len());

    let refused = ConfiguredFolder::new("databases: [{name: shop, files: shop}]\nserver: {max_event: 1KB}\n");
    let ran = refused.run(&["config", "check"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("must be at least 64KiB"), "{ran:?}");
}
