//! Entries that require authentication, and entries that require more scopes of a token: OAuth clients receive a challenge
//! (RFC 6750, 9728) where there is one, and others an error of MCP.

use std::fmt::Write as _;

use insta::assert_snapshot;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use super::postgres::{psql, server as postgres};
use super::server::Server;
use super::{ConfiguredFolder, run, tidegate};

const CONFIGURATION: &str = "
tools: [{name: change, description: C, database: files, sql: SELECT 1 AS one, scopes: ['data:write']}]
roles: [{name: guest, toolsets: ['*'], claims: {groups: guests}}]
";
/// What stands in `auth` beside tokens; callers without any are guests, too.
const WITHOUT_OAUTH: &str = "  anonymous: [guest]\n";
const WITH_OAUTH: &str = "  anonymous: [guest]
  oauth:
    resource: https://data.example.com/mcp
    authorization_servers: [https://login.example.com]
    scopes: ['data:read']
";
/// One handler that asks who calls, which they do unless they say otherwise, and one that does not.
const HANDLERS: &str = r#"
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "greet", "readOnly": true}',
        'BEGIN RETURN api.mcp_structured_result(''{"said": "hello"}'', (request).request_id); END');
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "wave", "readOnly": true, "requiresAuth": false}',
        'BEGIN RETURN api.mcp_structured_result(''{"said": "bye"}'', (request).request_id); END')"#;

/// The answer to a call, over each transport.
const DONE_EVERYWHERE: &str = "2026-07-28 200 done\n2025-11-25 200 done\nREST       200 done\n";

/// A node of a database with handlers.
struct Node {
    server: Server,
    configured: ConfiguredFolder,
}

impl Node {
    fn start(name: &str, auth: &str) -> Self {
        let name = format!("{name}_{}", std::process::id());
        psql("postgres", &format!("CREATE DATABASE {name}"));
        let target = format!("{} dbname={name}", postgres());
        let ran = run(&["pg", "install", &target]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        psql(&name, HANDLERS);
        let configured = ConfiguredFolder::new("");
        let ran = configured.run(&["token", "key"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let databases = format!("[{{name: shop, postgres: '{target}', handlers: api}}, {{name: files, files: shop}}]");
        configured.write(&format!("databases: {databases}{CONFIGURATION}{}{auth}", ran.stdout));
        let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "off"];
        let server = Server::start(tidegate().current_dir(configured.folder()).args(serve));
        Self { server, configured }
    }

    fn token(&self, claims: &[&str]) -> String {
        let claims = claims.iter().flat_map(|claim| ["--claim", *claim]);
        let arguments = ["token", "new", "--subject", "ann"].into_iter().chain(claims).collect::<Vec<_>>();
        let ran = self.configured.run(&arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.trim().to_owned()
    }

    async fn modern(&self, token: Option<&str>, method: &str, tool: &str) -> Response {
        let request = self.post(token).header("mcp-protocol-version", "2026-07-28");
        let request = request.header("mcp-method", method).header("mcp-name", tool);
        let about = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": {}, "_meta": about});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        request.json(&message).send().await.unwrap()
    }

    /// In a session of 2025-11-25.
    async fn legacy(&self, token: Option<&str>, tool: &str) -> Response {
        let about = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "guest", "version": "1"},
        });
        let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about});
        let begun = self.post(token).json(&begin).send().await.unwrap();
        let params = json!({"name": tool, "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let request = self.post(token).header("mcp-session-id", &begun.headers()["mcp-session-id"]);
        request.header("mcp-protocol-version", "2025-11-25").json(&call).send().await.unwrap()
    }

    async fn rest(&self, token: Option<&str>, tool: &str) -> Response {
        let url = self.server.url.replace("/mcp", &format!("/rest/tools/{tool}/call"));
        with_bearer(Client::new().post(url), token).json(&json!({})).send().await.unwrap()
    }

    fn post(&self, token: Option<&str>) -> RequestBuilder {
        let request = Client::new().post(&self.server.url);
        with_bearer(request.header("accept", "application/json, text/event-stream"), token)
    }

    /// What a call of `tool` is answered with, over each of three ways.
    async fn responses_over_each_transport(&self, token: Option<&str>, tool: &str) -> String {
        let mut text = String::new();
        for (way, response) in [
            ("2026-07-28", self.modern(token, "tools/call", tool).await),
            ("2025-11-25", self.legacy(token, tool).await),
            ("REST", self.rest(token, tool).await),
        ] {
            let status = response.status().as_u16();
            let challenge = response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
            let answer: Value = response.json().await.unwrap();
            let message = format!("{way:<10} {status} {} {}", outcome_text(&answer), challenge.unwrap_or_default());
            let _ = writeln!(text, "{}", message.trim_end());
        }
        text
    }
}

fn with_bearer(request: RequestBuilder, token: Option<&str>) -> RequestBuilder {
    token.into_iter().fold(request, |request, token| request.bearer_auth(token))
}

/// What an answer comes to: a code, the sort of a problem, or that it is one.
fn outcome_text(answer: &Value) -> String {
    let problem = answer["type"].as_str().and_then(|sort| sort.rsplit('/').next()).map(str::to_owned);
    let code = answer["error"]["code"].as_i64().map(|code| code.to_string());
    problem.or(code).unwrap_or_else(|| "done".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_challenge_without_oauth() {
    let node = Node::start("without_oauth", WITHOUT_OAUTH);
    assert_snapshot!(node.responses_over_each_transport(None, "greet").await, @r#"
    2026-07-28 200 -32001
    2025-11-25 200 -32001
    REST       401 unauthenticated Bearer realm="tidegate"
    "#);
    // No token is no way around its scopes.
    assert_snapshot!(node.responses_over_each_transport(None, "change").await, @r#"
    2026-07-28 200 -32001
    2025-11-25 200 -32001
    REST       401 unauthenticated Bearer realm="tidegate", scope="data:write"
    "#);
    let token = node.token(&["groups=guests"]);
    assert_snapshot!(node.responses_over_each_transport(Some(&token), "change").await, @r#"
    2026-07-28 403 -31000 Bearer realm="tidegate", error="insufficient_scope", scope="data:write"
    2025-11-25 403 -31000 Bearer realm="tidegate", error="insufficient_scope", scope="data:write"
    REST       403 forbidden Bearer realm="tidegate", error="insufficient_scope", scope="data:write"
    "#);
    let metadata = node.server.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    assert_eq!(reqwest::get(metadata).await.unwrap().status(), 404);
    is_the_same_with_and_without(&node).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oauth_challenges_name_metadata_and_scopes() {
    let node = Node::start("with_oauth", WITH_OAUTH);
    assert_snapshot!(node.responses_over_each_transport(None, "greet").await, @r#"
    2026-07-28 401 -32001 Bearer realm="tidegate", scope="data:read", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    2025-11-25 401 -32001 Bearer realm="tidegate", scope="data:read", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    REST       401 unauthenticated Bearer realm="tidegate", scope="data:read", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    "#);
    // No token is no way around its scopes, and one with these is enough.
    assert_snapshot!(node.responses_over_each_transport(None, "change").await, @r#"
    2026-07-28 401 -32001 Bearer realm="tidegate", scope="data:read data:write", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    2025-11-25 401 -32001 Bearer realm="tidegate", scope="data:read data:write", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    REST       401 unauthenticated Bearer realm="tidegate", scope="data:read data:write", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    "#);
    let token = node.token(&["groups=guests", "scope=data:read"]);
    assert_snapshot!(node.responses_over_each_transport(Some(&token), "change").await, @r#"
    2026-07-28 403 -31000 Bearer realm="tidegate", error="insufficient_scope", scope="data:write", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    2025-11-25 403 -31000 Bearer realm="tidegate", error="insufficient_scope", scope="data:write", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    REST       403 forbidden Bearer realm="tidegate", error="insufficient_scope", scope="data:write", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    "#);
    let metadata = node.server.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let metadata: Value = reqwest::get(metadata).await.unwrap().json().await.unwrap();
    assert_eq!(metadata["authorization_servers"], json!(["https://login.example.com"]));
    is_the_same_with_and_without(&node).await;
}

/// What needs no proof of its caller, what has it, and what there is not.
async fn is_the_same_with_and_without(node: &Node) {
    let tools = async |token: Option<&str>| {
        let answer: Value = node.modern(token, "tools/list", "").await.json().await.unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
        ["change", "greet", "wave"].map(|name| names.contains(&name))
    };
    let token = node.token(&["groups=guests", "scope=data:read data:write"]);
    assert_eq!(tools(None).await, [true, false, true], "what asks who calls is in no list of nobody's");
    assert_eq!(tools(Some(&token)).await, [true, true, true]);
    assert_eq!(node.responses_over_each_transport(None, "wave").await, DONE_EVERYWHERE);
    assert_eq!(node.responses_over_each_transport(Some(&token), "greet").await, DONE_EVERYWHERE);
    assert_eq!(node.responses_over_each_transport(Some(&token), "change").await, DONE_EVERYWHERE);
    // Where there is no proof to show, nobody is asked for one.
    let absent = "2026-07-28 200 -32602\n2025-11-25 200 -32602\nREST       404 not_found\n";
    assert_eq!(node.responses_over_each_transport(None, "greex").await, absent);
}
