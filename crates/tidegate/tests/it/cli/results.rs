//! Large answers from end to end: a server, its store, the fetch client, other principals, a kill in the middle.

use std::path::Path;
use std::process::Command;

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use super::postgres::{psql, server as postgres};
use super::server::{Server, wait_until};
use super::{CommandOutput, ConfiguredFolder, tidegate};

const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}]
roles: [{name: analyst, toolsets: ['*'], databases: [shop]}]
auth: {keys: keys.json}
results: {folder: spool, keep_free: 0B}
";
/// 300,000 rows of one column.
pub(super) const LARGE_QUERY: &str =
    "SELECT a.id * 1000000 + g.value AS n FROM orders a CROSS JOIN generate_series(1, 100000) AS g(value)";
/// More rows than anybody waits for.
pub(super) const ENDLESS_QUERY: &str =
    "SELECT a.id + g.value AS n FROM orders a CROSS JOIN generate_series(1, 100000000000) AS g(value)";

pub(super) struct Node {
    server: Server,
    configured: ConfiguredFolder,
    ann: String,
    bob: String,
}

impl Node {
    pub(super) fn start() -> Self {
        Self::with_configuration(CONFIGURATION)
    }

    fn with_configuration(configuration: &str) -> Self {
        let configured = ConfiguredFolder::new(configuration);
        let key = |name: &str| {
            let ran = configured.run(&["key", "add", name, "--role", "analyst"]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.stdout.trim().to_owned()
        };
        let (ann, bob) = (key("ann"), key("bob"));
        let server = serve(configured.folder());
        Self { server, configured, ann, bob }
    }

    fn origin(&self) -> &str {
        self.server.url.trim_end_matches("/mcp")
    }

    async fn get(&self, path: &str, key: Option<&str>) -> Response {
        let request = Client::new().get(format!("{}{path}", self.origin()));
        let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
        request.send().await.unwrap()
    }

    /// Asks as Ann.
    async fn run_sql(&self, arguments: &Value, accept: &str) -> Response {
        let request = Client::new().post(format!("{}/rest/sql", self.origin())).bearer_auth(&self.ann).json(arguments);
        let response = request.header("accept", accept).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response
    }

    /// Begins an export of `sql` as Ann and gives its manifest.
    async fn export(&self, sql: &str) -> Value {
        let response = self.run_sql(&json!({"sql": sql, "delivery": "blocks"}), "application/json").await;
        response.json::<Value>().await.unwrap()["structured"].clone()
    }

    /// The manifest when nothing is written any more.
    async fn wait_until_ended(&self, id: &str) -> Value {
        loop {
            let manifest: Value = self.get(&format!("/results/{id}"), Some(&self.ann)).await.json().await.unwrap();
            if manifest["status"] != "running" {
                return manifest;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// One page over MCP as Ann: its values of `n`, and the cursor of the next one.
    async fn page(&self, sql: &str, cursor: Option<String>) -> (Vec<u64>, Option<String>) {
        let mut arguments = json!({"sql": sql, "max_rows": 100_000});
        if let Some(cursor) = cursor {
            arguments["cursor"] = cursor.into();
        }
        let params = json!({"name": "sql", "arguments": arguments});
        let answer = self.mcp("tools/call", "sql", params, json!({})).await;
        let result = &answer["result"];
        let rows: Vec<Value> = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        let cursor = result["_meta"]["dev.tidegate/cursor"].as_str().map(str::to_owned);
        (rows.iter().map(|row| row["n"].as_u64().unwrap()).collect(), cursor)
    }

    /// Asks over MCP of 2026-07-28 as Ann, whose client can do what `capabilities` say.
    pub(super) async fn mcp(&self, method: &str, name: &str, mut params: Value, capabilities: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let request = Client::new()
            .post(&self.server.url)
            .bearer_auth(&self.ann)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Kills the server and starts it again where it was.
    pub(super) fn kill_and_restart(self) -> Self {
        let Self { server, configured, ann, bob } = self;
        server.signal("KILL");
        server.wait_for_exit();
        let server = serve(configured.folder());
        Self { server, configured, ann, bob }
    }

    /// Waits until Ann does not find the result called `id` any more, in no way.
    async fn is_gone(&self, id: &str) {
        let path = format!("/results/{id}");
        wait_until(async || self.get(&path, Some(&self.ann)).await.status() == StatusCode::NOT_FOUND).await;
        for path in ["/blocks/0", "/data"] {
            let answer = self.get(&format!("/results/{id}{path}"), Some(&self.ann)).await;
            assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    fn fetch(&self, id: &str, file: &str, more: &[&str]) -> CommandOutput {
        let url = format!("{}/results/{id}", self.origin());
        self.configured.run(&[&["fetch", &url, "-o", file, "--bearer", &self.ann, "--quiet"], more].concat())
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.configured.folder().join(file)).unwrap()
    }
}

fn serve(folder: &Path) -> Server {
    let mut command: Command = tidegate();
    Server::start(command.current_dir(folder).args(["serve", "--listen", "127.0.0.1:0", "--log", "off"]))
}

#[tokio::test]
async fn fetched_blocks_equal_the_download() {
    let node = Node::start();
    let id = node.export(LARGE_QUERY).await["id"].as_str().unwrap().to_owned();
    let ran = node.fetch(&id, "fetched.csv", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let whole = node.get(&format!("/results/{id}/data?format=csv"), Some(&node.ann)).await.text().await.unwrap();
    assert_eq!(whole.lines().count(), 300_001);
    assert!(node.read("fetched.csv") == whole, "the two differ");
}

#[tokio::test]
async fn results_are_private() {
    let node = Node::start();
    let manifest = node.export(LARGE_QUERY).await;
    let id = manifest["id"].as_str().unwrap();
    let absent = "00000000-0000-4000-8000-000000000000";
    for path in ["", "/blocks/0", "/data", "/data?format=parquet", "/blocks/0?format=csv"] {
        let at = |id: &str| format!("/results/{id}{path}");
        let owner = node.get(&at(id), Some(&node.ann)).await;
        assert_eq!(owner.status(), StatusCode::OK, "{path}");
        let strange = node.get(&at(id), Some(&node.bob)).await;
        let nothing = node.get(&at(absent), Some(&node.bob)).await;
        assert_eq!((strange.status(), nothing.status()), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND), "{path}");
        let (strange, nothing) = (strange.text().await.unwrap(), nothing.text().await.unwrap());
        assert_eq!(strange.replace(id, "ID"), nothing.replace(absent, "ID"), "{path}");
        assert_eq!(node.get(&at(id), None).await.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    // Anyone with the link can read this one result.
    let link = manifest["links"]["data"].as_str().unwrap();
    assert_eq!(node.get(&format!("{link}&format=ndjson"), None).await.status(), StatusCode::OK);
    assert_eq!(node.get(&link.replace(id, absent), None).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn revoked_access_hides_stored_results() {
    let node = Node::start();
    let id = node.export(LARGE_QUERY).await["id"].as_str().unwrap().to_owned();
    node.wait_until_ended(&id).await;
    let other = CONFIGURATION
        .replace(
            "databases: [{name: shop, files: shop}]",
            "databases: [{name: shop, files: shop}, {name: other, files: shop}]",
        )
        .replace("databases: [shop]}", "databases: [other]}");
    node.configured.write(&other);
    node.is_gone(&id).await;
}

#[tokio::test]
async fn changed_row_policy_hides_stored_results() {
    let of = |condition: &str| {
        let policies = format!("[{{table: orders, rows: '{condition}'}}]");
        let databases = format!("databases: [{{name: shop, files: shop, policies: {policies}}}]");
        CONFIGURATION.replace("databases: [{name: shop, files: shop}]", &databases)
    };
    let node = Node::with_configuration(&of("id < 3"));
    let id = node.export(LARGE_QUERY).await["id"].as_str().unwrap().to_owned();
    assert_eq!(node.wait_until_ended(&id).await["rows"], 200_000);
    node.configured.write(&of("id < 2"));
    node.is_gone(&id).await;
    let retried = node.export(LARGE_QUERY).await["id"].as_str().unwrap().to_owned();
    assert_ne!(retried, id, "an earlier answer is not given again");
    assert_eq!(node.wait_until_ended(&retried).await["rows"], 100_000);
}

#[tokio::test]
async fn killed_server_leaves_incomplete_result() {
    let node = Node::start();
    let id = node.export(ENDLESS_QUERY).await["id"].as_str().unwrap().to_owned();
    let node = node.kill_and_restart();
    let manifest: Value = node.get(&format!("/results/{id}"), Some(&node.ann)).await.json().await.unwrap();
    assert_eq!(manifest["status"], "incomplete");
    let rows = usize::try_from(manifest["rows"].as_u64().unwrap()).unwrap();
    let refused = node.get(&format!("/results/{id}/data"), Some(&node.ann)).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let ran = node.fetch(&id, "part.csv", &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!node.configured.folder().join("part.csv").exists());
    let ran = node.fetch(&id, "part.csv", &["--partial"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(node.read("part.csv").lines().count(), rows + 1);
}

#[tokio::test]
async fn postgres_pages_share_a_snapshot_and_cache_is_opt_in() {
    let name = format!("stored_{}", std::process::id());
    psql("postgres", &format!("CREATE DATABASE {name}"));
    psql(&name, "CREATE TABLE numbers AS SELECT n, repeat('x', 20) AS filler FROM generate_series(1, 20000) n");
    let target = format!("{} dbname={name}", postgres());
    let databases = format!("databases: [{{name: shop, postgres: '{target}', cache: 1h}}]");
    let node = Node::with_configuration(&CONFIGURATION.replace("databases: [{name: shop, files: shop}]", &databases));
    let sql = "SELECT n, filler FROM numbers ORDER BY n";
    let id = node.export(sql).await["id"].as_str().unwrap().to_owned();
    assert_eq!(node.wait_until_ended(&id).await["rows"], 20_000);
    psql(&name, "DELETE FROM numbers WHERE n % 2 = 0");

    let retried = node.export(sql).await;
    assert_eq!(retried["id"], id.as_str(), "no query was run");
    let anew = json!({"sql": sql, "delivery": "blocks", "no_cache": true});
    let anew: Value = node.run_sql(&anew, "application/json").await.json().await.unwrap();
    assert_eq!(node.wait_until_ended(anew["structured"]["id"].as_str().unwrap()).await["rows"], 10_000);

    // What is paged through is what there was at the first page.
    let (mut seen, mut cursor) = node.page(sql, None).await;
    psql(&name, "DELETE FROM numbers");
    while let Some(at) = cursor {
        let (numbers, next) = node.page(sql, Some(at)).await;
        seen.extend(numbers);
        cursor = next;
    }
    assert_eq!(seen, (0..10_000).map(|row| 2 * row + 1).collect::<Vec<u64>>());
}
