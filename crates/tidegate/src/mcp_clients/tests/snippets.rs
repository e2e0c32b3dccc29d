//! Each client with each kind of connection.

use serde_json::Value;

use super::{all_clients, http, key, name, stdio, variable};
use crate::mcp_clients::catalog::ClientFileFormat;
use crate::mcp_clients::edit::ClientConfigError;
use crate::mcp_clients::{BearerValue, McpClient, McpServerConnection, snippet};

/// The snippet as it is for TOML, and on one line for JSON; or why there is none.
fn display_snippet(client: McpClient, connection: &McpServerConnection) -> String {
    match snippet(client, "tidegate", connection) {
        Ok(text) if client.format() == ClientFileFormat::Toml => text,
        Ok(text) => serde_json::from_str::<Value>(&text).unwrap().to_string(),
        Err(ClientConfigError::NoHttp { .. }) => "no http".to_owned(),
        Err(ClientConfigError::NoVariables { .. }) => "no variables".to_owned(),
        Err(other) => panic!("{other}"),
    }
}

fn check(client: McpClient, expected: [&str; 4]) {
    let connections = [stdio(), http(None), http(variable()), http(key())];
    for (connection, expected) in connections.iter().zip(expected) {
        assert_eq!(display_snippet(client, connection), expected, "{}", name(client));
    }
}

const STDIO: &str = r#"{"command":"/usr/local/bin/tidegate","args":["stdio","shop=/data/shop"]}"#;

fn in_section(section: &str, entry: &str) -> String {
    format!(r#"{{"{section}":{{"tidegate":{entry}}}}}"#)
}

fn check_json(client: McpClient, section: &str, expected: [&str; 4]) {
    let expected =
        expected.map(|entry| if entry.starts_with('{') { in_section(section, entry) } else { entry.to_owned() });
    check(client, expected.each_ref().map(String::as_str));
}

#[test]
fn claude_code() {
    check_json(
        McpClient::ClaudeCode,
        "mcpServers",
        [
            STDIO,
            r#"{"type":"http","url":"https://node.example/mcp"}"#,
            r#"{"type":"http","url":"https://node.example/mcp","headers":{"Authorization":"Bearer ${TIDEGATE_KEY}"}}"#,
            r#"{"type":"http","url":"https://node.example/mcp","headers":{"Authorization":"Bearer tg_secret"}}"#,
        ],
    );
}

#[test]
fn claude_desktop() {
    check_json(McpClient::ClaudeDesktop, "mcpServers", [STDIO, "no http", "no http", "no http"]);
}

#[test]
fn cursor() {
    check_json(
        McpClient::Cursor,
        "mcpServers",
        [
            STDIO,
            r#"{"url":"https://node.example/mcp"}"#,
            r#"{"url":"https://node.example/mcp","headers":{"Authorization":"Bearer ${env:TIDEGATE_KEY}"}}"#,
            r#"{"url":"https://node.example/mcp","headers":{"Authorization":"Bearer tg_secret"}}"#,
        ],
    );
}

#[test]
fn vscode() {
    check_json(
        McpClient::VsCode,
        "servers",
        [
            r#"{"type":"stdio","command":"/usr/local/bin/tidegate","args":["stdio","shop=/data/shop"]}"#,
            r#"{"type":"http","url":"https://node.example/mcp"}"#,
            r#"{"type":"http","url":"https://node.example/mcp","headers":{"Authorization":"Bearer ${env:TIDEGATE_KEY}"}}"#,
            r#"{"type":"http","url":"https://node.example/mcp","headers":{"Authorization":"Bearer tg_secret"}}"#,
        ],
    );
}

#[test]
fn codex() {
    check(
        McpClient::Codex,
        [
            "[mcp_servers.tidegate]\ncommand = \"/usr/local/bin/tidegate\"\nargs = [\"stdio\", \"shop=/data/shop\"]\n",
            "[mcp_servers.tidegate]\nurl = \"https://node.example/mcp\"\n",
            "[mcp_servers.tidegate]\nurl = \"https://node.example/mcp\"\nbearer_token_env_var = \"TIDEGATE_KEY\"\n",
            "[mcp_servers.tidegate]\nurl = \"https://node.example/mcp\"\n\
             http_headers = { Authorization = \"Bearer tg_secret\" }\n",
        ],
    );
}

#[test]
fn gemini_cli() {
    check_json(
        McpClient::GeminiCli,
        "mcpServers",
        [
            STDIO,
            r#"{"httpUrl":"https://node.example/mcp"}"#,
            r#"{"httpUrl":"https://node.example/mcp","headers":{"Authorization":"Bearer ${TIDEGATE_KEY}"}}"#,
            r#"{"httpUrl":"https://node.example/mcp","headers":{"Authorization":"Bearer tg_secret"}}"#,
        ],
    );
}

#[test]
fn windsurf() {
    check_json(
        McpClient::Windsurf,
        "mcpServers",
        [
            STDIO,
            r#"{"serverUrl":"https://node.example/mcp"}"#,
            r#"{"serverUrl":"https://node.example/mcp","headers":{"Authorization":"Bearer ${env:TIDEGATE_KEY}"}}"#,
            r#"{"serverUrl":"https://node.example/mcp","headers":{"Authorization":"Bearer tg_secret"}}"#,
        ],
    );
}

#[test]
fn zed() {
    check_json(
        McpClient::Zed,
        "context_servers",
        [
            STDIO,
            r#"{"url":"https://node.example/mcp"}"#,
            "no variables",
            r#"{"url":"https://node.example/mcp","headers":{"Authorization":"Bearer tg_secret"}}"#,
        ],
    );
}

#[test]
fn kiro() {
    check_json(
        McpClient::Kiro,
        "mcpServers",
        [
            STDIO,
            r#"{"url":"https://node.example/mcp"}"#,
            r#"{"url":"https://node.example/mcp","headers":{"Authorization":"Bearer ${TIDEGATE_KEY}"}}"#,
            r#"{"url":"https://node.example/mcp","headers":{"Authorization":"Bearer tg_secret"}}"#,
        ],
    );
}

#[test]
fn opencode() {
    check_json(
        McpClient::Opencode,
        "mcp",
        [
            r#"{"type":"local","command":["/usr/local/bin/tidegate","stdio","shop=/data/shop"],"enabled":true}"#,
            r#"{"type":"remote","url":"https://node.example/mcp","enabled":true}"#,
            concat!(
                r#"{"type":"remote","url":"https://node.example/mcp","enabled":true,"oauth":false,"#,
                r#""headers":{"Authorization":"Bearer {env:TIDEGATE_KEY}"}}"#
            ),
            concat!(
                r#"{"type":"remote","url":"https://node.example/mcp","enabled":true,"oauth":false,"#,
                r#""headers":{"Authorization":"Bearer tg_secret"}}"#
            ),
        ],
    );
}

#[test]
fn lm_studio() {
    check_json(
        McpClient::LmStudio,
        "mcpServers",
        [
            STDIO,
            r#"{"url":"https://node.example/mcp"}"#,
            "no variables",
            r#"{"url":"https://node.example/mcp","headers":{"Authorization":"Bearer tg_secret"}}"#,
        ],
    );
}

#[test]
fn a_snippet_is_laid_out_to_be_read() {
    let text = snippet(McpClient::ClaudeCode, "tidegate", &http(variable())).unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "mcpServers": {
        "tidegate": {
          "type": "http",
          "url": "https://node.example/mcp",
          "headers": {
            "Authorization": "Bearer ${TIDEGATE_KEY}"
          }
        }
      }
    }
    "#);
}

#[test]
fn text_that_the_client_would_replace_is_refused() {
    let with_argument =
        |argument: &str| McpServerConnection::Stdio { command: "tidegate".into(), args: vec![argument.to_owned()] };
    let refused = |client, argument| {
        matches!(snippet(client, "tidegate", &with_argument(argument)), Err(ClientConfigError::WouldReplace { .. }))
    };
    assert!(refused(McpClient::ClaudeCode, "/data/${x}"));
    assert!(refused(McpClient::Cursor, "${env:X}"));
    assert!(refused(McpClient::GeminiCli, "/data/$x"));
    assert!(refused(McpClient::Opencode, "{env:X}"));
    assert!(!refused(McpClient::GeminiCli, "/data/5$"));
    assert!(!refused(McpClient::ClaudeCode, "/data/$x"));
    assert!(!refused(McpClient::Zed, "${x}"));
    let message =
        snippet(McpClient::GeminiCli, "tidegate", &http(Some(BearerValue::Key("a$bcd".to_owned())))).unwrap_err();
    assert!(!message.to_string().contains("a$bcd"), "{message}");
}

#[test]
fn names_and_keys_are_checked() {
    for name in ["", "a b", "a.b", "a\"b", &"a".repeat(65)] {
        assert!(matches!(snippet(McpClient::Codex, name, &stdio()), Err(ClientConfigError::Name { .. })), "{name}");
    }
    let with = |bearer| snippet(McpClient::Codex, "tidegate", &http(Some(bearer)));
    assert!(matches!(with(BearerValue::Variable("A-B".to_owned())), Err(ClientConfigError::Variable { .. })));
    assert!(matches!(with(BearerValue::Key("a\nb".to_owned())), Err(ClientConfigError::Key)));
    assert!(matches!(with(BearerValue::Key(String::new())), Err(ClientConfigError::Key)));
}

#[test]
fn a_client_without_http_says_what_to_do() {
    let error = snippet(McpClient::ClaudeDesktop, "tidegate", &http(None)).unwrap_err();
    insta::assert_snapshot!(error, @"Claude Desktop does not read remote servers from its file; add https://node.example/mcp under Settings > Connectors, which needs an address that the internet can reach, or let it start the server (stdio)");
    let error = snippet(McpClient::Zed, "tidegate", &http(variable())).unwrap_err();
    insta::assert_snapshot!(error, @"Zed documents no way to take a key from the environment (https://zed.dev/docs/ai/mcp); give the key itself, which then stands in the file");
}

#[test]
fn debug_output_hides_the_key() {
    assert_eq!(format!("{:?}", key()), "Some(Key(hidden))");
}

#[test]
fn every_client_has_a_documentation_page() {
    for client in all_clients() {
        assert!(client.documentation().starts_with("https://"), "{}", name(client));
    }
}
