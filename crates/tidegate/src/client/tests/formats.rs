//! What is written, against a schema of what the client documents.
//!
//! The schemas are written by hand from the documentation named above each, and closed: a key that
//! the client does not document fails.

use serde_json::{Value, json};

use super::{http, key, stdio, stdio_with_env, variable};
use crate::client::catalog::Format;
use crate::client::error::Error;
use crate::client::{Client, install};

fn closed(properties: &Value, required: &[&str]) -> Value {
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
fn started() -> Value {
    closed(&json!({ "command": text(), "args": texts(), "env": strings() }), &["command"])
}

/// The kinds of entry that the client documents.
fn entries(client: Client) -> Vec<Value> {
    match client {
        // https://code.claude.com/docs/en/mcp: `type` is optional for stdio; `${VAR}` in headers.
        Client::ClaudeCode => {
            let remote =
                json!({ "type": { "const": "http" }, "url": url(), "headers": headers(r"\$\{TIDEGATE_KEY\}") });
            vec![started(), closed(&remote, &["type", "url"])]
        }
        // https://modelcontextprotocol.io/docs/develop/connect-local-servers: command, args, env alone.
        Client::ClaudeDesktop => vec![started()],
        // https://cursor.com/docs/mcp: `${env:NAME}` in command, args, env, url and headers.
        Client::Cursor => {
            let remote = json!({ "url": url(), "headers": headers(r"\$\{env:TIDEGATE_KEY\}") });
            vec![started(), closed(&remote, &["url"])]
        }
        // https://code.visualstudio.com/docs/agents/reference/mcp-configuration: `type` is required;
        // https://code.visualstudio.com/docs/reference/variables-reference: `${env:Name}`.
        Client::VsCode => {
            let local = json!({ "type": { "const": "stdio" }, "command": text(), "args": texts(), "env": strings() });
            let authorization = headers(r"\$\{env:TIDEGATE_KEY\}");
            let remote = json!({ "type": { "const": "http" }, "url": url(), "headers": authorization });
            vec![closed(&local, &["type", "command"]), closed(&remote, &["type", "url"])]
        }
        // https://developers.openai.com/codex/mcp: url, bearer_token_env_var, http_headers.
        Client::Codex => {
            let variable = json!({ "const": "TIDEGATE_KEY" });
            let remote = json!({ "url": url(), "bearer_token_env_var": variable, "http_headers": headers("never") });
            vec![started(), closed(&remote, &["url"])]
        }
        // https://geminicli.com/docs/tools/mcp-server/: `httpUrl` and `headers`;
        // https://geminicli.com/docs/reference/configuration/: `$VAR` and `${VAR}` in strings.
        Client::GeminiCli => {
            let remote = json!({ "httpUrl": url(), "headers": headers(r"\$\{TIDEGATE_KEY\}") });
            vec![started(), closed(&remote, &["httpUrl"])]
        }
        // https://docs.windsurf.com/windsurf/cascade/mcp: `serverUrl`; `${env:VAR}` in headers.
        Client::Windsurf => {
            let remote = json!({ "serverUrl": url(), "headers": headers(r"\$\{env:TIDEGATE_KEY\}") });
            vec![started(), closed(&remote, &["serverUrl"])]
        }
        // https://zed.dev/docs/ai/mcp: command, args, env or url, headers.
        Client::Zed => vec![started(), closed(&json!({ "url": url(), "headers": headers("never") }), &["url"])],
        // https://kiro.dev/docs/mcp/configuration/: url and headers, `${VAR}` in both.
        Client::Kiro => {
            let remote = json!({ "url": url(), "headers": headers(r"\$\{TIDEGATE_KEY\}") });
            vec![started(), closed(&remote, &["url"])]
        }
        // https://opencode.ai/docs/mcp-servers/: `{env:VAR}`; `oauth: false` for servers with keys.
        Client::Opencode => {
            let enabled = json!({ "type": "boolean" });
            let command = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
            let kind = json!({ "const": "local" });
            let local = json!({ "type": kind, "command": command, "environment": strings(), "enabled": enabled });
            let (kind, authorization) = (json!({ "const": "remote" }), headers(r"\{env:TIDEGATE_KEY\}"));
            let never = json!({ "const": false });
            let remote =
                json!({ "type": kind, "url": url(), "headers": authorization, "enabled": enabled, "oauth": never });
            vec![closed(&local, &["type", "command"]), closed(&remote, &["type", "url"])]
        }
        // https://lmstudio.ai/docs/app/mcp: the notation of Cursor's mcp.json.
        Client::LmStudio => {
            vec![started(), closed(&json!({ "url": url(), "headers": headers("never") }), &["url"])]
        }
    }
}

/// The key that holds the servers, from the same pages.
fn section(client: Client) -> &'static str {
    match client {
        Client::VsCode => "servers",
        Client::Codex => "mcp_servers",
        Client::Zed => "context_servers",
        Client::Opencode => "mcp",
        _ => "mcpServers",
    }
}

fn parse(client: Client, text: &str) -> Value {
    if client.format() != Format::Toml {
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
fn what_is_written_is_what_the_client_documents() {
    for client in Client::ALL {
        let servers = json!({ "type": "object", "additionalProperties": { "oneOf": entries(client) } });
        let schema = closed(&json!({ section(client): servers }), &[section(client)]);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut written = 0;
        for connection in [stdio(), stdio_with_env(), http(None), http(variable()), http(key())] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("config");
            match install(&path, client, "tidegate", &connection) {
                Ok(_) => written += 1,
                Err(Error::NoHttp { .. } | Error::NoVariables { .. }) => continue,
                Err(other) => panic!("{other}"),
            }
            let value = parse(client, &std::fs::read_to_string(&path).unwrap());
            let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {value}: {errors:?}", client.name());
        }
        let expected = match client {
            Client::ClaudeDesktop => 2,
            Client::Zed | Client::LmStudio => 4,
            _ => 5,
        };
        assert_eq!(written, expected, "{}", client.name());
        // The schema itself must be able to fail.
        assert!(!validator.is_valid(&json!({ section(client): { "tidegate": { "unheard": 1 } } })));
    }
}
