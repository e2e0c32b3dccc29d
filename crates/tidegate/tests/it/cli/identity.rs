//! Keys over HTTP: who shows one reaches what its roles say, and who shows none learns nothing.

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use super::results::ENDLESS_QUERY;
use super::server::{Server, wait_until};
use super::{ConfiguredFolder, tidegate};

const CONFIGURATION: &str = r"
databases: [{name: shop, files: shop}, {name: other, files: shop}]
tools:
  - {name: orders_all, description: O, database: shop, sql: SELECT id FROM orders ORDER BY id}
toolsets: {orders: [orders_*]}
roles:
  - {name: clerk, toolsets: [orders]}
  - {name: analyst, toolsets: ['*'], databases: [shop]}
auth: {keys: keys.json}
";

struct Node {
    server: Server,
    configured: ConfiguredFolder,
}

impl Node {
    fn start() -> Self {
        Self::with_folder(ConfiguredFolder::new(CONFIGURATION))
    }

    fn with_folder(configured: ConfiguredFolder) -> Self {
        let server = Server::start(tidegate().current_dir(configured.folder()).args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "off",
        ]));
        Self { server, configured }
    }

    /// Waits until the node lets nobody in who shows `key`.
    async fn wait_until_refused(&self, key: Option<&str>) {
        wait_until(async || self.request("", key, "tools/list", json!({})).await.0 == StatusCode::UNAUTHORIZED).await;
    }

    /// A new key, which the running node knows as soon as it answers to it.
    async fn key(&self, name: &str, role: &str) -> String {
        let ran = self.configured.run(&["key", "add", name, "--role", role]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let key = ran.stdout.trim().to_owned();
        wait_until(async || self.request("", Some(&key), "tools/list", json!({})).await.0 == StatusCode::OK).await;
        key
    }

    async fn request(&self, path: &str, key: Option<&str>, method: &str, mut params: Value) -> (StatusCode, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let mut request = Client::new()
            .post(format!("{}{path}", self.server.url))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            let challenge = response.headers()["www-authenticate"].to_str().unwrap();
            assert!(challenge.starts_with("Bearer realm=\"tidegate\""), "{challenge}");
        }
        (status, response.json().await.unwrap())
    }

    /// An answer without an end, which has begun.
    async fn endless(&self, key: &str) -> Response {
        let question = json!({"database": "shop", "sql": ENDLESS_QUERY, "max_rows": 1_000_000_000_000_u64});
        let request = Client::new().post(self.server.url.replace("/mcp", "/rest/sql")).bearer_auth(key);
        send_until_first_chunk(request.header("accept", "application/x-ndjson").json(&question)).await
    }

    /// The same as a stored result that is still written, by its link alone.
    async fn endless_by_link(&self, key: &str) -> Response {
        let question = json!({"database": "shop", "sql": ENDLESS_QUERY, "delivery": "blocks"});
        let request = Client::new().post(self.server.url.replace("/mcp", "/rest/sql")).bearer_auth(key);
        let answer: Value = request.json(&question).send().await.unwrap().json().await.unwrap();
        let link = answer["structured"]["links"]["data"].as_str().unwrap();
        send_until_first_chunk(Client::new().get(self.server.url.replace("/mcp", &format!("{link}&format=ndjson"))))
            .await
    }

    async fn tools(&self, path: &str, key: &str) -> Vec<String> {
        let (_, answer) = self.request(path, Some(key), "tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn call(&self, key: &str, tool: &str, arguments: Value) -> String {
        let (_, answer) =
            self.request("", Some(key), "tools/call", json!({"name": tool, "arguments": arguments})).await;
        let text = answer["result"]["content"][0]["text"].as_str().or(answer["error"]["message"].as_str());
        text.unwrap().to_owned()
    }
}

/// An answer, when its first bytes are there.
async fn send_until_first_chunk(request: RequestBuilder) -> Response {
    let mut response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.chunk().await.unwrap().is_some());
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_requests_reveal_nothing() {
    let node = Node::start();
    let key = node.key("ann", "clerk").await;
    let refused = |key: Option<String>| {
        let node = &node;
        async move { node.request("", key.as_deref(), "tools/list", json!({})).await }
    };
    let (status, missing) = refused(None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    insta::assert_snapshot!(missing["error"]["message"], @r#""authentication is required: send Authorization: Bearer with an API key or a token""#);
    let unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJleHAiOjk5OTk5OTk5OTl9.";
    let wrong = [format!("{key}x"), key[..20].to_owned(), "tg_".to_owned(), "garbage".to_owned(), unsigned.to_owned()];
    let mut answers = Vec::new();
    for wrong in wrong {
        let (status, answer) = refused(Some(wrong)).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        answers.push(answer);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    for path in ["/metrics", "/mcp/orders", "/mcp/nothing"] {
        let url = node.server.url.replace("/mcp", path);
        assert_eq!(reqwest::get(url).await.unwrap().status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    let health = reqwest::get(node.server.url.replace("/mcp", "/health")).await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_grant_their_roles() {
    let node = Node::start();
    let (clerk, analyst) = (node.key("ann", "clerk").await, node.key("bob", "analyst").await);
    assert_eq!(node.tools("", &clerk).await, ["orders_all"]);
    assert!(node.tools("", &analyst).await.contains(&"sql".to_owned()));
    assert_eq!(node.tools("/orders", &analyst).await, ["orders_all"]);
    assert_eq!(node.tools("/discover", &analyst).await, ["find_tool", "call_tool"]);
    assert_eq!(node.call(&clerk, "orders_all", json!({})).await, r#"[{"id":1},{"id":2},{"id":3}]"#);
    let hidden = node.call(&clerk, "sql", json!({"sql": "SELECT 1"})).await;
    assert_eq!(hidden, "there is no tool \"sql\"");
    assert_eq!(
        node.call(&analyst, "sql", json!({"sql": "SELECT 1 AS one"})).await,
        r#"[{"one":1}]"#,
        "of the only database"
    );
    let other = node.call(&analyst, "sql", json!({"database": "other", "sql": "SELECT 1"})).await;
    let absent = node.call(&analyst, "sql", json!({"database": "absen", "sql": "SELECT 1"})).await;
    assert_eq!(other.replace("other", "absen"), absent, "hidden or absent, the answer is the same");
    let databases = node.call(&analyst, "list_databases", json!({"extract": "name"})).await;
    assert_eq!(databases, r#"["shop"]"#);
    let of_hidden = node.request("/discover", Some(&clerk), "tools/list", json!({})).await;
    let of_absent = node.request("/discovex", Some(&clerk), "tools/list", json!({})).await;
    assert_eq!((of_hidden.0, of_absent.0), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_key_is_rejected_immediately() {
    let node = Node::start();
    let key = node.key("ann", "clerk").await;
    let ran = node.configured.run(&["key", "revoke", "ann"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    node.wait_until_refused(Some(&key)).await;
    assert!(node.configured.run(&["key", "list"]).stdout.contains("revoked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_key_terminates_only_its_responses() {
    let further = "limits: {timeout: 1h}\nresults: {folder: spool, keep_free: 0B}\n";
    let node = Node::with_folder(ConfiguredFolder::new(&format!("{CONFIGURATION}{further}")));
    let (ann, bob) = (node.key("ann", "analyst").await, node.key("bob", "analyst").await);
    let mut hers = node.endless(&ann).await;
    let with_his_key = [node.endless(&bob).await, node.endless_by_link(&bob).await];
    let ran = node.configured.run(&["key", "revoke", "bob"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for mut his in with_his_key {
        let received_all = async {
            while let Ok(piece) = his.chunk().await {
                assert!(piece.is_some(), "a part is taken for the whole");
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), received_all).await.expect("it is told more and more");
    }
    // More than was on its way already.
    let mut bytes = 0;
    while bytes < 16 * 1024 * 1024 {
        bytes += hers.chunk().await.unwrap().unwrap().len();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_toolset_respects_grants() {
    let node = Node::start();
    let analyst = node.key("bob", "analyst").await;
    let ask = async |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        node.request("/discover", Some(&analyst), "tools/call", params).await.1["result"]["content"][0]["text"].clone()
    };
    let found: Value =
        serde_json::from_str(ask("find_tool", json!({"words": "orders"})).await.as_str().unwrap()).unwrap();
    assert_eq!(found["tools"][0]["name"], "orders_all");
    let called = ask("call_tool", json!({"name": "orders_all"})).await;
    assert_eq!(called, r#"[{"id":1},{"id":2},{"id":3}]"#);
    let refused = ask("call_tool", json!({"name": "orders_al"})).await;
    assert!(refused.as_str().unwrap().contains("there is no tool"), "{refused}");
}

#[test]
fn authenticated_server_may_listen_on_all_interfaces() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = Server::start(tidegate().current_dir(configured.folder()).args([
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--log",
        "warn",
    ]));
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn revocation_works_with_invalid_configuration() {
    let node = Node::start();
    let (ann, bob) = (node.key("ann", "clerk").await, node.key("bob", "clerk").await);
    for broken in ["tools: [", &CONFIGURATION.replace("files: shop", "files: nowhere")] {
        node.configured.write(broken);
        let (status, _) = node.request("", Some(&bob), "tools/list", json!({})).await;
        assert_eq!(status, StatusCode::OK, "what was entered last holds");
        let key = if broken == "tools: [" { ("ann", &ann) } else { ("bob", &bob) };
        let ran = node.configured.run(&["key", "revoke", key.0, "--file", "keys.json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        node.wait_until_refused(Some(key.1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revocation_invalidates_links_with_invalid_configuration() {
    let further = "limits: {timeout: 1h}\nresults: {folder: spool, keep_free: 0B}\n";
    let whole = format!("{CONFIGURATION}{further}");
    let node = Node::with_folder(ConfiguredFolder::new(&whole));
    // Written first, so that between the link and the end of its key nothing is read again.
    node.configured.write(&whole.replace("files: shop", "files: nowhere"));
    let bob = node.key("bob", "analyst").await;
    let mut streaming = node.endless_by_link(&bob).await;
    let link = streaming.url().clone();
    let ran = node.configured.run(&["key", "revoke", "bob", "--file", "keys.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    node.wait_until_refused(Some(&bob)).await;
    assert_eq!(reqwest::get(link).await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let received_all = async {
        while let Ok(piece) = streaming.chunk().await {
            assert!(piece.is_some(), "a part is taken for the whole");
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), received_all).await.expect("it is told more and more");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_key_file_rejects_all_keys() {
    let node = Node::start();
    let key = node.key("ann", "clerk").await;
    let file = node.configured.folder().join("keys.json");
    let keys = std::fs::read(&file).unwrap();
    std::fs::write(&file, "{").unwrap();
    node.wait_until_refused(Some(&key)).await;
    std::fs::write(&file, keys).unwrap();
    wait_until(async || node.request("", Some(&key), "tools/list", json!({})).await.0 == StatusCode::OK).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn symlinked_key_file_is_watched() {
    let elsewhere = tempfile::tempdir().unwrap();
    let configured = ConfiguredFolder::new(CONFIGURATION);
    std::os::unix::fs::symlink(elsewhere.path().join("held.json"), configured.folder().join("keys.json")).unwrap();
    std::fs::write(elsewhere.path().join("held.json"), r#"{"version": 1, "keys": []}"#).unwrap();
    let node = Node::with_folder(configured);
    let key = node.key("ann", "clerk").await;
    let ran = node.configured.run(&["key", "revoke", "ann"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    node.wait_until_refused(Some(&key)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_auth_rejects_everyone() {
    let role = "databases: [{name: shop, files: shop}]\nroles: [{name: all, toolsets: ['*']}]\n";
    for auth in ["auth: {local: [all]}", "auth: {anonymous: []}", "auth: {keys: }", "auth:", "auth: {}"] {
        let node = Node::with_folder(ConfiguredFolder::new(&format!("{role}{auth}\n")));
        let (status, _) = node.request("", None, "tools/list", json!({})).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{auth}");
    }
    let node = Node::with_folder(ConfiguredFolder::new(role));
    assert_eq!(node.request("", None, "tools/list", json!({})).await.0, StatusCode::OK, "nothing is said of auth");
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_cannot_remove_authentication() {
    let node = Node::start();
    let key = node.key("ann", "clerk").await;
    let open = CONFIGURATION.replace("auth: {keys: keys.json}", "").replace("description: O", "description: P");
    node.configured.write(&open);
    // The change after it is entered, so that this one was looked at and refused.
    let mut entered = false;
    while !entered {
        assert_eq!(node.request("", None, "tools/list", json!({})).await.0, StatusCode::UNAUTHORIZED);
        node.configured.write(&CONFIGURATION.replace("description: O", "description: Q"));
        let (_, answer) = node.request("", Some(&key), "tools/list", json!({})).await;
        let description = answer["result"]["tools"][0]["description"].as_str().unwrap().to_owned();
        assert_ne!(description, "P");
        entered = description == "Q";
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
