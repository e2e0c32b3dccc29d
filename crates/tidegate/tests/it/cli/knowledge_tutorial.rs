//! The tutorial about descriptions, step by step.
//!
//! A block after "Create `FILE`" is the file; another one of `yaml` replaces the configuration. A block of `sh` is a command.
//! Each line of the block of `text` after it is a part of what the command prints.

use std::path::Path;
use std::process::{Command, Stdio};

use super::documentation_commands::split_blocks;

/// What `command` prints in `folder`, with the binary on the path.
fn run(command: &str, folder: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_tidegate"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).stdin(Stdio::null());
    shell.env("PATH", format!("{}:{path}", binary.parent().unwrap().display()));
    let ran = shell.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

/// The file that the text before a block says to create.
fn created_file(text: &str) -> Option<&str> {
    let (_, named) = text.rsplit_once("Create `")?;
    named.split_once('`').map(|(file, _)| file)
}

#[test]
fn bad_names_lead_to_right_answers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/tutorials/teach-your-data.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sales")).unwrap();
    let (mut file, mut printed, mut checked) = (None, String::new(), 0);
    for part in split_blocks(&page) {
        let (language, lines) = match part {
            Ok(text) => {
                file = created_file(&text).map(str::to_owned);
                continue;
            }
            Err(block) => block,
        };
        match language.as_str() {
            "sh" => printed = lines.iter().map(|command| run(command, folder.path())).collect(),
            "text" => {
                for line in &lines {
                    assert!(printed.contains(line), "{line} is not in {printed}");
                    checked += 1;
                }
            }
            _ => {
                let file = file.as_deref().unwrap_or("tidegate.yaml");
                std::fs::write(folder.path().join(file), lines.join("\n") + "\n").unwrap();
            }
        }
    }
    assert_eq!(checked, 14, "lines of answers");
}
