//! Where the clients keep their configuration.

use std::path::{Path, PathBuf};

use super::catalog::Client;
use super::error::Error;

/// Whom an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everybody who works in the current folder.
    Project,
    /// One user, in all folders.
    User,
}

/// The kind of system, as far as the places of files differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Linux,
    MacOs,
    Windows,
}

/// The folders from which the places of configuration files follow.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) system: System,
    pub(crate) home: PathBuf,
    /// Where applications keep their settings: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    pub(crate) settings: PathBuf,
    pub(crate) project: PathBuf,
    /// What `CODEX_HOME` says, if it is set.
    pub(crate) codex_home: Option<PathBuf>,
}

impl Places {
    /// Those of this process.
    pub(crate) fn current() -> Result<Self, Error> {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty()).ok_or(Error::NoHome)?;
        let system = match std::env::consts::OS {
            "macos" => System::MacOs,
            "windows" => System::Windows,
            _ => System::Linux,
        };
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let settings = match system {
            System::Linux => set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            System::MacOs => home.join("Library/Application Support"),
            System::Windows => set("APPDATA").unwrap_or_else(|| home.join("AppData").join("Roaming")),
        };
        let project = std::env::current_dir().map_err(|source| Error::Read { path: PathBuf::from("."), source })?;
        Ok(Self { system, home, settings, project, codex_home: set("CODEX_HOME") })
    }

    /// Where programs look that keep to `~/.config` on every system.
    fn dot_config(&self) -> PathBuf {
        if self.system == System::Linux { self.settings.clone() } else { self.home.join(".config") }
    }
}

impl Client {
    /// The configuration file for `scope`.
    pub(crate) fn file(self, scope: Scope, places: &Places) -> Result<PathBuf, Error> {
        match scope {
            Scope::Project => self.project_file(&places.project),
            Scope::User => self.user_file(places),
        }
    }

    fn project_file(self, project: &Path) -> Result<PathBuf, Error> {
        match self {
            Self::ClaudeCode => Ok(project.join(".mcp.json")),
            Self::Cursor => Ok(project.join(".cursor").join("mcp.json")),
            Self::VsCode => Ok(project.join(".vscode").join("mcp.json")),
            Self::Codex => Ok(project.join(".codex").join("config.toml")),
            Self::GeminiCli => Ok(project.join(".gemini").join("settings.json")),
            Self::Kiro => Ok(project.join(".kiro").join("settings").join("mcp.json")),
            Self::Opencode => Ok(opencode_file(project)),
            Self::LmStudio => Err(self.in_its_own_editor()),
            Self::ClaudeDesktop | Self::Windsurf | Self::Zed => {
                Err(Error::NoFile { client: self.title(), instead: "it is configured for the user, not for a project" })
            }
        }
    }

    fn user_file(self, places: &Places) -> Result<PathBuf, Error> {
        let Places { system, home, settings, .. } = places;
        match self {
            Self::ClaudeCode => Ok(home.join(".claude.json")),
            Self::ClaudeDesktop if *system == System::Linux => Err(Error::NoFile {
                client: self.title(),
                instead: "its documentation names one for macOS and Windows only; \
                          open Settings > Developer > Edit Config and paste the entry there",
            }),
            Self::ClaudeDesktop => Ok(settings.join("Claude").join("claude_desktop_config.json")),
            Self::Cursor => Ok(home.join(".cursor").join("mcp.json")),
            Self::VsCode => Ok(settings.join("Code").join("User").join("mcp.json")),
            Self::Codex => {
                let folder = places.codex_home.clone().unwrap_or_else(|| home.join(".codex"));
                Ok(folder.join("config.toml"))
            }
            Self::GeminiCli => Ok(home.join(".gemini").join("settings.json")),
            Self::Windsurf => Ok(home.join(".codeium").join("windsurf").join("mcp_config.json")),
            Self::Zed if *system == System::Windows => Ok(settings.join("Zed").join("settings.json")),
            Self::Zed => Ok(places.dot_config().join("zed").join("settings.json")),
            Self::Kiro => Ok(home.join(".kiro").join("settings").join("mcp.json")),
            Self::Opencode => Ok(opencode_file(&places.dot_config().join("opencode"))),
            Self::LmStudio => Err(self.in_its_own_editor()),
        }
    }

    fn in_its_own_editor(self) -> Error {
        Error::NoFile {
            client: self.title(),
            instead: "its documentation names no path; open Program > Install > Edit mcp.json and paste it there",
        }
    }
}

/// OpenCode reads either name; a second file beside the one in use would only confuse.
fn opencode_file(folder: &Path) -> PathBuf {
    let (plain, with_comments) = (folder.join("opencode.json"), folder.join("opencode.jsonc"));
    if !plain.exists() && with_comments.exists() { with_comments } else { plain }
}
