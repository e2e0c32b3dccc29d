//! The tutorial about networks, as `scripts/network-demo` follows it.
//!
//! A block of `json` is a call. Each line of the block of `text` after it is a part of the answer. The files of the page are
//! those that the script writes.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The calls of the page, each with the parts of its answer.
fn calls(page: &str) -> Vec<(Value, Vec<String>)> {
    let mut calls: Vec<(Value, Vec<String>)> = Vec::new();
    for block in page.split("\n```").collect::<Vec<_>>().iter().skip(1).step_by(2) {
        let (kind, text) = block.split_once('\n').unwrap_or_default();
        match (kind, calls.last_mut()) {
            ("json", _) => calls.push((serde_json::from_str(text).unwrap(), Vec::new())),
            // Lines of a configuration are between two questions.
            ("text", Some((_, parts))) if parts.is_empty() => parts.extend(text.lines().map(str::to_owned)),
            _ => {}
        }
    }
    calls
}

/// The answers that the script printed, with their calls.
fn answers(output: &str) -> Vec<(Value, String)> {
    let mut answers: Vec<(Value, String)> = Vec::new();
    for line in output.lines() {
        match (line.strip_prefix("> "), answers.last_mut()) {
            (Some(call), _) => answers.push((serde_json::from_str(call).unwrap(), String::new())),
            (None, Some((_, answer))) => {
                answer.push_str(line);
                answer.push('\n');
            }
            (None, None) => {}
        }
    }
    answers
}

/// `text` with one port for all, because the script uses any free ones.
fn without_ports(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts
        .fold(first, |text, part| format!("{text}127.0.0.1:0{}", part.trim_start_matches(|c: char| c.is_ascii_digit())))
}

#[test]
fn the_demo_gives_the_answers_of_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/tutorials/network.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut demo = Command::new(root.join("scripts/network-demo"));
    demo.arg("--folder").arg(folder.path()).env("TIDEGATE_BINARY", env!("CARGO_BIN_EXE_tidegate"));
    // What the servers store is none of the user's cache.
    let ran = demo.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
    let output = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{output}\n{}", String::from_utf8_lossy(&ran.stderr));
    let (calls, answers) = (calls(&page), answers(&output));
    assert_eq!(calls.len(), 9);
    assert_eq!(answers.len(), calls.len(), "{output}");
    for ((call, parts), (sent, answer)) in calls.iter().zip(&answers) {
        assert_eq!(call, sent);
        assert!(!parts.is_empty(), "{call}");
        for part in parts {
            assert!(answer.contains(part), "{call}: {part} is not in {answer}");
        }
    }
    let page = without_ports(&page);
    for name in ["oslo", "rome", "cork"] {
        let readings = std::fs::read_to_string(folder.path().join(name).join("data/readings.csv")).unwrap();
        assert!(page.contains(&readings), "{name}");
        let node = std::fs::read_to_string(folder.path().join(name).join("tidegate.yaml")).unwrap();
        assert!(page.contains(&without_ports(&node)), "{node}");
    }
    let network = without_ports(&std::fs::read_to_string(folder.path().join("plants/tidegate.yaml")).unwrap());
    let (network, allowed) = network.split_at(network.find("      partial:").unwrap());
    assert!(page.contains(network) && page.contains(allowed), "{network}{allowed}");
}
