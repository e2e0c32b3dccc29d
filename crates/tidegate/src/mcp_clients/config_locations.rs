//! The configuration files of the clients.

use std::path::{Path, PathBuf};

use super::catalog::McpClient;
use super::edit::ClientConfigError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallScope {
    /// The current folder, for all users.
    Project,
    /// All folders, for the current user.
    User,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperatingSystem {
    Linux,
    MacOs,
    Windows,
}

#[derive(Debug, Clone)]
pub(crate) struct ConfigLocations {
    pub(crate) system: OperatingSystem,
    pub(crate) home: PathBuf,
    /// The folder of application settings: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    pub(crate) settings: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) codex_home: Option<PathBuf>,
}

impl ConfigLocations {
    pub(crate) fn current() -> Result<Self, ClientConfigError> {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty()).ok_or(ClientConfigError::NoHome)?;
        let system = match std::env::consts::OS {
            "macos" => OperatingSystem::MacOs,
            "windows" => OperatingSystem::Windows,
            _ => OperatingSystem::Linux,
        };
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let settings = match system {
            OperatingSystem::Linux => set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            OperatingSystem::MacOs => home.join("Library/Application Support"),
            OperatingSystem::Windows => set("APPDATA").unwrap_or_else(|| home.join("AppData").join("Roaming")),
        };
        let project =
            std::env::current_dir().map_err(|source| ClientConfigError::Read { path: PathBuf::from("."), source })?;
        Ok(Self { system, home, settings, project, codex_home: set("CODEX_HOME") })
    }

    fn dot_config(&self) -> PathBuf {
        if self.system == OperatingSystem::Linux { self.settings.clone() } else { self.home.join(".config") }
    }
}

impl McpClient {
    pub(crate) fn config_file(
        self,
        scope: InstallScope,
        config_locations: &ConfigLocations,
    ) -> Result<PathBuf, ClientConfigError> {
        match scope {
            InstallScope::Project => self.project_file(&config_locations.project),
            InstallScope::User => self.user_file(config_locations),
        }
    }

    fn project_file(self, project: &Path) -> Result<PathBuf, ClientConfigError> {
        match self {
            Self::ClaudeCode => Ok(project.join(".mcp.json")),
            Self::Cursor => Ok(project.join(".cursor").join("mcp.json")),
            Self::VsCode => Ok(project.join(".vscode").join("mcp.json")),
            Self::Codex => Ok(project.join(".codex").join("config.toml")),
            Self::GeminiCli => Ok(project.join(".gemini").join("settings.json")),
            Self::Kiro => Ok(project.join(".kiro").join("settings").join("mcp.json")),
            Self::Opencode => Ok(opencode_file(project)),
            Self::LmStudio => Err(self.no_documented_path()),
            Self::ClaudeDesktop | Self::Windsurf | Self::Zed => Err(ClientConfigError::NoFile {
                client: self.title(),
                instead: "it is configured for the user, not for a project",
            }),
        }
    }

    fn user_file(self, config_locations: &ConfigLocations) -> Result<PathBuf, ClientConfigError> {
        let ConfigLocations { system, home, settings, .. } = config_locations;
        match self {
            Self::ClaudeCode => Ok(home.join(".claude.json")),
            Self::ClaudeDesktop if *system == OperatingSystem::Linux => Err(ClientConfigError::NoFile {
                client: self.title(),
                instead: "its documentation names one for macOS and Windows only; \
                          open Settings > Developer > Edit Config and paste the entry there",
            }),
            Self::ClaudeDesktop => Ok(settings.join("Claude").join("claude_desktop_config.json")),
            Self::Cursor => Ok(home.join(".cursor").join("mcp.json")),
            Self::VsCode => Ok(settings.join("Code").join("User").join("mcp.json")),
            Self::Codex => {
                let folder = config_locations.codex_home.clone().unwrap_or_else(|| home.join(".codex"));
                Ok(folder.join("config.toml"))
            }
            Self::GeminiCli => Ok(home.join(".gemini").join("settings.json")),
            Self::Windsurf => Ok(home.join(".codeium").join("windsurf").join("mcp_config.json")),
            Self::Zed if *system == OperatingSystem::Windows => Ok(settings.join("Zed").join("settings.json")),
            Self::Zed => Ok(config_locations.dot_config().join("zed").join("settings.json")),
            Self::Kiro => Ok(home.join(".kiro").join("settings").join("mcp.json")),
            Self::Opencode => Ok(opencode_file(&config_locations.dot_config().join("opencode"))),
            Self::LmStudio => Err(self.no_documented_path()),
        }
    }

    fn no_documented_path(self) -> ClientConfigError {
        ClientConfigError::NoFile {
            client: self.title(),
            instead: "its documentation names no path; open Program > Install > Edit mcp.json and paste it there",
        }
    }
}

/// OpenCode reads either name; a second file beside the existing one would be confusing.
fn opencode_file(folder: &Path) -> PathBuf {
    let (plain, with_comments) = (folder.join("opencode.json"), folder.join("opencode.jsonc"));
    if !plain.exists() && with_comments.exists() { with_comments } else { plain }
}
