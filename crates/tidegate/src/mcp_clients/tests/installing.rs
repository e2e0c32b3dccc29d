//! What becomes of the file and of what is beside it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{all_clients, http, key, stdio, variable};
use crate::mcp_clients::edit::{ClientConfigError, EditError};
use crate::mcp_clients::{InstallOutcome, Installation, McpClient, McpServerConnection, install, snippet};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(name: &str, content: impl AsRef<[u8]>) -> (Self, PathBuf) {
        let folder = Self::new();
        let path = folder.path(name);
        fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn cursor(path: &Path, connection: &McpServerConnection) -> Result<Installation, ClientConfigError> {
    install(path, McpClient::Cursor, "tidegate", connection)
}

#[track_caller]
fn check(path: &Path, connection: &McpServerConnection, outcome: InstallOutcome, backup: Option<&str>) {
    let installed = cursor(path, connection).unwrap();
    let backup = backup.map(|name| path.with_file_name(name));
    assert_eq!(installed, Installation { outcome, path: path.to_owned(), backup });
}

#[test]
fn a_missing_file_is_created_with_its_folders() {
    for client in all_clients() {
        let folder = Folder::new();
        let path = folder.path("a/b/config");
        let installed = install(&path, client, "tidegate", &stdio()).unwrap();
        assert_eq!(installed, Installation { outcome: InstallOutcome::Created, path: path.clone(), backup: None });
        assert_eq!(fs::read_to_string(&path).unwrap(), snippet(client, "tidegate", &stdio()).unwrap());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}

#[test]
fn an_empty_file_is_filled() {
    for content in ["", " \n"] {
        let (_folder, path) = Folder::with("mcp.json", content);
        check(&path, &stdio(), InstallOutcome::Added, Some("mcp.json.bak"));
        assert_eq!(fs::read_to_string(&path).unwrap(), snippet(McpClient::Cursor, "tidegate", &stdio()).unwrap());
    }
}

#[test]
fn a_second_run_changes_nothing() {
    for client in all_clients() {
        let (folder, path) = Folder::with("config", "");
        install(&path, client, "other", &stdio()).unwrap();
        install(&path, client, "tidegate", &stdio()).unwrap();
        let (before, names) = (fs::read(&path).unwrap(), folder.names());
        let installation = install(&path, client, "tidegate", &stdio()).unwrap();
        assert_eq!(installation, Installation { outcome: InstallOutcome::Unchanged, path: path.clone(), backup: None });
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(folder.names(), names);
    }
}

#[test]
fn backups_are_numbered_and_never_overwritten() {
    let (folder, path) = Folder::with("mcp.json", "{}");
    fs::write(folder.path("mcp.json.bak"), "kept").unwrap();
    check(&path, &stdio(), InstallOutcome::Added, Some("mcp.json.bak.1"));
    let first = fs::read_to_string(&path).unwrap();
    check(&path, &http(None), InstallOutcome::Replaced, Some("mcp.json.bak.2"));
    assert_eq!(folder.names(), ["mcp.json", "mcp.json.bak", "mcp.json.bak.1", "mcp.json.bak.2"]);
    assert_eq!(fs::read_to_string(folder.path("mcp.json.bak")).unwrap(), "kept");
    assert_eq!(fs::read_to_string(folder.path("mcp.json.bak.1")).unwrap(), "{}");
    assert_eq!(fs::read_to_string(folder.path("mcp.json.bak.2")).unwrap(), first);
}

#[test]
fn other_servers_and_settings_stay() {
    let before =
        "{\n    \"z\": 1.0,\n    \"mcpServers\": {\n        \"b\": {\"url\": \"u\"}\n    },\n    \"a\": null\n}\n";
    let (_folder, path) = Folder::with("mcp.json", before);
    check(&path, &http(None), InstallOutcome::Added, Some("mcp.json.bak"));
    insta::assert_snapshot!(fs::read_to_string(&path).unwrap(), @r#"
    {
        "z": 1.0,
        "mcpServers": {
            "b": {"url": "u"},
            "tidegate": {
                "url": "https://node.example/mcp"
            }
        },
        "a": null
    }
    "#);
}

#[test]
fn comments_stay() {
    let before = "{\n  // Servers of this folder.\n  \"servers\": {}, // none\n  \"inputs\": [],\n}\n";
    let (_folder, path) = Folder::with("mcp.json", before);
    install(&path, McpClient::VsCode, "tidegate", &http(variable())).unwrap();
    insta::assert_snapshot!(fs::read_to_string(&path).unwrap(), @r#"
    {
      // Servers of this folder.
      "servers": {
        "tidegate": {
          "type": "http",
          "url": "https://node.example/mcp",
          "headers": {
            "Authorization": "Bearer ${env:TIDEGATE_KEY}"
          }
        }
      }, // none
      "inputs": [],
    }
    "#);
}

#[test]
fn a_byte_order_mark_stays() {
    let (_folder, path) = Folder::with("mcp.json", "\u{feff}{}\n");
    check(&path, &stdio(), InstallOutcome::Added, Some("mcp.json.bak"));
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.starts_with("\u{feff}{\n  \"mcpServers\""), "{after}");
    check(&path, &stdio(), InstallOutcome::Unchanged, None);
    let (_folder, path) = Folder::with("config.toml", "\u{feff}a = 1\n");
    install(&path, McpClient::Codex, "tidegate", &stdio()).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with("\u{feff}a = 1\n\n[mcp_servers.tidegate]\n"));
}

#[test]
fn line_ends_stay() {
    let before = "{\r\n  \"mcpServers\": {\r\n    \"b\": {}\r\n  }\r\n}\r\n";
    let (_folder, path) = Folder::with("mcp.json", before);
    check(&path, &stdio(), InstallOutcome::Added, Some("mcp.json.bak"));
    let after = fs::read_to_string(&path).unwrap();
    assert_eq!(after.matches("\r\n").count(), after.matches('\n').count(), "{after:?}");
}

#[track_caller]
fn check_unchanged(name: &str, content: &[u8], client: McpClient) -> EditError {
    let (folder, path) = Folder::with(name, content);
    let Err(ClientConfigError::Refused { path: refused, refusal, snippet: visible }) =
        install(&path, client, "tidegate", &stdio())
    else {
        panic!("not refused")
    };
    assert_eq!((refused, visible), (path.clone(), snippet(client, "tidegate", &stdio()).unwrap()));
    assert_eq!(fs::read(&path).unwrap(), content);
    assert_eq!(folder.names(), [name]);
    refusal
}

#[test]
fn unparsable_file_is_not_changed() {
    let broken = check_unchanged("mcp.json", b"{\n  \"mcpServers\": {\n", McpClient::Cursor);
    assert_eq!(broken.to_string(), "it does not parse at line 2, column 17: Unterminated object");
    let commented = check_unchanged("mcp.json", b"{\n  // mine\n}", McpClient::Kiro);
    let expected =
        "it does not parse at line 2, column 3: a comment or a trailing comma, which this file's format does not have";
    assert_eq!(commented.to_string(), expected);
    assert!(check_unchanged("config.toml", b"[a\n", McpClient::Codex).to_string().contains("line 1"));
    assert_eq!(check_unchanged("mcp.json", b"{\"a\": \"\xff\"}", McpClient::Cursor), EditError::NotText);
}

#[test]
fn edit_error_includes_snippet() {
    let (_folder, path) = Folder::with("mcp.json", "[]");
    let error = install(&path, McpClient::Cursor, "tidegate", &http(None)).unwrap_err().to_string();
    insta::assert_snapshot!(error.replace(&path.display().to_string(), "FILE"), @r#"
    FILE stays as it is: what stands in it is not a table of settings

    To add the server by hand, paste this:

    {
      "mcpServers": {
        "tidegate": {
          "url": "https://node.example/mcp"
        }
      }
    }
    "#);
}

#[test]
fn folder_at_the_config_path_is_not_changed() {
    let folder = Folder::new();
    fs::create_dir(folder.path("mcp.json")).unwrap();
    assert!(matches!(cursor(&folder.path("mcp.json"), &stdio()), Err(ClientConfigError::Read { .. })));
    fs::write(folder.path("file"), "").unwrap();
    assert!(cursor(&folder.path("file/mcp.json"), &stdio()).is_err());
    assert_eq!(folder.names(), ["file", "mcp.json"]);
}

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = Folder::new();
        fs::create_dir(folder.path("real")).unwrap();
        fs::write(folder.path("real/mcp.json"), "{}").unwrap();
        symlink("real/mcp.json", folder.path("second")).unwrap();
        symlink("second", folder.path("mcp.json")).unwrap();
        let installed = cursor(&folder.path("mcp.json"), &stdio()).unwrap();
        assert_eq!(installed.path, folder.path("mcp.json"));
        assert_eq!(installed.backup, Some(folder.path("real/mcp.json.bak")));
        assert_eq!(fs::read_link(folder.path("mcp.json")).unwrap(), Path::new("second"));
        assert!(fs::read_to_string(folder.path("real/mcp.json")).unwrap().contains("tidegate"));
    }

    #[test]
    fn a_link_to_nothing_gets_its_file() {
        let folder = Folder::new();
        symlink("real/mcp.json", folder.path("mcp.json")).unwrap();
        assert_eq!(cursor(&folder.path("mcp.json"), &stdio()).unwrap().outcome, InstallOutcome::Created);
        assert!(folder.path("real/mcp.json").is_file());
        assert!(fs::read_link(folder.path("mcp.json")).is_ok());
    }

    #[test]
    fn links_in_a_circle_are_refused() {
        let folder = Folder::new();
        symlink("b", folder.path("a")).unwrap();
        symlink("a", folder.path("b")).unwrap();
        assert!(matches!(cursor(&folder.path("a"), &stdio()), Err(ClientConfigError::Read { .. })));
    }

    #[test]
    fn a_file_with_a_key_is_for_its_owner_alone() {
        let folder = Folder::new();
        cursor(&folder.path("new.json"), &http(key())).unwrap();
        assert_eq!(mode(&folder.path("new.json")), 0o600);
        for (before, after) in [(0o644, 0o600), (0o660, 0o600), (0o400, 0o400)] {
            let (folder, path) = Folder::with("mcp.json", "{}");
            set_mode(&path, before);
            cursor(&path, &http(key())).unwrap();
            assert_eq!((mode(&path), mode(&folder.path("mcp.json.bak"))), (after, before));
        }
    }

    #[test]
    fn a_file_without_a_key_keeps_its_mode() {
        for connection in [stdio(), http(None), http(variable())] {
            for kept in [0o644, 0o600, 0o664, 0o440] {
                let (_folder, path) = Folder::with("mcp.json", "{}");
                set_mode(&path, kept);
                cursor(&path, &connection).unwrap();
                assert_eq!(mode(&path), kept);
            }
        }
    }

    #[test]
    fn unwritable_folder_is_not_changed() {
        let (folder, path) = Folder::with("mcp.json", "{}");
        set_mode(folder.0.path(), 0o555);
        // An administrator may write everywhere, so that there is nothing to see.
        let may_write = fs::write(folder.path("probe"), "").is_ok();
        let result = cursor(&path, &stdio());
        set_mode(folder.0.path(), 0o755);
        if !may_write {
            assert!(matches!(result, Err(ClientConfigError::Write { .. })));
            assert_eq!(folder.names(), ["mcp.json"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
        }
    }
}
