//! How long clients may cache lists and answers, as they read it over MCP and over REST.

use reqwest::{Client, Response};
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::Server;

const CONFIGURATION: &str = "
server: {list_cache: {ttl: 5m, public: false}}
databases: [{name: shop, files: shop}]
tools:
  - {name: shared, description: S, sql: SELECT id FROM orders ORDER BY id, cache: {ttl: 90s, public: true}}
  - {name: own, description: O, sql: SELECT id FROM orders ORDER BY id DESC, cache: {ttl: 30s}}
  - {name: uncached, description: U, sql: SELECT 1 AS one}
results: {folder: spool, keep_free: 0B}
";

async fn list(server: &Server) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let request = Client::new().post(&server.url).header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/list");
    let answer: Value = request.json(&message).send().await.unwrap().json().await.unwrap();
    answer["result"].clone()
}

async fn call(server: &Server, tool: &str, arguments: Value) -> Response {
    let url = server.url.replace("/mcp", &format!("/rest/tools/{tool}/call"));
    Client::new().post(url).json(&arguments).send().await.unwrap()
}

/// The status, and the headers about caches.
async fn cache_headers(server: &Server, tool: &str, arguments: Value) -> (u16, String, Option<u64>) {
    let response = call(server, tool, arguments).await;
    let text = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), text("cache-control").unwrap(), text("age").map(|age| age.parse().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_answers_state_how_long_they_are_valid() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    let tools = list(&server).await;
    assert_eq!((&tools["ttlMs"], &tools["cacheScope"]), (&json!(300_000), &json!("private")));

    assert_eq!(cache_headers(&server, "shared", json!({})).await, (200, "public, max-age=90".to_owned(), Some(0)));
    assert_eq!(cache_headers(&server, "own", json!({})).await, (200, "private, max-age=30".to_owned(), Some(0)));
    assert_eq!(cache_headers(&server, "uncached", json!({})).await, (200, "no-store".to_owned(), None));
    let refused = cache_headers(&server, "own", json!({"unknown": 1})).await;
    assert_eq!((refused.1.as_str(), refused.2), ("no-store", None));
}

#[test]
fn shared_caches_contradict_authentication() {
    let private = CONFIGURATION.replace("public: false}}", "public: true}}");
    let configured = ConfiguredFolder::new(&format!("{private}auth: {{keys: keys.json}}\n"));
    let ran = configured.run(&["config", "check"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("server.list_cache.public"), "{ran:?}");
}
