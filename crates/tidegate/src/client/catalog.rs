//! The clients whose configuration is known, and what their documentation says of it.

/// A program that connects to MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
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
pub(crate) enum Format {
    Json,
    /// JSON in which comments and commas before a closing bracket are at home.
    JsonWithComments,
    Toml,
}

/// How a client writes that a value comes from an environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variables {
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

struct Facts {
    name: &'static str,
    title: &'static str,
    documentation: &'static str,
    /// The key under which the file lists its servers.
    section: &'static str,
    format: Format,
    variables: Variables,
}

impl Client {
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
        self.facts().name
    }

    /// As it calls itself: `Claude Code`.
    pub(crate) fn title(self) -> &'static str {
        self.facts().title
    }

    /// Where its maker documents the configuration.
    pub(crate) fn documentation(self) -> &'static str {
        self.facts().documentation
    }

    pub(crate) fn format(self) -> Format {
        self.facts().format
    }

    /// What its documentation asks for once the entry stands in the file.
    pub(crate) fn afterwards(self) -> Option<&'static str> {
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
        self.facts().section
    }

    pub(super) fn variables(self) -> Variables {
        self.facts().variables
    }

    fn facts(self) -> &'static Facts {
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

impl Variables {
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
    pub(super) fn would_replace_in(self, text: &str) -> bool {
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

const CLAUDE_CODE: Facts = Facts {
    name: "claude-code",
    title: "Claude Code",
    documentation: "https://code.claude.com/docs/en/mcp",
    section: "mcpServers",
    format: Format::Json,
    variables: Variables::Braces,
};

const CLAUDE_DESKTOP: Facts = Facts {
    name: "claude-desktop",
    title: "Claude Desktop",
    documentation: "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    section: "mcpServers",
    format: Format::Json,
    variables: Variables::Unknown,
};

const CURSOR: Facts = Facts {
    name: "cursor",
    title: "Cursor",
    documentation: "https://cursor.com/docs/mcp",
    section: "mcpServers",
    format: Format::JsonWithComments,
    variables: Variables::EnvInBraces,
};

const VS_CODE: Facts = Facts {
    name: "vscode",
    title: "VS Code",
    documentation: "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
    section: "servers",
    format: Format::JsonWithComments,
    variables: Variables::EnvInBraces,
};

const CODEX: Facts = Facts {
    name: "codex",
    title: "Codex",
    documentation: "https://developers.openai.com/codex/mcp",
    section: "mcp_servers",
    format: Format::Toml,
    variables: Variables::OwnField,
};

const GEMINI_CLI: Facts = Facts {
    name: "gemini-cli",
    title: "Gemini CLI",
    documentation: "https://geminicli.com/docs/tools/mcp-server/",
    section: "mcpServers",
    format: Format::JsonWithComments,
    variables: Variables::Dollar,
};

const WINDSURF: Facts = Facts {
    name: "windsurf",
    title: "Windsurf",
    documentation: "https://docs.windsurf.com/windsurf/cascade/mcp",
    section: "mcpServers",
    format: Format::Json,
    variables: Variables::EnvInBraces,
};

const ZED: Facts = Facts {
    name: "zed",
    title: "Zed",
    documentation: "https://zed.dev/docs/ai/mcp",
    section: "context_servers",
    format: Format::JsonWithComments,
    variables: Variables::Unknown,
};

const KIRO: Facts = Facts {
    name: "kiro",
    title: "Kiro",
    documentation: "https://kiro.dev/docs/mcp/configuration/",
    section: "mcpServers",
    format: Format::Json,
    variables: Variables::Braces,
};

const OPENCODE: Facts = Facts {
    name: "opencode",
    title: "OpenCode",
    documentation: "https://opencode.ai/docs/mcp-servers/",
    section: "mcp",
    format: Format::JsonWithComments,
    variables: Variables::EnvInCurlyBrackets,
};

const LM_STUDIO: Facts = Facts {
    name: "lm-studio",
    title: "LM Studio",
    documentation: "https://lmstudio.ai/docs/app/mcp",
    section: "mcpServers",
    format: Format::Json,
    variables: Variables::Unknown,
};
