//! Converts the configurations of other servers: MCP Toolbox for Databases (YAML), DBHub (TOML), and the `mcpServers` of
//! a client (JSON).
//!
//! What has no equivalent is left out and listed. An entry is also left out if a restriction of it cannot be kept: the
//! converted configuration never permits more than the original.

mod dbhub;
mod draft;
mod http_tool;
mod mcp_servers;
mod parameters;
mod sql_tool;
mod statement;
mod toolbox;
mod toolbox_tool;
mod tree;
mod yaml_writer;

use draft::ConfigDraft;

/// The format of another server's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignFormat {
    Toolbox,
    Dbhub,
    McpServers,
}

/// A converted configuration.
pub(crate) struct ImportedConfig {
    /// The configuration, with the notes as comments.
    pub(crate) yaml: String,
    pub(crate) notes: Vec<String>,
}

impl ForeignFormat {
    /// Recognizes the format of `text` by keys that the configuration of Tidegate does not have.
    pub(crate) fn recognize(text: &str) -> Option<Self> {
        let begins = |prefix: &str| text.lines().any(|line| line.starts_with(prefix));
        let is_line = |expected: &str| text.lines().any(|line| line.trim() == expected);
        if is_line("[[sources]]") || is_line("[[tools]]") {
            return Some(Self::Dbhub);
        }
        if begins("mcpServers:") || (text.trim_start().starts_with('{') && text.contains("\"mcpServers\"")) {
            return Some(Self::McpServers);
        }
        let is_resource = |line: &str| {
            let kind = line.strip_prefix("kind:").map(|kind| kind.trim().trim_end_matches('s'));
            kind.is_some_and(|kind| ["source", "tool", "toolset", "group", "prompt", "authService"].contains(&kind))
        };
        let is_map = |key: &str| {
            let mut behind = text.lines().skip_while(|line| line.trim_end() != key).skip(1);
            let first = behind.find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
            first.is_some_and(|line| line.starts_with(' ') && !line.trim_start().starts_with('-'))
        };
        let has_kinds = text.lines().any(|line| line.trim_start().starts_with("kind:"));
        let is_toolbox = text.lines().any(is_resource)
            || begins("sources:")
            || begins("authServices:")
            || (has_kinds && is_map("tools:"));
        is_toolbox.then_some(Self::Toolbox)
    }

    /// The program that reads the format.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Toolbox => "MCP Toolbox for Databases",
            Self::Dbhub => "DBHub",
            Self::McpServers => "an MCP client (mcpServers)",
        }
    }
}

/// Converts `text`, the content of the file that is called `file`.
///
/// # Errors
/// Why the text cannot be read as `format`.
pub(crate) fn convert(format: ForeignFormat, text: &str, file: &str) -> Result<ImportedConfig, String> {
    let mut draft = ConfigDraft::new(file);
    match format {
        ForeignFormat::Toolbox => toolbox::convert(&tree::read_yaml(text)?, &mut draft),
        ForeignFormat::Dbhub => dbhub::convert(&tree::read_toml(text)?, &mut draft),
        ForeignFormat::McpServers => mcp_servers::convert(&tree::read_json(text)?, &mut draft),
    }
    Ok(draft.finish(format))
}
