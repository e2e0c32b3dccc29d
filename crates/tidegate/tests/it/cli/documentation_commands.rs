//! Every command that the pages for people show, run as it stands there: those of `sh` blocks, and those in the running
//! text. One that is not run says here why.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use super::server::Server;
use super::{CommandOutput, tidegate};

/// How commands of the running text begin.
const PROGRAMS: [&str; 4] = ["tidegate ", "cargo ", "scripts/test", "bench/run"];

/// What stands for the program before it is installed.
const FROM_SOURCE: &str = "cargo run -- ";

/// Commands that are not run, and why.
const NOT_RUN: [(&str, &str); 54] = [
    ("bench/run", "takes hours, and measures nothing on a machine that works on something else"),
    ("bench/run answers", "as bench/run"),
    ("bench/run load", "as bench/run"),
    ("bench/run statements", "as bench/run"),
    ("bench/run ingest", "as bench/run"),
    ("bench/run latency", "as bench/run"),
    ("bench/run memory", "as bench/run"),
    ("bench/run nodes", "as bench/run"),
    ("bench/run parts", "as bench/run"),
    ("bench/run policies", "as bench/run"),
    ("bench/run tpch", "as bench/run"),
    ("bench/run postgres-rows", "as bench/run"),
    ("bench/run postgres-load", "as bench/run"),
    ("bench/run postgres-start", "as bench/run"),
    ("bench/run declared", "as bench/run"),
    ("bench/run federated", "as bench/run"),
    ("bench/run stored", "as bench/run"),
    ("bench/run handlers", "as bench/run"),
    ("bench/run tasks listeners", "as bench/run"),
    ("bench/run network", "as bench/run"),
    ("bench/run tokens", "as bench/run"),
    ("bench/run transports", "as bench/run"),
    ("bench/ab OLD NEW load", "as bench/run, with two programs"),
    ("cargo run --package tidegate-bench --bin tokens", "as bench/run tokens"),
    (
        "tidegate fetch https://data.example.com/results/2f1c1f0e-9d1b-4c55-8a33-0d6a3a1f7c11 -o orders.parquet",
        "the server is nobody's; cli/results.rs fetches from one that runs",
    ),
    (
        "tidegate export 'SELECT * FROM orders' -o orders.csv --connect https://data.example.com",
        "as tidegate fetch; cli/export.rs exports what is here",
    ),
    ("cargo build", "takes 5 minutes; the tests run what it builds"),
    ("cargo build --features full", "as cargo build"),
    (
        "cargo build --release",
        "takes far longer than the debug build; scripts/test builds the binary that the foreign clients are run against",
    ),
    (
        "cargo run --example embed",
        "listens on a port of its own choice until it is stopped; the example is built with the tests",
    ),
    ("scripts/test", "runs this very test"),
    ("scripts/test --all", "as scripts/test, and takes hours"),
    ("scripts/test-packages", "needs packages of the release build; scripts/release runs it"),
    ("tidegate serve postgres://…", "any server stands for the address; cli/postgres.rs serves one"),
    ("tidegate stdio postgres://…", "as tidegate serve postgres://…"),
    (
        "scripts/test fuzz",
        "takes minutes, and many more to build; the stored corpora are run by the tests of each crate",
    ),
    ("scripts/test deny", "asks the registry, and may have to build cargo-deny; a part of scripts/test --all"),
    ("tidegate audit verify", "needs a log that a node has written; cli/audit.rs verifies some"),
    ("tidegate call refund amount=5", "asks in a terminal; cli/elicitation.rs answers such questions"),
    ("tidegate client NAME", "NAME stands for any client; cli/client.rs and src/mcp_clients/tests try each of them"),
    ("tidegate client NAME --write", "as tidegate client NAME"),
    (
        "tidegate query \"SELECT status, count(*) FROM access GROUP BY 1\" /var/log/nginx",
        "needs the logs of nginx; the tests of the engine read such files",
    ),
    ("tidegate logs", "needs a log source; cli/logs.rs prints the entries of one"),
    ("tidegate logs SOURCE QUERY", "as tidegate logs"),
    ("tidegate init", "asks questions, and the configuration of the page exists; cli/init.rs runs it"),
    ("tidegate metrics", "needs a metric source; cli/metric_sources.rs prints the metrics of one"),
    ("tidegate metrics NAME", "as tidegate metrics"),
    ("tidegate metrics --compare", "as tidegate metrics"),
    ("tidegate serve ./logs", "needs a folder with logs; logs_tutorial.rs serves one"),
    (
        "tidegate serve",
        "as in first-configuration.md where a step says so; elsewhere the text speaks of the running program",
    ),
    (
        "tidegate config import toolbox.yaml > tidegate.yaml",
        "the file is the reader's; cli/import.rs converts such files",
    ),
    ("tidegate config check FILE", "FILE is the reader's; cli/config.rs checks such files"),
    ("tidegate stdio", "speaks MCP with the client that starts it; cli/stdio.rs does that"),
    ("tidegate stdio --connect URL", "as tidegate stdio; URL stands for any server"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Pages whose commands another test runs: `handlers_tutorial.rs`, `knowledge_tutorial.rs`, `logs_tutorial.rs`, or
/// `tests/clients/pages.py`.
const RUN_ELSEWHERE: [&str; 4] =
    ["postgresql-handlers.md", "teach-your-data.md", "find-a-fault-in-logs.md", "how-to/bridge.md"];

/// README.md, SECURITY.md and the pages in docs, by path. The generated list of commands is not run.
pub(super) fn pages() -> BTreeMap<String, String> {
    let kinds = ["docs", "docs/tutorials", "docs/how-to", "docs/reference", "docs/explanation"];
    let files = kinds.iter().flat_map(|kind| std::fs::read_dir(root().join(kind)).unwrap());
    let docs = files.map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let docs = docs.filter(|path| !path.ends_with("command-line.md"));
    let docs = docs.filter(|path| !RUN_ELSEWHERE.iter().any(|page| path.ends_with(page)));
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    docs.chain(["README.md", "SECURITY.md"].map(|name| root().join(name))).map(read).collect()
}

/// A fenced block: its language and its lines.
pub(super) type Block = (String, Vec<String>);

/// The text with its fenced blocks apart, in their order; each block leaves an empty line.
pub(super) fn split_blocks(page: &str) -> Vec<Result<String, Block>> {
    let mut parts: Vec<Result<String, Block>> = vec![Ok(String::new())];
    for line in page.lines() {
        match (line.trim().strip_prefix("```"), parts.last_mut()) {
            (Some(_), Some(Err(_))) => parts.push(Ok(String::new())),
            (Some(language), _) => parts.push(Err((language.to_owned(), Vec::new()))),
            (None, Some(Err((_, lines)))) => lines.push(line.to_owned()),
            (None, Some(Ok(text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    parts
}

/// The commands of a page in their order, without comments.
fn commands(page: &str) -> Vec<String> {
    let of_part = |part: Result<String, Block>| match part {
        Ok(text) => {
            // What stands between two ticks; a line may break in it.
            let spans =
                text.split('`').skip(1).step_by(2).map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
            spans.filter(|span| PROGRAMS.iter().any(|program| format!("{span} ").starts_with(program))).collect()
        }
        Err((language, lines)) if language == "sh" => {
            let command = |line: &str| line.split(" # ").next().unwrap_or_default().trim().to_owned();
            // A command may continue on the next line.
            let text = lines.join("\n").replace("\\\n", " ");
            text.lines().map(command).filter(|command| !command.is_empty()).collect::<Vec<_>>()
        }
        Err(_) => Vec::new(),
    };
    split_blocks(page).into_iter().flat_map(of_part).collect()
}

/// A folder as a reader of `page` has it: data, the configuration of the page, and the program on the path.
pub(super) fn command_folder(page: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    // Of the repository, or the reader's own.
    let data = folder.path().join(if page.contains("./data/demo") { "data/demo" } else { "data" });
    std::fs::create_dir_all(&data).unwrap();
    for name in ["flights.parquet", "airlines.parquet"] {
        std::fs::copy(root().join("data/demo").join(name), data.join(name)).unwrap();
    }
    // A server with TLS has a certificate.
    let certified = rcgen::generate_simple_self_signed(["data.example.com".to_owned()]).unwrap();
    std::fs::create_dir(folder.path().join("tls")).unwrap();
    std::fs::write(folder.path().join("tls/cert.pem"), certified.cert.pem()).unwrap();
    std::fs::write(folder.path().join("tls/key.pem"), certified.signing_key.serialize_pem()).unwrap();
    // A node verifies the tokens of another server.
    let signer = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    std::fs::write(folder.path().join("network-public.pem"), signer.public_key_pem()).unwrap();
    let configuration =
        split_blocks(page).into_iter().filter_map(Result::err).filter(|(language, _)| language == "yaml");
    let configuration: Vec<String> = configuration.map(|(_, lines)| lines.join("\n")).collect();
    if !configuration.is_empty() {
        std::fs::write(folder.path().join("tidegate.yaml"), configuration.join("\n")).unwrap();
    }
    folder
}

/// Runs `command` as a shell does. A server is stopped as soon as it listens, on whatever port is free.
fn run(command: &str, folder: &Path) {
    let program = Path::new(env!("CARGO_BIN_EXE_tidegate"));
    let mut line = command.replace(FROM_SOURCE, "tidegate ");
    let serves = ["tidegate serve", "tidegate demo"].iter().any(|verb| line.starts_with(verb));
    if serves {
        line = line.replace("--listen 127.0.0.1:7070 ", "");
        line.push_str(" --listen 127.0.0.1:0 --log error");
    }
    // The environment variables that the tests of the binary remove are removed here, too.
    let unreachable = tidegate();
    let mut shell = std::process::Command::new("sh");
    for (name, value) in unreachable.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    // A server takes the shell's place, so that signals reach it.
    shell.arg("-c").arg(if serves { format!("exec {line}") } else { line });
    shell.current_dir(folder).env("HOME", folder).env("PATH", path).stdin(Stdio::null());
    if serves {
        let server = Server::start(&mut shell);
        server.signal("TERM");
        assert_eq!(server.wait_for_exit().0.code(), Some(0), "{command}");
    } else {
        let ran = CommandOutput::from(shell.output().unwrap());
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
    }
}

#[test]
fn every_command_of_every_page_works() {
    let mut left_out = BTreeSet::new();
    for (name, page) in pages() {
        let folder = command_folder(&page);
        for command in commands(&page) {
            let reason = NOT_RUN.iter().find(|(left_out, _)| *left_out == command);
            // Where a page serves its configuration, that is a step of it.
            let is_step = name.ends_with("first-configuration.md") && command == "tidegate serve";
            match reason {
                Some((command, _)) if !is_step => {
                    left_out.insert(*command);
                }
                _ => run(&command, folder.path()),
            }
        }
    }
    let unknown: Vec<_> = NOT_RUN.iter().filter(|(command, _)| !left_out.contains(command)).collect();
    assert!(unknown.is_empty(), "no page has these any more: {unknown:?}");
}

/// Commands with commands of their own.
const COMMAND_GROUPS: [&str; 9] = ["config", "key", "token", "access", "audit", "pg", "mysql", "transport", "ingest"];

/// The words of the commands in blocks that are not run, because they need a server or files of the reader.
fn illustrative_commands(page: &str) -> Vec<Vec<String>> {
    let of_block = |(language, lines): Block| {
        let text = if language == "sh" { String::new() } else { lines.join("\n").replace("\\\n", " ") };
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines = text.lines().map(|line| line.trim().trim_start_matches("$ "));
        lines.filter(|line| line.starts_with("tidegate ")).map(words).collect::<Vec<_>>()
    };
    split_blocks(page).into_iter().filter_map(Result::err).flat_map(of_block).collect()
}

#[test]
fn commands_that_are_not_run_have_known_options() {
    let mut checked = 0;
    for (name, page) in pages() {
        for words in illustrative_commands(&page) {
            let depth = if COMMAND_GROUPS.contains(&words[1].as_str()) { 3 } else { 2 };
            let end =
                words.iter().position(|word| ["#", "|", ">", "<"].contains(&word.as_str())).unwrap_or(words.len());
            let ran = CommandOutput::from(tidegate().args(&words[1..depth]).arg("--help").output().unwrap());
            assert_eq!(ran.code, Some(0), "{name}: {words:?}");
            let known: BTreeSet<&str> = ran.stdout.split([' ', ',', '\n']).collect();
            for option in words[depth..end].iter().filter(|word| word.len() > 1 && word.starts_with('-')) {
                let option = option.split('=').next().unwrap_or_default();
                assert!(known.contains(option), "{name}: {option} of {words:?}");
            }
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} commands were found");
}

#[test]
fn commands_are_found_wherever_they_stand() {
    let page = "Say `tidegate\nkey list`, not `bench/results`.\n```sh\ntidegate serve   # comment\n\nls\n```\n\
                ```yaml\nx: 1\n```\n`cargo build`, `bench/run`\n";
    assert_eq!(commands(page), ["tidegate key list", "tidegate serve", "ls", "cargo build", "bench/run"]);
    assert_eq!(commands("```\ntidegate unlabelled\n```\n"), Vec::<String>::new());
}
