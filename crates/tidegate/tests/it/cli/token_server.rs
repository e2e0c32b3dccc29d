//! A server with two callers, who call its tools over REST and MCP.

use std::path::Path;

use reqwest::Client;
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::Server;

/// A server whose roles `admin` and `clerk` are those of the groups `admins` and `clerks`, with a token for each.
pub(super) struct TokenServer {
    pub(super) server: Server,
    pub(super) client: Client,
    pub(super) admin: String,
    pub(super) clerk: String,
    pub(super) configured: ConfiguredFolder,
}

pub(super) fn token(configured: &ConfiguredFolder, subject: &str, group: &str) -> String {
    let claim = format!("groups={group}");
    let ran = configured.run(&["token", "new", "--subject", subject, "--claim", &claim]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.trim().to_owned()
}

impl TokenServer {
    /// Starts a server with `configuration` in a folder that `prepare` may change.
    pub(super) fn start(configuration: &str, prepare: impl FnOnce(&Path)) -> Self {
        let configured = ConfiguredFolder::new("");
        prepare(configured.folder());
        let ran = configured.run(&["token", "key"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        configured.write(&format!("{configuration}{}", ran.stdout));
        let (admin, clerk) = (token(&configured, "ann", "admins"), token(&configured, "ann", "clerks"));
        Self { server: serve(&configured), client: Client::new(), admin, clerk, configured }
    }

    /// The text that a tool answers over REST.
    pub(super) async fn call(&self, token: &str, tool: &str, arguments: Value) -> String {
        let url = self.server.url.replace("/mcp", &format!("/rest/tools/{tool}/call"));
        let request = self.client.post(url).bearer_auth(token).json(&arguments);
        let text = request.header("accept", "text/csv").send().await.unwrap().text().await.unwrap();
        text.replace('\r', "")
    }

    pub(super) async fn sql(&self, token: &str, database: &str, sql: &str) -> String {
        self.call(token, "sql", json!({"database": database, "sql": sql})).await
    }

    /// The text of a tool over MCP, where answers have a budget.
    pub(super) async fn call_as_model(&self, token: &str, tool: &str, arguments: Value) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let request = self.client.post(&self.server.url).bearer_auth(token);
        let request = request
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", tool)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
        content.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// The message of a problem document.
pub(super) fn detail(problem: &str) -> String {
    let problem: Value = serde_json::from_str(problem).unwrap_or_else(|_| panic!("{problem}"));
    problem["detail"].as_str().unwrap().to_owned()
}
