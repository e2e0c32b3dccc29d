//! The entry of each client for a connection, according to the client's documentation.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::catalog::{McpClient, VariableSyntax};
use super::connection::{BearerValue, McpServerConnection};
use super::edit::ClientConfigError;

impl McpClient {
    pub(super) fn entry(self, connection: &McpServerConnection) -> Result<Map<String, Value>, ClientConfigError> {
        connection.check()?;
        match connection {
            McpServerConnection::Stdio { command, args } => self.stdio(command, args),
            McpServerConnection::Http { url, bearer } => self.http(url, bearer.as_ref()),
        }
    }

    fn stdio(self, command: &Path, args: &[String]) -> Result<Map<String, Value>, ClientConfigError> {
        let command = command.to_str().ok_or_else(|| ClientConfigError::CommandNotText { path: command.to_owned() })?;
        self.check_literal(command, || "the command's path".to_owned())?;
        for arg in args {
            self.check_literal(arg, || format!("the argument {arg:?}"))?;
        }
        let mut entry = Map::new();
        match self {
            Self::Opencode => {
                let line: Vec<&str> = std::iter::once(command).chain(args.iter().map(String::as_str)).collect();
                entry.insert("type".to_owned(), json!("local"));
                entry.insert("command".to_owned(), json!(line));
                entry.insert("enabled".to_owned(), json!(true));
            }
            _ => {
                if self == Self::VsCode {
                    entry.insert("type".to_owned(), json!("stdio"));
                }
                entry.insert("command".to_owned(), json!(command));
                entry.insert("args".to_owned(), json!(args));
            }
        }
        Ok(entry)
    }

    fn http(self, url: &str, bearer: Option<&BearerValue>) -> Result<Map<String, Value>, ClientConfigError> {
        self.check_literal(url, || "the address".to_owned())?;
        let mut entry = Map::new();
        let url_key = match self {
            Self::ClaudeDesktop => return Err(self.no_http(url)),
            Self::ClaudeCode | Self::VsCode => {
                entry.insert("type".to_owned(), json!("http"));
                "url"
            }
            Self::Opencode => {
                entry.insert("type".to_owned(), json!("remote"));
                "url"
            }
            // Under `url`, Gemini CLI expects the older transport over server-sent events.
            Self::GeminiCli => "httpUrl",
            Self::Windsurf => "serverUrl",
            Self::Cursor | Self::Codex | Self::Zed | Self::Kiro | Self::LmStudio => "url",
        };
        entry.insert(url_key.to_owned(), json!(url));
        if self == Self::Opencode {
            entry.insert("enabled".to_owned(), json!(true));
        }
        if let Some(bearer) = bearer {
            self.authorize(&mut entry, bearer)?;
        }
        Ok(entry)
    }

    fn authorize(self, entry: &mut Map<String, Value>, bearer: &BearerValue) -> Result<(), ClientConfigError> {
        let token = match bearer {
            BearerValue::Variable(name) if self.variables() == VariableSyntax::OwnField => {
                entry.insert("bearer_token_env_var".to_owned(), json!(name));
                return Ok(());
            }
            BearerValue::Variable(name) => self
                .variables()
                .reference(name)
                .ok_or(ClientConfigError::NoVariables { client: self.title(), documentation: self.documentation() })?,
            BearerValue::Key(key) => {
                self.check_literal(key, || "the key".to_owned())?;
                key.clone()
            }
        };
        if self == Self::Opencode {
            // Otherwise it starts an OAuth flow, which this server does not offer for keys.
            entry.insert("oauth".to_owned(), json!(false));
        }
        let key = if self == Self::Codex { "http_headers" } else { "headers" };
        entry.insert(key.to_owned(), json!({ "Authorization": format!("Bearer {token}") }));
        Ok(())
    }

    /// Rejects text with variables: clients that expand them document no way to escape them.
    fn check_literal(self, text: &str, part: impl FnOnce() -> String) -> Result<(), ClientConfigError> {
        if self.variables().expands_in(text) {
            return Err(ClientConfigError::WouldReplace { client: self.title(), part: part() });
        }
        Ok(())
    }

    fn no_http(self, url: &str) -> ClientConfigError {
        let instead = format!(
            "add {url} under Settings > Connectors, which needs an address that the internet can reach, \
             or let it start the server (stdio)"
        );
        ClientConfigError::NoHttp { client: self.title(), instead }
    }
}
