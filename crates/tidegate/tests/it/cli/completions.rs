//! `tidegate completions`, and what its scripts offer while a command is typed.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{CommandOutput, ConfiguredFolder, run, tidegate};

const CONFIGURATION: &str = "
databases:
  - {name: shop, files: shop}
  - {name: plant, ingest: plant, tables: {sensors: {columns: {id: int64}}, alarms: {columns: {id: int64}}}}
tools:
  - {name: orders_of, description: 'Orders of a customer.', database: shop, sql: 'SELECT * FROM orders WHERE customer = :name',
     input: {name: {type: string}}}
toolsets: {orders: [orders_*]}
roles: [{name: clerk, toolsets: [orders]}, {name: owner, toolsets: ['*']}]
";
/// How long a check is repeated: the words of a node are missing if it does not open within a second.
const REPEAT_WITHIN: Duration = Duration::from_secs(60);

/// The lines for the cursor after `line`, whose last word is incomplete; flags only if it begins one.
fn complete_in(folder: &Path, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let begins_flag = words.last().is_some_and(|word| word.starts_with('-'));
    let mut command = tidegate();
    command.current_dir(folder).env("TIDEGATE_COMPLETE", "fish").arg("--").args(words);
    let ran = CommandOutput::from(command.output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{line}");
    let lines = ran.lines().into_iter().filter(|line| begins_flag || !line.starts_with('-'));
    lines.map(str::to_owned).collect()
}

/// Checks that `complete` returns the `expected` lines, at the latest after some repetitions.
#[track_caller]
fn check_lines(subject: &str, expected: &[&str], complete: impl Fn() -> Vec<String>) {
    let started = Instant::now();
    let mut lines = complete();
    while lines != expected && started.elapsed() < REPEAT_WITHIN {
        lines = complete();
    }
    assert_eq!(lines, expected, "{subject}");
}

/// Checks the words for the cursor after `line`, without their descriptions.
#[track_caller]
fn check(configured: &ConfiguredFolder, line: &str, expected: &[&str]) {
    check_lines(line, expected, || {
        let found = complete_in(configured.folder(), line);
        found.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    });
}

#[test]
fn scripts_are_printed() {
    for shell in ["bash", "elvish", "fish", "zsh"] {
        let ran = run(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let request = ran.stdout.replace('"', "");
        assert!(request.contains(&format!("TIDEGATE_COMPLETE={shell}")), "{shell}: {request}");
    }
    assert_eq!(run(&["completions", "dos"]).code, Some(2));
    let unknown = CommandOutput::from(tidegate().env("TIDEGATE_COMPLETE", "dos").output().unwrap());
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""), "{unknown:?}");
}

#[test]
fn commands_flags_and_fixed_values_are_completed() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    check(&configured, "tidegate que", &["query"]);
    check(&configured, "tidegate query --max", &["--max-rows"]);
    check(&configured, "tidegate client clau", &["claude-code", "claude-desktop"]);
    check(&configured, "tidegate client cursor --pro", &["--project"]);
    check(&configured, "tidegate query --config ./ti", &["./tidegate.yaml"]);
    check(&configured, "tidegate import ./sh", &["./shop/"]);
    check(&configured, "tidegate query SELECT ", &[".", "shop/", "tidegate.yaml"]);
    check(&configured, "tidegate query SELECT a=./sh", &["a=./shop/"]);
    check(&configured, "tidegate query ", &[]);
    check(&configured, "tidegate import --on-reject ", &["all", "row"]);
}

#[test]
fn names_of_the_configuration_are_completed() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    check(&configured, "tidegate query SELECT --database ", &["plant", "shop"]);
    check(&configured, "tidegate query SELECT --database=s", &["--database=shop"]);
    check(&configured, "tidegate export SELECT --database p", &["plant"]);
    check(&configured, "tidegate tools --toolset ", &["orders"]);
    check(&configured, "tidegate access explain --role clerk,o", &["clerk,owner"]);
    check(&configured, "tidegate key add ann --role ", &["clerk", "owner"]);
    check(&configured, "tidegate call orders", &["orders_of"]);
    check(&configured, "tidegate call orders_of ", &["cursor=", "extract=", "format=", "name="]);
    check(&configured, "tidegate access explain --role owner orders", &["orders_of"]);
    let line = "tidegate call orders";
    check_lines(line, &["orders_of\tOrders of a customer."], || complete_in(configured.folder(), line));
}

#[test]
fn tools_and_tables_of_the_node_are_completed() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    check(&configured, "tidegate call list_t", &["list_tables"]);
    check(&configured, "tidegate call query table=shop", &["table=shop.2024", "table=shop.orders"]);
    check(&configured, "tidegate call list_tables database=", &["database=plant", "database=shop"]);
    check(&configured, "tidegate import rows.csv --to plant.", &["plant.alarms", "plant.sensors"]);
    // A table that the configuration does not name.
    std::fs::write(configured.folder().join("rows.ndjson"), "{\"id\": 1}\n").unwrap();
    let imported = configured.run(&["import", "rows.ndjson", "--to", "plant.further", "--create", "--yes"]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    check(&configured, "tidegate import rows.csv --to plant.f", &["plant.further"]);
    check(&configured, "tidegate ingest status ", &["plant", "plant.alarms", "plant.further", "plant.sensors"]);
    check(&configured, "tidegate ingest status --connect http://127.0.0.1:7070 ", &[]);
}

#[test]
fn the_configuration_and_the_paths_of_the_line_are_read() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let file = configured.folder().join("tidegate.yaml");
    std::fs::create_dir(configured.folder().join("empty")).unwrap();
    let elsewhere = configured.folder().join("empty");
    let line = format!("tidegate --config {} query SELECT --database ", file.display());
    assert_eq!(complete_in(&elsewhere, &line), ["plant", "shop"]);
    let line = format!("tidegate query SELECT ./shop a=./empty --config {} --database ", file.display());
    assert_eq!(complete_in(configured.folder(), &line), ["a", "plant", "shop"]);
    assert_eq!(
        complete_in(configured.folder(), "tidegate query SELECT ./shop a=./empty --database "),
        ["a", "all", "shop"]
    );
    check(&configured, "tidegate call query --path=./shop table=", &["table=2024", "table=orders"]);
}

#[test]
fn tables_of_a_network_are_completed() {
    let node = "{name: oslo, url: 'grpc://127.0.0.1:1'}";
    let configured = ConfiguredFolder::new(&format!(
        "databases: [{{name: sites, network: {{nodes: [{node}]}}, ingest: [readings, alarms]}}]\n"
    ));
    check(&configured, "tidegate import rows.csv --to sites.", &["sites.alarms", "sites.readings"]);
}

#[test]
fn a_line_with_an_error_has_no_values() {
    let configured = ConfiguredFolder::new("databases: [{name: shop, fi");
    check(&configured, "tidegate query SELECT --database ", &[]);
    check(&configured, "tidegate call ", &[]);
    check(&configured, "tidegate query --config missing.yaml --database ", &[]);
    check(&configured, "tidegate ingest status ", &[]);
    check(&configured, "tidegate frobnicate x", &[]);
    // What clap alone lists is still there.
    check(&configured, "tidegate import --on-reject a", &["all"]);
}

#[test]
fn a_database_that_does_not_answer_leaves_the_names_of_the_configuration() {
    // Connections succeed, and nothing is ever sent.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let configured = ConfiguredFolder::new(&format!(
        "
databases: [{{name: shop, postgres: 'postgres://reader@{address}/shop?connect_timeout=600'}}]
tools: [{{name: orders_of, description: Orders, sql: SELECT 1}}]
"
    ));
    let started = Instant::now();
    check(&configured, "tidegate query SELECT --database ", &["shop"]);
    check(&configured, "tidegate call orders", &["orders_of"]);
    // One of the runs opens a node for a second, not for the 600 s of the connection.
    assert!(started.elapsed() < REPEAT_WITHIN, "{:?}", started.elapsed());
}

#[test]
fn nothing_is_written() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    check(&configured, "tidegate call list_t", &["list_tables"]);
    check(&configured, "tidegate import rows.csv --to plant.", &["plant.alarms", "plant.sensors"]);
    let mut names: Vec<_> = std::fs::read_dir(configured.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["shop", "tidegate.yaml"]);
}

#[allow(clippy::print_stderr, reason = "the cause why a test does nothing")]
fn is_installed(shell: &str) -> bool {
    let is_installed = Command::new(shell).arg("--version").output().is_ok();
    if !is_installed {
        eprintln!("skipped: {shell} is not installed");
    }
    is_installed
}

/// The lines that a script for `shell` prints, which completes lines.
fn in_shell(configured: &ConfiguredFolder, shell: &str, arguments: &[&str], script: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_tidegate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(shell);
    for (name, value) in tidegate().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(configured.folder()).env("PATH", path).args(arguments).arg(script).stdin(Stdio::null());
    let ran = CommandOutput::from(command.output().unwrap());
    assert_eq!(ran.stderr, "", "{shell}");
    ran.lines().into_iter().map(str::to_owned).collect()
}

/// Runs the function of the script as bash does, with the words that bash makes of the line.
const BASH: &str = r#"
source <(tidegate completions bash)
complete -p tidegate
try() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    local current=${COMP_WORDS[COMP_CWORD]}
    [[ $current == [=:]* ]] && current=
    _tidegate tidegate "$current" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[*]}"
}
touch 'rows of $(ann).csv'
try tidegate query "'SELECT 1'" --database ''
try tidegate query "'SELECT 1'" a = ./shop --database ''
try tidegate import 'rows\ of'
try tidegate query "'SELECT 1'" --database = s
try tidegate query "'SELECT 1'" --database =
try tidegate call list_t
try tidegate call query table = shop.or
try tidegate import rows.csv --to plant.
try tidegate client curs
COMP_WORDS=(tidegate call) COMP_CWORD=5 COMPREPLY=()
_tidegate ./missing '' call
echo "${#COMPREPLY[@]}"
"#;

#[test]
fn bash_completes_values() {
    if !is_installed("bash") {
        return;
    }
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let expected = [
        "complete -o nosort -F _tidegate tidegate",
        "plant shop",
        "a",
        r"rows\ of\ \$\(ann\).csv",
        "shop",
        "plant shop",
        "list_tables",
        "shop.orders",
        "plant.alarms plant.sensors",
        "cursor",
        "0",
    ];
    check_lines("bash", &expected, || in_shell(&configured, "bash", &["--norc", "-c"], BASH));
}

/// Runs the function of the script as zsh does. What is offered is printed in place of the menu.
const ZSH: &str = r#"
compdef() { print -r -- "$@" }
_describe() { print -r -- "${(@)complete_words}" "${(@)open_words}" }
source <(tidegate completions zsh)
try() {
    local -a words=("$@")
    local CURRENT=$# PREFIX=${@[-1]}
    _tidegate
}
try tidegate query "'SELECT 1'" --database ''
try tidegate query --database=s
try tidegate call orders
try tidegate call orders_of n
try tidegate import rows.csv --to plant.
try tidegate client curs
try tidegate serve ./s
try ./missing call ''
"#;

#[test]
fn zsh_completes_values() {
    if !is_installed("zsh") {
        return;
    }
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let expected = [
        "_tidegate tidegate",
        "plant shop",
        "--database=shop",
        "orders_of:Orders of a customer.",
        "name=",
        "plant.alarms plant.sensors",
        "cursor",
        "./shop/",
        "",
    ];
    check_lines("zsh", &expected, || {
        let lines = in_shell(&configured, "zsh", &["-f", "-c"], ZSH);
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    });
}

const FISH: &str = "
tidegate completions fish | source
for line in 'tidegate query SELECT --database ' 'tidegate call list_t' 'tidegate import rows.csv --to plant.' 'tidegate client curs'
    string join ' ' (complete -C $line | string replace -r '\\t.*' '')
end
";

#[test]
fn fish_completes_values() {
    if !is_installed("fish") {
        return;
    }
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let expected = ["plant shop", "list_tables", "plant.alarms plant.sensors", "cursor"];
    check_lines("fish", &expected, || in_shell(&configured, "fish", &["--no-config", "-c"], FISH));
}
