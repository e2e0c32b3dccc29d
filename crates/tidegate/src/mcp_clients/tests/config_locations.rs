//! Where the files are.

use std::path::{Path, PathBuf};

use super::{all_clients, name};
use crate::mcp_clients::config_locations::OperatingSystem;
use crate::mcp_clients::edit::ClientConfigError;
use crate::mcp_clients::{ConfigLocations, InstallScope, McpClient};

fn locations(system: OperatingSystem, settings: &str) -> ConfigLocations {
    ConfigLocations {
        system,
        home: "/home/u".into(),
        settings: settings.into(),
        project: "/work/p".into(),
        codex_home: None,
    }
}

fn linux() -> ConfigLocations {
    locations(OperatingSystem::Linux, "/home/u/.config")
}

fn mac() -> ConfigLocations {
    locations(OperatingSystem::MacOs, "/home/u/Library/Application Support")
}

fn windows() -> ConfigLocations {
    locations(OperatingSystem::Windows, "/home/u/AppData/Roaming")
}

fn display_paths(client: McpClient, scope: InstallScope, config_locations: &ConfigLocations) -> String {
    match client.config_file(scope, config_locations) {
        Ok(path) => path.display().to_string(),
        Err(ClientConfigError::NoFile { .. }) => "none".to_owned(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn files_of_a_project() {
    let table: Vec<String> = all_clients()
        .map(|client| format!("{}: {}", name(client), display_paths(client, InstallScope::Project, &linux())))
        .collect();
    insta::assert_snapshot!(table.join("\n"), @r"
    claude-code: /work/p/.mcp.json
    claude-desktop: none
    cursor: /work/p/.cursor/mcp.json
    vscode: /work/p/.vscode/mcp.json
    codex: /work/p/.codex/config.toml
    gemini-cli: /work/p/.gemini/settings.json
    windsurf: none
    zed: none
    kiro: /work/p/.kiro/settings/mcp.json
    opencode: /work/p/opencode.json
    lm-studio: none
    ");
}

#[test]
fn files_of_a_user() {
    let table: Vec<String> = all_clients()
        .map(|client| format!("{}: {}", name(client), display_paths(client, InstallScope::User, &linux())))
        .collect();
    insta::assert_snapshot!(table.join("\n"), @r"
    claude-code: /home/u/.claude.json
    claude-desktop: none
    cursor: /home/u/.cursor/mcp.json
    vscode: /home/u/.config/Code/User/mcp.json
    codex: /home/u/.codex/config.toml
    gemini-cli: /home/u/.gemini/settings.json
    windsurf: /home/u/.codeium/windsurf/mcp_config.json
    zed: /home/u/.config/zed/settings.json
    kiro: /home/u/.kiro/settings/mcp.json
    opencode: /home/u/.config/opencode/opencode.json
    lm-studio: none
    ");
}

#[test]
fn files_that_differ_between_systems() {
    let user = |client, config_locations: &ConfigLocations| display_paths(client, InstallScope::User, config_locations);
    let support = "/home/u/Library/Application Support";
    assert_eq!(user(McpClient::ClaudeDesktop, &mac()), format!("{support}/Claude/claude_desktop_config.json"));
    assert_eq!(user(McpClient::VsCode, &mac()), format!("{support}/Code/User/mcp.json"));
    assert_eq!(user(McpClient::Zed, &mac()), "/home/u/.config/zed/settings.json");
    assert_eq!(user(McpClient::Opencode, &mac()), "/home/u/.config/opencode/opencode.json");
    let roaming = "/home/u/AppData/Roaming";
    assert_eq!(user(McpClient::ClaudeDesktop, &windows()), format!("{roaming}/Claude/claude_desktop_config.json"));
    assert_eq!(user(McpClient::VsCode, &windows()), format!("{roaming}/Code/User/mcp.json"));
    assert_eq!(user(McpClient::Zed, &windows()), format!("{roaming}/Zed/settings.json"));
    let rewritten = locations(OperatingSystem::Linux, "/elsewhere");
    assert_eq!(user(McpClient::Zed, &rewritten), "/elsewhere/zed/settings.json");
}

#[test]
fn codex_home_is_honoured() {
    let config_locations = ConfigLocations { codex_home: Some("/opt/codex".into()), ..linux() };
    assert_eq!(
        McpClient::Codex.config_file(InstallScope::User, &config_locations).unwrap(),
        Path::new("/opt/codex/config.toml")
    );
    assert_eq!(
        McpClient::Codex.config_file(InstallScope::Project, &config_locations).unwrap(),
        Path::new("/work/p/.codex/config.toml")
    );
}

#[test]
fn opencode_uses_the_file_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let config_locations = ConfigLocations { project: folder.path().to_owned(), ..linux() };
    let file = || -> PathBuf { McpClient::Opencode.config_file(InstallScope::Project, &config_locations).unwrap() };
    assert_eq!(file(), folder.path().join("opencode.json"));
    std::fs::write(folder.path().join("opencode.jsonc"), "{}").unwrap();
    assert_eq!(file(), folder.path().join("opencode.jsonc"));
    std::fs::write(folder.path().join("opencode.json"), "{}").unwrap();
    assert_eq!(file(), folder.path().join("opencode.json"));
}

#[test]
fn a_client_without_a_file_says_what_to_do() {
    let error = McpClient::LmStudio.config_file(InstallScope::User, &linux()).unwrap_err();
    insta::assert_snapshot!(error, @"LM Studio has no such configuration file; its documentation names no path; open Program > Install > Edit mcp.json and paste it there");
    let error = McpClient::Windsurf.config_file(InstallScope::Project, &linux()).unwrap_err();
    insta::assert_snapshot!(error, @"Windsurf has no such configuration file; it is configured for the user, not for a project");
}
