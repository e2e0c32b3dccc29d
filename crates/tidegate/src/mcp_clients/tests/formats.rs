//! What is written, against a schema of what the client documents.
//!
//! The schemas are written by hand from the documentation named above each, and closed: a key that
//! the client does not document fails.

use serde_json::{Value, json};

use super::{all_clients, http, key, name, stdio, variable};
use crate::mcp_clients::catalog::ClientFileFormat;
use crate::mcp_clients::edit::ClientConfigError;
use crate::mcp_clients::{McpClient, install};

fn closed_object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn text() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn url() -> Value {
    json!({ "type": "string", "pattern": "^https?://" })
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn strings() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

fn headers(reference: &str) -> Value {
    json!({
        "type": "object",
        "properties": { "Authorization": { "type": "string", "pattern": format!("^Bearer (tg_secret|{reference})$") } },
        "additionalProperties": false,
    })
}

/// The common form: `command`, `args` and `env`.
fn stdio_schema() -> Value {
    closed_object(&json!({ "command": text(), "args": texts(), "env": strings() }), &["command"])
}

/// The kinds of entry that the client documents.
fn entries(client: McpClient) -> Vec<Value> {
    match client {
        // https://code.claude.com/docs/en/mcp: `type` is optional for stdio; `${VAR}` in headers.
        McpClient::ClaudeCode => {
            let remote =
                json!({ "type": { "const": "http" }, "url": url(), "headers": headers(r"\$\{TIDEGATE_KEY\}") });
            vec![stdio_schema(), closed_object(&remote, &["type", "url"])]
        }
        // https://modelcontextprotocol.io/docs/develop/connect-local-servers: command, args, env alone.
        McpClient::ClaudeDesktop => vec![stdio_schema()],
        // https://cursor.com/docs/mcp: `${env:NAME}` in command, args, env, url and headers.
        McpClient::Cursor => {
            let remote = json!({ "url": url(), "headers": headers(r"\$\{env:TIDEGATE_KEY\}") });
            vec![stdio_schema(), closed_object(&remote, &["url"])]
        }
        // https://code.visualstudio.com/docs/agents/reference/mcp-configuration: `type` is required;
        // https://code.visualstudio.com/docs/reference/variables-reference: `${env:Name}`.
        McpClient::VsCode => {
            let local = json!({ "type": { "const": "stdio" }, "command": text(), "args": texts(), "env": strings() });
            let authorization = headers(r"\$\{env:TIDEGATE_KEY\}");
            let remote = json!({ "type": { "const": "http" }, "url": url(), "headers": authorization });
            vec![closed_object(&local, &["type", "command"]), closed_object(&remote, &["type", "url"])]
        }
        // https://developers.openai.com/codex/mcp: url, bearer_token_env_var, http_headers.
        McpClient::Codex => {
            let variable = json!({ "const": "TIDEGATE_KEY" });
            let remote = json!({ "url": url(), "bearer_token_env_var": variable, "http_headers": headers("never") });
            vec![stdio_schema(), closed_object(&remote, &["url"])]
        }
        // https://geminicli.com/docs/tools/mcp-server/: `httpUrl` and `headers`;
        // https://geminicli.com/docs/reference/configuration/: `$VAR` and `${VAR}` in strings.
        McpClient::GeminiCli => {
            let remote = json!({ "httpUrl": url(), "headers": headers(r"\$\{TIDEGATE_KEY\}") });
            vec![stdio_schema(), closed_object(&remote, &["httpUrl"])]
        }
        // https://docs.windsurf.com/windsurf/cascade/mcp: `serverUrl`; `${env:VAR}` in headers.
        McpClient::Windsurf => {
            let remote = json!({ "serverUrl": url(), "headers": headers(r"\$\{env:TIDEGATE_KEY\}") });
            vec![stdio_schema(), closed_object(&remote, &["serverUrl"])]
        }
        // https://zed.dev/docs/ai/mcp: command, args, env or url, headers.
        McpClient::Zed => {
            vec![stdio_schema(), closed_object(&json!({ "url": url(), "headers": headers("never") }), &["url"])]
        }
        // https://kiro.dev/docs/mcp/configuration/: url and headers, `${VAR}` in both.
        McpClient::Kiro => {
            let remote = json!({ "url": url(), "headers": headers(r"\$\{TIDEGATE_KEY\}") });
            vec![stdio_schema(), closed_object(&remote, &["url"])]
        }
        // https://opencode.ai/docs/mcp-servers/: `{env:VAR}`; `oauth: false` for servers with keys.
        McpClient::Opencode => {
            let enabled = json!({ "type": "boolean" });
            let command = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
            let kind = json!({ "const": "local" });
            let local = json!({ "type": kind, "command": command, "environment": strings(), "enabled": enabled });
            let (kind, authorization) = (json!({ "const": "remote" }), headers(r"\{env:TIDEGATE_KEY\}"));
            let never = json!({ "const": false });
            let remote =
                json!({ "type": kind, "url": url(), "headers": authorization, "enabled": enabled, "oauth": never });
            vec![closed_object(&local, &["type", "command"]), closed_object(&remote, &["type", "url"])]
        }
        // https://lmstudio.ai/docs/app/mcp: the notation of Cursor's mcp.json.
        McpClient::LmStudio => {
            vec![stdio_schema(), closed_object(&json!({ "url": url(), "headers": headers("never") }), &["url"])]
        }
    }
}

/// The key that holds the servers, from the same pages.
fn section(client: McpClient) -> &'static str {
    match client {
        McpClient::VsCode => "servers",
        McpClient::Codex => "mcp_servers",
        McpClient::Zed => "context_servers",
        McpClient::Opencode => "mcp",
        _ => "mcpServers",
    }
}

fn parse(client: McpClient, text: &str) -> Value {
    if client.format() != ClientFileFormat::Toml {
        return serde_json::from_str(text).unwrap();
    }
    // Line by line, as simple as what is written: independent of the parser that wrote it.
    let mut entry = serde_json::Map::new();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("[mcp_servers.tidegate]"));
    for line in lines {
        let (key, value) = line.split_once(" = ").unwrap();
        let value = value.replace("{ ", "{\"").replace(" = ", "\": ");
        entry.insert(key.to_owned(), serde_json::from_str(&value).unwrap());
    }
    json!({ "mcp_servers": { "tidegate": entry } })
}

#[test]
fn written_entries_match_client_documentation() {
    for client in all_clients() {
        let servers = json!({ "type": "object", "additionalProperties": { "oneOf": entries(client) } });
        let schema = closed_object(&json!({ section(client): servers }), &[section(client)]);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut written = 0;
        for connection in [stdio(), http(None), http(variable()), http(key())] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("config");
            match install(&path, client, "tidegate", &connection) {
                Ok(_) => written += 1,
                Err(ClientConfigError::NoHttp { .. } | ClientConfigError::NoVariables { .. }) => continue,
                Err(other) => panic!("{other}"),
            }
            let value = parse(client, &std::fs::read_to_string(&path).unwrap());
            let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {value}: {errors:?}", name(client));
        }
        let expected = match client {
            McpClient::ClaudeDesktop => 1,
            McpClient::Zed | McpClient::LmStudio => 3,
            _ => 4,
        };
        assert_eq!(written, expected, "{}", name(client));
        // The schema itself must be able to fail.
        assert!(!validator.is_valid(&json!({ section(client): { "tidegate": { "unheard": 1 } } })));
    }
}
