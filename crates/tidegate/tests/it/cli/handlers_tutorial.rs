//! The pages about handlers, block by block, as a reader follows them: with a shell, psql, and a database of one's own.
//!
//! Blocks of `sh` run in one shell, those of `sql` in psql as the owner. One that begins with the name of a file
//! (`-- handlers/x.sql`) is that file; `yaml` is `tidegate.yaml`. A block must succeed, or fail where its fence says so
//! (`sh fails`), and a block of `text` after it is what it prints. psql says errors in one line, since where they were raised is
//! nobody's affair.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use tempfile::TempDir;

use super::postgres::{psql, server};
use super::tidegate;

/// The database of the page, and the role that its tools log in as. On the server, their names end with the process id.
const DATABASE: &str = "shop";
const ROLE: &str = "shop_app";
/// The address that the page serves at.
const ADDRESS: &str = "127.0.0.1:7070";

fn with_process_id(name: &str) -> String {
    format!("{name}_{}", std::process::id())
}

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    /// What stands behind the fence.
    kind: String,
    /// The line of the fence.
    line: usize,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), blocks.last_mut()) {
            (Some(_), _) if is_open => is_open = false,
            (Some(kind), _) => {
                is_open = true;
                blocks.push(Block { kind: kind.to_owned(), line: index + 1, text: String::new() });
            }
            (None, Some(block)) if is_open => block.text.extend([line, "\n"]),
            _ => {}
        }
    }
    blocks
}

/// A shell that remembers what was said to it, in a folder of its own.
struct TutorialShell {
    folder: TempDir,
    shell: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl TutorialShell {
    fn new() -> Self {
        let (database, role) = (with_process_id(DATABASE), with_process_id(ROLE));
        psql("postgres", &format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"));
        psql("postgres", &format!("DROP ROLE IF EXISTS {role}"));
        psql("postgres", &format!("CREATE DATABASE {database}"));
        let folder = tempfile::tempdir().unwrap();
        let variable = |name: &str| std::env::var(name).unwrap();
        let network = variable("TIDEGATE_TEST_POSTGRES_TCP");
        let own = Path::new(env!("CARGO_BIN_EXE_tidegate")).parent().unwrap().display().to_string();
        let programs = [own, variable("TIDEGATE_TEST_POSTGRES_BIN"), variable("PATH")].join(":");
        let mut command = Command::new("bash");
        // The environment variables that the tests of the binary remove are removed here, too.
        for (name, value) in tidegate().get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("PATH", programs)
            .env("DSN", format!("{} dbname={database}", server()))
            .env("SHOP_DSN", format!("{network} dbname={database} user={role} password=tutorial"));
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut typed, output) = (shell.stdin.take().unwrap(), BufReader::new(shell.stdout.take().unwrap()));
        // What runs in the background ends with the shell.
        typed.write_all(b"set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n").unwrap();
        Self { folder, shell, input: Some(typed), output }
    }

    /// Runs a block, and gives what it printed: what went well on standard output, what failed on both.
    fn run(&mut self, block: &Block, script: &str, fails: bool) -> String {
        let (file, output) = (self.folder.path().join(".block"), self.folder.path().join(".output"));
        fs::write(&file, script).unwrap();
        let line = match fails {
            true => "if (. ./.block) >.output 2>&1; then false; fi\necho done\n",
            false => ". ./.block >.output 2>.errors\necho done\n",
        };
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        let printed = fs::read_to_string(output).unwrap();
        let errors = fs::read_to_string(self.folder.path().join(".errors")).unwrap_or_default();
        let ended = if fails { "did not fail" } else { "failed" };
        assert_eq!(answer, "done\n", "the block in line {} {ended}:\n{}{printed}{errors}", block.line, block.text);
        printed
    }

    /// Does what a reader does with the block; what it prints, if it is run.
    fn follow(&mut self, block: &Block) -> Option<String> {
        let (language, how) = block.kind.split_once(' ').unwrap_or((block.kind.as_str(), ""));
        let fails = how == "fails";
        assert!(fails || how.is_empty(), "line {}: {}", block.line, block.kind);
        let file = block.text.lines().next().and_then(|first| first.strip_prefix("-- "));
        let file = file.filter(|name| name.starts_with("handlers/") && name.ends_with(".sql"));
        match (language, file) {
            ("sh", _) => Some(self.run(block, &block.text, fails)),
            ("sql", Some(file)) => {
                fs::write(self.folder.path().join(file), &block.text).unwrap();
                None
            }
            ("sql", None) => {
                fs::write(self.folder.path().join(".block.sql"), &block.text).unwrap();
                Some(self.run(block, "psql \"$DSN\" -X -q -v ON_ERROR_STOP=1 -v VERBOSITY=terse <.block.sql\n", fails))
            }
            ("yaml", _) => {
                fs::write(self.folder.path().join("tidegate.yaml"), &block.text).unwrap();
                None
            }
            ("" | "text", _) => None,
            _ => panic!("line {}: nobody knows what {} is", block.line, block.kind),
        }
    }
}

impl Drop for TutorialShell {
    fn drop(&mut self) {
        // The end of what is typed ends the shell, and that what it started.
        drop(self.input.take());
        let _ = self.shell.wait();
    }
}

/// The page with a condition in place of each `sleep 1`: the tool of the next call is offered. A second may be too short.
fn replace_sleeps(page: &str) -> String {
    let mut parts = page.split("sleep 1\n");
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `call "$CALLER" TOOL ARGUMENTS`
        let words: Vec<&str> = part.split_whitespace().take(3).collect();
        let ["call", caller, tool] = words[..] else { panic!("no call after a sleep: {part}") };
        let is_offered = format!(r#"curl -s http://{ADDRESS}/rest/tools -H {caller} | grep -q '"name":"{tool}"'"#);
        replaced.push_str(&format!("for attempt in $(seq 600); do {is_offered} && break; sleep 0.1; done\n{part}"));
    }
    replaced
}

/// Without what differs from run to run: times, references, and blanks at the ends of lines.
fn without_varying_text(text: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<String> = line.trim_end().split(' ').map(str::to_owned).collect();
        for place in 0..words.len() {
            let is_time = words.get(place + 1).is_some_and(|unit| unit == "ms");
            if is_time && words[place].chars().all(|one| one.is_ascii_digit()) {
                "N".clone_into(&mut words[place]);
            }
            let word = words[place].trim_end_matches(['.', '"', '}', ']', ',']);
            if word.len() == 36 && word.chars().all(|one| one.is_ascii_hexdigit() || one == '-') {
                words[place] = words[place].replace(word, "REFERENCE");
            }
        }
        words.join(" ")
    };
    text.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The tutorial, and the reference page that continues its examples.
const PAGES: [&str; 2] = ["tutorials/postgresql-handlers.md", "reference/postgresql-handlers.md"];

/// The page with the name of the role on the server.
fn read_page(name: &str) -> String {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap();
    page.replace(ROLE, &with_process_id(ROLE))
}

#[test]
fn every_step_of_the_tutorial_works() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let read = |page: &&str| blocks(&replace_sleeps(&read_page(page)).replace(ADDRESS, &address));
    let blocks: Vec<_> = PAGES.iter().flat_map(read).collect();
    let mut reader = TutorialShell::new();
    let mut printed: Option<String> = None;
    for block in &blocks {
        match (block.kind.as_str(), printed.take()) {
            ("text", Some(printed)) => {
                let (visible, printed) = (without_varying_text(&block.text), without_varying_text(&printed));
                assert_eq!(visible, printed, "line {}: the page shows\n{visible}\nand there is\n{printed}", block.line);
            }
            ("text", None) => panic!("line {}: nothing was printed before it", block.line),
            _ => printed = reader.follow(block),
        }
    }
}

#[test]
fn blocks_are_found_with_their_lines() {
    let block = |kind: &str, line, text: &str| Block { kind: kind.to_owned(), line, text: text.to_owned() };
    let page = "a\n```sh\nls\n\nls\n```\ntext\n```sql fails\nSELECT\n```\n";
    assert_eq!(blocks(page), [block("sh", 2, "ls\n\nls\n"), block("sql fails", 8, "SELECT\n")]);
}

#[test]
fn sleeps_are_replaced() {
    let page = replace_sleeps("```sh\nsleep 1\ncall \"$saul\" orders '{}'\n```\n");
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!((lines.len(), lines[2]), (4, "call \"$saul\" orders '{}'"));
    assert!(lines[1].contains(r#"-H "$saul" | grep -q '"name":"orders"'"#), "{page}");
}

#[test]
fn varying_text_is_removed() {
    let text = "ok  12 ms  \nunder 01234567-89ab-cdef-0123-456789abcdef.\"\n12 m\n";
    assert_eq!(without_varying_text(text), "ok  N ms\nunder REFERENCE.\"\n12 m");
}
