//! The clients whose configuration is known, and what their documentation says of it.

/// A program that connects to MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum McpClient {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Codex,
    GeminiCli,
    Windsurf,
    Zed,
    Kiro,
    Opencode,
    LmStudio,
}

/// What a configuration file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientFileFormat {
    Json,
    /// JSON in which comments and commas before a closing bracket are at home.
    JsonWithComments,
    Toml,
}

/// How a client writes that a value comes from an environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// `${NAME}`.
    Braces,
    /// `${env:NAME}`.
    EnvInBraces,
    /// `${NAME}` or `$NAME`.
    Dollar,
    /// `{env:NAME}`.
    EnvInCurlyBrackets,
    /// A field that holds the variable's name.
    OwnField,
    /// The documentation names no way.
    Unknown,
}

struct ClientProfile {
    name: &'static str,
    title: &'static str,
    documentation: &'static str,
    /// The key under which the file lists its servers.
    section: &'static str,
    format: ClientFileFormat,
    variables: VariableSyntax,
}

impl McpClient {
    pub(crate) const ALL: [Self; 11] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::GeminiCli,
        Self::Windsurf,
        Self::Zed,
        Self::Kiro,
        Self::Opencode,
        Self::LmStudio,
    ];

    /// The client that the command line calls `name`.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|client| client.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("known clients are {names}")
        })
    }

    /// As the command line calls it: `claude-code`.
    pub(crate) fn name(self) -> &'static str {
        self.profile().name
    }

    /// As it calls itself: `Claude Code`.
    pub(crate) fn title(self) -> &'static str {
        self.profile().title
    }

    /// Where its maker documents the configuration.
    pub(crate) fn documentation(self) -> &'static str {
        self.profile().documentation
    }

    pub(crate) fn format(self) -> ClientFileFormat {
        self.profile().format
    }

    /// What its documentation asks for once the entry stands in the file.
    pub(crate) fn next_step(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("approve the server when Claude Code asks, if it stands in a project's file"),
            Self::ClaudeDesktop => Some("restart Claude Desktop"),
            Self::Codex => Some("trust the project, if the entry stands in its file"),
            Self::Windsurf => Some("press the refresh button beside the MCP servers"),
            Self::Kiro => Some("approve the environment variable when Kiro asks, if the entry names one"),
            _ => None,
        }
    }

    pub(super) fn section(self) -> &'static str {
        self.profile().section
    }

    pub(super) fn variables(self) -> VariableSyntax {
        self.profile().variables
    }

    fn profile(self) -> &'static ClientProfile {
        match self {
            Self::ClaudeCode => &CLAUDE_CODE,
            Self::ClaudeDesktop => &CLAUDE_DESKTOP,
            Self::Cursor => &CURSOR,
            Self::VsCode => &VS_CODE,
            Self::Codex => &CODEX,
            Self::GeminiCli => &GEMINI_CLI,
            Self::Windsurf => &WINDSURF,
            Self::Zed => &ZED,
            Self::Kiro => &KIRO,
            Self::Opencode => &OPENCODE,
            Self::LmStudio => &LM_STUDIO,
        }
    }
}

impl VariableSyntax {
    /// What stands in a value for the variable `name`, where a value can refer to one.
    pub(super) fn reference(self, name: &str) -> Option<String> {
        match self {
            Self::Braces | Self::Dollar => Some(format!("${{{name}}}")),
            Self::EnvInBraces => Some(format!("${{env:{name}}}")),
            Self::EnvInCurlyBrackets => Some(format!("{{env:{name}}}")),
            Self::OwnField | Self::Unknown => None,
        }
    }

    /// Whether the client would put something else in the place of a part of `text`.
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

const CLAUDE_CODE: ClientProfile = ClientProfile {
    name: "claude-code",
    title: "Claude Code",
    documentation: "https://code.claude.com/docs/en/mcp",
    section: "mcpServers",
    format: ClientFileFormat::Json,
    variables: VariableSyntax::Braces,
};

const CLAUDE_DESKTOP: ClientProfile = ClientProfile {
    name: "claude-desktop",
    title: "Claude Desktop",
    documentation: "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    section: "mcpServers",
    format: ClientFileFormat::Json,
    variables: VariableSyntax::Unknown,
};

const CURSOR: ClientProfile = ClientProfile {
    name: "cursor",
    title: "Cursor",
    documentation: "https://cursor.com/docs/mcp",
    section: "mcpServers",
    format: ClientFileFormat::JsonWithComments,
    variables: VariableSyntax::EnvInBraces,
};

const VS_CODE: ClientProfile = ClientProfile {
    name: "vscode",
    title: "VS Code",
    documentation: "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
    section: "servers",
    format: ClientFileFormat::JsonWithComments,
    variables: VariableSyntax::EnvInBraces,
};

const CODEX: ClientProfile = ClientProfile {
    name: "codex",
    title: "Codex",
    documentation: "https://developers.openai.com/codex/mcp",
    section: "mcp_servers",
    format: ClientFileFormat::Toml,
    variables: VariableSyntax::OwnField,
};

const GEMINI_CLI: ClientProfile = ClientProfile {
    name: "gemini-cli",
    title: "Gemini CLI",
    documentation: "https://geminicli.com/docs/tools/mcp-server/",
    section: "mcpServers",
    format: ClientFileFormat::JsonWithComments,
    variables: VariableSyntax::Dollar,
};

const WINDSURF: ClientProfile = ClientProfile {
    name: "windsurf",
    title: "Windsurf",
    documentation: "https://docs.windsurf.com/windsurf/cascade/mcp",
    section: "mcpServers",
    format: ClientFileFormat::Json,
    variables: VariableSyntax::EnvInBraces,
};

const ZED: ClientProfile = ClientProfile {
    name: "zed",
    title: "Zed",
    documentation: "https://zed.dev/docs/ai/mcp",
    section: "context_servers",
    format: ClientFileFormat::JsonWithComments,
    variables: VariableSyntax::Unknown,
};

const KIRO: ClientProfile = ClientProfile {
    name: "kiro",
    title: "Kiro",
    documentation: "https://kiro.dev/docs/mcp/configuration/",
    section: "mcpServers",
    format: ClientFileFormat::Json,
    variables: VariableSyntax::Braces,
};

const OPENCODE: ClientProfile = ClientProfile {
    name: "opencode",
    title: "OpenCode",
    documentation: "https://opencode.ai/docs/mcp-servers/",
    section: "mcp",
    format: ClientFileFormat::JsonWithComments,
    variables: VariableSyntax::EnvInCurlyBrackets,
};

const LM_STUDIO: ClientProfile = ClientProfile {
    name: "lm-studio",
    title: "LM Studio",
    documentation: "https://lmstudio.ai/docs/app/mcp",
    section: "mcpServers",
    format: ClientFileFormat::Json,
    variables: VariableSyntax::Unknown,
};
