//! `tidegate init`, `tidegate health` and the manual pages.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::server::Server;
use super::{CommandOutput, Shop, run_in, tidegate};

/// Runs `tidegate init` in `folder`, which is also the home folder, and answers with `lines`.
fn init(folder: &Path, arguments: &[&str], lines: &str) -> CommandOutput {
    let mut command = tidegate();
    command.current_dir(folder).env("HOME", folder).env_remove("XDG_CONFIG_HOME").env_remove("DATABASE_URL");
    command.arg("init").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    running.wait_with_output().unwrap().into()
}

#[test]
fn proposals_become_a_configuration_that_answers() {
    let shop = Shop::new();
    let ran = init(shop.0.path(), &["--yes"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let folder = shop.0.path().canonicalize().unwrap();
    // Another server may use the port.
    let lines = ran.stdout.lines().filter(|line| !line.contains("127.0.0.1:7070")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(lines.replace(&folder.display().to_string(), "FOLDER"), @r"
    wrote tidegate.yaml
    ok     configuration FOLDER/tidegate.yaml: 0 tools of your own
    ok     database shop: 2 tables
    ok     callers over HTTP need no key; therefore only this machine is listened to
    ok     10 tools, and a call was answered
    ");
    let written = std::fs::read_to_string(shop.0.path().join("tidegate.yaml")).unwrap();
    assert!(written.contains("  - name: shop\n    files: ./shop\n"), "{written}");
    let answered = run_in(shop.0.path(), &["query", "SELECT count(*) AS n FROM orders"]);
    assert_eq!((answered.code, answered.stdout.lines().nth(1)), (Some(0), Some("3")), "{answered:?}");
    let again = init(shop.0.path(), &["--yes"], "");
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("tidegate.yaml exists"), "{again:?}");
}

#[test]
fn the_report_is_that_of_doctor() {
    let shop = Shop::new();
    std::fs::write(shop.path().join("broken.parquet"), "no parquet").unwrap();
    let ran = init(shop.0.path(), &["--yes"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("WRONG  table shop.broken cannot be read"), "{ran:?}");
    assert!(ran.stderr.contains("`tidegate doctor` checks it again"), "{ran:?}");
    let doctor = run_in(shop.0.path(), &["doctor"]);
    assert_eq!(ran.stdout.strip_prefix("wrote tidegate.yaml\n"), Some(doctor.stdout.as_str()));
}

/// The globs that it writes are no part of the names.
#[test]
fn files_of_several_kinds_have_the_names_of_a_served_folder() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.csv", "x\n1\n"), ("b.json", "{\"x\": 1}\n"), ("broken.tsv", "a\tb\n1\t2\n3\t4\t\n")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let ran = init(folder.path(), &["--yes"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let written = std::fs::read_to_string(folder.path().join("tidegate.yaml")).unwrap();
    assert!(written.contains("./*.tsv"), "{written}");
    assert!(ran.stdout.contains("tables: {broken: {ragged: trim}}"), "{ran:?}");
}

#[test]
fn answers_decide() {
    let shop = Shop::new();
    std::fs::create_dir(shop.0.path().join(".cursor")).unwrap();
    let ran = init(shop.0.path(), &[], "1\n2\nn\ny\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Cursor: made "), "{ran:?}");
    let entry = std::fs::read_to_string(shop.0.path().join(".cursor/mcp.json")).unwrap();
    assert!(entry.contains("--config") && entry.contains("tidegate.yaml"), "{entry}");
    let tools = run_in(shop.0.path(), &["tools"]).stdout;
    assert!(tools.contains("query(") && !tools.contains("\nsql("), "{tools}");
    let added = run_in(shop.0.path(), &["key", "add", "ann", "--role", "reader"]);
    assert_eq!(added.code, Some(0), "{added:?}");
}

#[test]
fn nothing_is_written_without_answers() {
    let empty = tempfile::tempdir().unwrap();
    for (arguments, message) in [
        (&["--yes"][..], "no data was found here"),
        (&[], "the questions were not answered; nothing was written"),
        (&["./nowhere"], "./nowhere does not exist"),
        (&["postgres://ann:secret@db/shop"], "the address contains a password"),
    ] {
        let ran = init(empty.path(), arguments, "");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(message) && !ran.stderr.contains("secret"), "{ran:?}");
    }
    assert!(!empty.path().join("tidegate.yaml").exists());
}

#[test]
fn health_is_that_of_the_server() {
    let shop = Shop::new();
    let mut command = tidegate();
    command.args(["serve", "--listen", "127.0.0.1:0"]).arg(shop.path());
    let server = Server::start(&mut command);
    let address = server.address().to_string();
    let healthy = run_in(shop.0.path(), &["health", "--address", &address]);
    assert_eq!((healthy.code, healthy.stdout.as_str()), (Some(0), "ready\n"), "{healthy:?}");
    server.signal("TERM");
    server.wait_for_exit();
    let gone = run_in(shop.0.path(), &["health", "--address", &address]);
    assert_eq!((gone.code, gone.stdout.as_str()), (Some(1), ""), "{gone:?}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["man", "pages"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for page in ["tidegate.1", "tidegate-serve.1", "tidegate-config-check.1", "tidegate-init.1"] {
        let text = std::fs::read_to_string(folder.path().join("pages").join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    assert!(!folder.path().join("pages/tidegate-man.1").exists(), "hidden commands have none");
}
