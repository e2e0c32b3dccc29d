//! What commands print on a terminal: their own colours, but no control characters of data.

use std::path::Path;
use std::process::Command;

use super::{ConfiguredFolder, tidegate};

/// Sets the title, clears the screen, writes to the clipboard, and clears the screen with a C1 control character.
const CONTROL_SEQUENCES: &str = "\u{1b}]0;owned\u{7} \u{1b}[2J \u{1b}]52;c;b3duZWQh\u{7} \u{9b}2J";
const ESCAPED: &str = r"\u{1b}]0;owned\u{7} \u{1b}[2J \u{1b}]52;c;b3duZWQh\u{7} \u{9b}2J";
const CONFIGURATION: &str = "databases: [{name: shop, files: shop}]\nlogs: [{name: app, table: shop.events}]\n";

fn folder() -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let events = format!("created_at,level,body\n2026-03-01 12:00:00,error,{CONTROL_SEQUENCES}\n");
    std::fs::write(configured.folder().join("shop/events.csv"), events).unwrap();
    configured
}

/// What a terminal receives from the command with `arguments`, with both streams.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let tidegate = tidegate();
    let words = [tidegate.get_program().to_str().unwrap()].into_iter().chain(arguments.iter().copied());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let mut script = Command::new("script");
    for (name, value) in tidegate.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    script.env_remove("NO_COLOR").env("TERM", "xterm").env("SHELL", "/bin/sh");
    script.args(["--quiet", "--command", &line.join(" "), "/dev/null"]).current_dir(folder);
    let output = script.stdin(std::process::Stdio::null()).output().expect("script, of util-linux, is installed");
    // The terminal adds a carriage return to each line feed, also to that of a line of CSV.
    String::from_utf8(output.stdout).expect("the output is UTF-8").replace("\r\r\n", "\n").replace("\r\n", "\n")
}

/// Checks that `text` has no control characters but line feeds, tabs and the styles of the program.
fn assert_harmless(text: &str) {
    for part in text.split("\u{1b}[").skip(1) {
        let parameters = part.split('m').next().unwrap_or_default();
        assert!(["0", "1", "2", "3", "31", "32", "33", "34"].contains(&parameters), "{text:?}");
    }
    let plain = text.replace("\u{1b}[", "");
    let control = plain.chars().find(|character| character.is_control() && !matches!(character, '\n' | '\t'));
    assert_eq!(control, None, "{text:?}");
}

#[test]
fn log_lines_are_escaped_and_keep_their_colours() {
    let configured = folder();
    let text = printed(configured.folder(), &["logs"]);
    assert!(text.contains("\u{1b}[31merror  \u{1b}[0m") && text.contains(ESCAPED), "{text:?}");
    assert_harmless(&text);
    let text = printed(configured.folder(), &["logs", "--facets", "body"]);
    assert!(text.contains(ESCAPED), "{text:?}");
    assert_harmless(&text);
}

#[test]
fn streamed_rows_are_escaped_in_each_format() {
    let configured = folder();
    for format in ["csv", "ndjson", "json", "table", "markdown"] {
        let text = printed(configured.folder(), &["query", "SELECT body FROM events", "--format", format]);
        assert!(text.contains("owned"), "{format}: {text:?}");
        assert_harmless(&text);
    }
    let text = printed(configured.folder(), &["call", "query_logs"]);
    assert!(text.contains("owned"), "{text:?}");
    assert_harmless(&text);
}

#[test]
fn errors_are_escaped_and_keep_their_colours() {
    let configured = folder();
    let path = "/nowhere/\u{1b}]0;owned\u{7}\u{9b}";
    for arguments in [
        ["query", "SELECT 1", path, "--max-rows=1"],
        ["query", "SELECT CAST(body AS INT) FROM events", "--max-rows", "1"],
        ["query", "SELECT 1", "--max-rows", CONTROL_SEQUENCES],
        ["query", "SELECT 1", "--nothing", CONTROL_SEQUENCES],
    ] {
        let text = printed(configured.folder(), &arguments);
        assert!(text.contains("\u{1b}[31merror:\u{1b}[0m"), "{arguments:?}: {text:?}");
        assert_harmless(&text);
    }
    let text = printed(configured.folder(), &["query", "SELECT 1", path]);
    assert!(text.contains(r"cannot open /nowhere/\u{1b}]0;owned\u{7}\u{9b}: no such file"), "{text:?}");
}

#[test]
fn a_pipe_receives_the_bytes_of_data() {
    let configured = folder();
    let rows = configured.run(&["query", "SELECT body FROM events"]);
    assert_eq!(rows.stdout, format!("body\r\n{CONTROL_SEQUENCES}\r\n"), "{rows:?}");
    let entries = configured.run(&["logs"]);
    assert!(entries.stdout.ends_with(&format!(" error   {CONTROL_SEQUENCES}\n")), "{entries:?}");
}
