//! The known clients, and what their documentation says about their configuration.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClient {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Codex,
    GeminiCli,
    Windsurf,
    Zed,
    Kiro,
    Opencode,
    LmStudio,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientFileFormat {
    Json,
    /// JSON with comments and trailing commas.
    JsonWithComments,
    Toml,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    Braces,
    EnvInBraces,
    Dollar,
    EnvInCurlyBrackets,
    /// A field that contains the name of the variable.
    OwnField,
    /// None is documented.
    Unknown,
}

impl McpClient {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Kiro => "Kiro",
            Self::Opencode => "OpenCode",
            Self::LmStudio => "LM Studio",
        }
    }

    pub(crate) fn documentation(self) -> &'static str {
        match self {
            Self::ClaudeCode => "https://code.claude.com/docs/en/mcp",
            Self::ClaudeDesktop => "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
            Self::Cursor => "https://cursor.com/docs/mcp",
            Self::VsCode => "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
            Self::Codex => "https://developers.openai.com/codex/mcp",
            Self::GeminiCli => "https://geminicli.com/docs/tools/mcp-server/",
            Self::Windsurf => "https://docs.windsurf.com/windsurf/cascade/mcp",
            Self::Zed => "https://zed.dev/docs/ai/mcp",
            Self::Kiro => "https://kiro.dev/docs/mcp/configuration/",
            Self::Opencode => "https://opencode.ai/docs/mcp-servers/",
            Self::LmStudio => "https://lmstudio.ai/docs/app/mcp",
        }
    }

    pub(crate) fn format(self) -> ClientFileFormat {
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Windsurf | Self::Kiro | Self::LmStudio => {
                ClientFileFormat::Json
            }
            Self::Cursor | Self::VsCode | Self::GeminiCli | Self::Zed | Self::Opencode => {
                ClientFileFormat::JsonWithComments
            }
            Self::Codex => ClientFileFormat::Toml,
        }
    }

    pub(crate) fn next_step(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("approve the server when Claude Code asks, if it is in a project's file"),
            Self::ClaudeDesktop => Some("restart Claude Desktop"),
            Self::Codex => Some("trust the project, if the entry is in its file"),
            Self::Windsurf => Some("press the refresh button beside the MCP servers"),
            Self::Kiro => Some("approve the environment variable when Kiro asks, if the entry names one"),
            _ => None,
        }
    }

    /// The key under which the file lists its servers.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            Self::Opencode => "mcp",
            _ => "mcpServers",
        }
    }

    pub(super) fn variables(self) -> VariableSyntax {
        match self {
            Self::ClaudeCode | Self::Kiro => VariableSyntax::Braces,
            Self::Cursor | Self::VsCode | Self::Windsurf => VariableSyntax::EnvInBraces,
            Self::GeminiCli => VariableSyntax::Dollar,
            Self::Opencode => VariableSyntax::EnvInCurlyBrackets,
            Self::Codex => VariableSyntax::OwnField,
            Self::ClaudeDesktop | Self::Zed | Self::LmStudio => VariableSyntax::Unknown,
        }
    }
}

impl VariableSyntax {
    pub(super) fn reference(self, name: &str) -> Option<String> {
        match self {
            Self::Braces | Self::Dollar => Some(format!("${{{name}}}")),
            Self::EnvInBraces => Some(format!("${{env:{name}}}")),
            Self::EnvInCurlyBrackets => Some(format!("{{env:{name}}}")),
            Self::OwnField | Self::Unknown => None,
        }
    }

    pub(super) fn expands_in(self, text: &str) -> bool {
        match self {
            Self::Braces | Self::EnvInBraces => text.contains("${"),
            Self::Dollar => {
                let follows = |next: char| next == '{' || next == '_' || next.is_ascii_alphabetic();
                text.split('$').skip(1).any(|rest| rest.starts_with(follows))
            }
            Self::EnvInCurlyBrackets => text.contains("{env:") || text.contains("{file:"),
            Self::OwnField | Self::Unknown => false,
        }
    }
}
