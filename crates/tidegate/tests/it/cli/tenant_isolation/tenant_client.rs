//! Somebody with a token, by the ways that lead to a node.

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

#[derive(Clone)]
pub(super) struct TenantClient {
    client: Client,
    /// Of MCP.
    url: String,
    token: String,
}

impl TenantClient {
    pub(super) fn new(url: &str, token: &str) -> Self {
        Self { client: Client::new(), url: url.to_owned(), token: token.to_owned() }
    }

    /// The result or the error of a request of 2026-07-28.
    pub(super) async fn mcp(&self, method: &str, name: &str, params: Value) -> Value {
        let knows_tasks = method.starts_with("tasks/");
        result_or_error(self.stateless_request(method, name, params, knows_tasks).send().await.unwrap()).await
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.mcp("tools/call", tool, json!({"name": tool, "arguments": arguments})).await
    }

    /// The rows that a tool answers with.
    pub(super) async fn call_rows(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments).await;
        serde_json::from_str(answer["content"][0]["text"].as_str().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{answer}"))
    }

    /// The number of calls that run or wait, as far as it is visible.
    pub(super) async fn open_calls(&self) -> u64 {
        self.call_rows("node_status", json!({"extract": "open_calls"})).await[0].as_u64().unwrap()
    }

    /// The status of a request without parameters.
    pub(super) async fn status(&self, method: &str) -> StatusCode {
        self.stateless_request(method, "", json!({}), false).send().await.unwrap().status()
    }

    /// An answer over REST whose first rows are there.
    pub(super) async fn start_streaming(&self, sql: &str) -> Response {
        let request = self.client.post(self.url.replace("/mcp", "/rest/sql")).bearer_auth(&self.token);
        let question = json!({"sql": sql, "max_rows": 1_000_000_000});
        let mut response = request.header("accept", "application/x-ndjson").json(&question).send().await.unwrap();
        assert!(response.chunk().await.unwrap().is_some());
        response
    }

    /// The notification about a call that becomes a task.
    pub(super) async fn begin_task(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        result_or_error(self.stateless_request("tools/call", tool, params, true).send().await.unwrap()).await
    }

    /// The acknowledged subscriptions.
    pub(super) async fn subscribe(&self, notifications: Value) -> Value {
        let params = json!({"notifications": notifications});
        let mut stream = self.stateless_request("subscriptions/listen", "", params, true).send().await.unwrap();
        let mut text = String::new();
        while !text.contains("\n\n") {
            let piece = stream.chunk().await.unwrap().unwrap_or_else(|| panic!("it ends: {text}"));
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let message: Value = serde_json::from_str(data).unwrap();
        assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
        message["params"]["notifications"].clone()
    }

    /// Status, head and body of a path beside MCP.
    pub(super) async fn fetch(&self, method: &str, path: &str) -> String {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.client.request(method, self.url.replace("/mcp", path)).bearer_auth(&self.token);
        response_text(request.send().await.unwrap()).await
    }

    /// Status and body of the answer to a body.
    pub(super) async fn send(&self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> (u16, String) {
        let request = self.client.post(self.url.replace("/mcp", path)).bearer_auth(&self.token).body(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// The id of a new session of 2025-11-25.
    pub(super) async fn session(&self) -> String {
        let about = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "neighbours", "version": "1"},
        });
        let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about});
        let response = self.post().json(&begin).send().await.unwrap();
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = self.send_to_session("POST", &session, Some(&begun)).await;
        assert!(answer.starts_with("202"), "{answer}");
        session
    }

    /// Status, head and body of a request to a session.
    pub(super) async fn send_to_session(&self, method: &str, session: &str, message: Option<&Value>) -> String {
        let accept = if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.client.request(method, &self.url).bearer_auth(&self.token).header("accept", accept);
        let request = request.header("mcp-protocol-version", "2025-11-25").header("mcp-session-id", session);
        let request = message.into_iter().fold(request, |request, message| request.json(message));
        response_text(request.send().await.unwrap()).await
    }

    fn post(&self) -> RequestBuilder {
        let request = self.client.post(&self.url).bearer_auth(&self.token);
        request.header("accept", "application/json, text/event-stream")
    }

    fn stateless_request(&self, method: &str, name: &str, mut params: Value, knows_tasks: bool) -> RequestBuilder {
        let extensions = if knows_tasks { json!({"io.modelcontextprotocol/tasks": {}}) } else { json!({}) };
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions},
        });
        self.post()
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }
}

async fn result_or_error(response: Response) -> Value {
    let mut answer: Value = response.json().await.unwrap();
    let member = if answer["error"].is_null() { "result" } else { "error" };
    answer[member].take()
}

/// A response as one text, but for the time and the session.
async fn response_text(response: Response) -> String {
    let status = response.status().as_u16();
    let head = response.headers().iter().filter(|(name, _)| !["date", "mcp-session-id"].contains(&name.as_str()));
    let head: Vec<String> = head.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    let body = response.text().await.unwrap();
    format!("{status}\n{}\n\n{body}", head.join("\n"))
}
