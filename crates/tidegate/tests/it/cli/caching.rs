//! How long clients may cache lists and answers, as they read it over MCP and over REST.

use std::fs::File;
use std::time::{Duration, Instant, SystemTime};

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
  - {name: slow, description: S, sql: 'SELECT count(*) AS n FROM orders, generate_series(1, 5000000) s', cache: {ttl: 60s}}
results: {folder: spool, keep_free: 0B}
";

async fn request_over_mcp(server: &Server, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = Client::new().post(&server.url).header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
    let request = params["name"].as_str().into_iter().fold(request, |request, name| request.header("mcp-name", name));
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
    let tools = request_over_mcp(&server, "tools/list", json!({})).await;
    assert_eq!((&tools["ttlMs"], &tools["cacheScope"]), (&json!(300_000), &json!("private")));

    assert_eq!(cache_headers(&server, "shared", json!({})).await, (200, "public, max-age=90".to_owned(), Some(0)));
    assert_eq!(cache_headers(&server, "own", json!({})).await, (200, "private, max-age=30".to_owned(), Some(0)));
    assert_eq!(cache_headers(&server, "uncached", json!({})).await, (200, "no-store".to_owned(), None));
    let refused = cache_headers(&server, "own", json!({"unknown": 1})).await;
    assert_eq!((refused.1.as_str(), refused.2), ("no-store", None));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_state_which_answers_have_pages_stream_and_may_be_cached() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    let over_mcp = request_over_mcp(&server, "tools/list", json!({})).await;
    let get = async |path: &str| -> Value {
        let url = server.url.replace("/mcp", path);
        Client::new().get(url).send().await.unwrap().json().await.unwrap()
    };
    let over_rest = get("/rest/tools").await;
    let pages_of_rows = json!({"dev.tidegate/supports_pagination": true, "dev.tidegate/supports_streaming": true});
    let mut cached = pages_of_rows.clone();
    cached["dev.tidegate/cache"] = json!({"ttlMs": 90_000, "public": true});
    for list in [&over_mcp, &over_rest] {
        let tools = list["tools"].as_array().unwrap();
        let metadata = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["_meta"].clone();
        for name in ["query", "sql", "uncached"] {
            assert_eq!(metadata(name), pages_of_rows, "{name}");
        }
        assert_eq!(metadata("shared"), cached);
        assert_eq!(metadata("list_tables"), Value::Null);
    }
    let document = get("/rest/openapi.json").await;
    let of_operation = |path: &str| document["paths"][path]["post"]["x-tidegate"].clone();
    let expected = json!({"supports_pagination": true, "supports_streaming": true, "cache_seconds": 90});
    assert_eq!(of_operation("/rest/tools/shared/call"), expected);
    let expected = json!({"supports_pagination": false, "supports_streaming": false, "cache_seconds": 0});
    assert_eq!(of_operation("/rest/tools/list_tables/call"), expected);
}

/// Answers over MCP are stored; one over REST then has the rows of the stored one, and their age.
#[tokio::test(flavor = "multi_thread")]
async fn reused_answer_states_the_age_of_its_rows() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    // A file that has just changed may change again without a new modification time.
    let earlier = SystemTime::now() - Duration::from_secs(60);
    for file in std::fs::read_dir(configured.folder().join("shop")).unwrap() {
        File::options().append(true).open(file.unwrap().path()).unwrap().set_modified(earlier).unwrap();
    }
    let server = serve(&configured);
    let give_up_at = Instant::now() + Duration::from_secs(60);
    loop {
        let first = request_over_mcp(&server, "tools/call", json!({"name": "slow", "arguments": {}})).await;
        assert_eq!(first["isError"], false, "{first}");
        let (status, control, age) = cache_headers(&server, "slow", json!({})).await;
        assert_eq!((status, control.as_str()), (200, "private, max-age=60"));
        if age.unwrap() > 0 {
            break;
        }
        assert!(Instant::now() < give_up_at, "no answer was reused");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn shared_caches_contradict_authentication() {
    let private = CONFIGURATION.replace("public: false}}", "public: true}}");
    let configured = ConfiguredFolder::new(&format!("{private}auth: {{keys: keys.json}}\n"));
    let ran = configured.run(&["config", "check"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("server.list_cache.public"), "{ran:?}");
}
