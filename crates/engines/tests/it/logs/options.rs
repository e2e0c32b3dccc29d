//! Declared formats, patterns and time zones.

use std::collections::BTreeMap;

use tidegate_engines::{LogTableOptions, TextTableOptions};

use super::{combined, open_with_options, settle};
use crate::support::Folder;

fn options(
    format: Option<&str>,
    pattern: Option<&str>,
    groups: &[(&str, &str)],
    time_zone: Option<&str>,
) -> LogTableOptions {
    let groups: BTreeMap<String, String> =
        groups.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    LogTableOptions::parse(format, pattern, &groups, time_zone).unwrap()
}

#[tokio::test]
async fn a_declared_format_makes_a_log_of_a_table_or_of_a_file_that_is_named() {
    let folder = Folder::with(&[
        ("trace.txt", &combined("/a", 200)),
        ("events.ndjson", "{\"time\":\"2024-03-01T12:00:00Z\",\"level\":\"error\",\"msg\":\"x\"}\n"),
        ("plain.ndjson", "{\"time\":\"2024-03-01T12:00:00Z\"}\n"),
        ("none.log", ""),
    ]);
    let tables = [
        ("trace.txt", options(Some("combined"), None, &[], None)),
        ("events", options(Some("json"), None, &[], None)),
        ("none", options(Some("common"), None, &[], None)),
    ];
    let node = open_with_options(&folder, &tables);
    assert_eq!(node.tables().await, "events: readable\nnone: readable\nplain: 1 rows\ntrace: readable");
    assert_eq!(node.rows("SELECT path FROM trace").await, "/a");
    assert_eq!(node.rows("SELECT time, normalized_severity FROM events").await, "2024-03-01T12:00:00Z|error");
    assert_eq!(node.rows("SELECT count(status) FROM none").await, "0");
    assert!(node.database.table_option_problems().await.unwrap().is_empty());
}

/// Files with keys and passwords are beside logs, and have their names.
#[tokio::test]
async fn the_key_of_a_log_makes_no_table_of_another_file() {
    let folder = Folder::with(&[
        ("app.log", "2024-03-01T12:00:00Z started\n"),
        ("app.env", "PASSWORD=hunter2\n"),
        ("app.key", "hunter2\n"),
        ("app.conf.1", "password: hunter2\n"),
        ("app.txt", "2024-03-01T12:00:00Z hunter2\n"),
        ("app", "hunter2\n"),
        ("logs/one.log", "2024-03-01T12:00:00Z started\n"),
        ("logs/prod.env", "PASSWORD=hunter2\n"),
    ]);
    let pattern = || options(None, Some(r"^(?<time>\S+) (?<message>.*)$"), &[], None);
    let node = open_with_options(&folder, &[("app", pattern()), ("logs", pattern())]);
    assert_eq!(node.tables().await, "app: readable\nlogs.one: readable");
    assert_eq!(node.rows("SELECT message FROM app").await, "started");
    assert!(node.database.table_option_problems().await.unwrap().is_empty());

    // The path of a file, as a key or in the paths of the database, means it.
    let without_log = Folder::with(&[("app.txt", "2024-03-01T12:00:00Z hunter2\n"), ("app.env", "PASSWORD=hunter2\n")]);
    let node = open_with_options(&without_log, &[("app.txt", pattern())]);
    assert_eq!(node.tables().await, "app: readable");
    let named = TextTableOptions { log: pattern(), ..TextTableOptions::default() };
    for path in ["*.txt", "app.txt"] {
        let node = crate::messy::open_with_options(vec![folder.join(path)], &[("app", named.clone())]);
        assert_eq!(node.rows("SELECT message FROM app").await, "hunter2", "{path}");
    }
    let node = crate::messy::open_with_options(vec![folder.join("app.*")], &[("app", named)]);
    assert_eq!(node.rows("SELECT message FROM app").await, "started");
}

#[tokio::test]
async fn the_key_of_a_file_that_is_no_table_is_reported_with_the_one_that_means_it() {
    let folder = Folder::with(&[("app.txt", "2024-03-01 started\n")]);
    let node = open_with_options(&folder, &[("app", options(Some("logfmt"), None, &[], None))]);
    let problems = node.database.table_option_problems().await.unwrap();
    assert!(matches!(problems.as_slice(), [problem] if problem.ends_with("such as \"app.txt\"")), "{problems:?}");
}

#[tokio::test]
async fn a_pattern_with_types_and_a_zone() {
    let text = "2024-07-01 12:00:00 | WARN | 17 | slow\nmore of it\n2024-07-01 12:00:01 | INFO | - | ok\n";
    let folder = Folder::with(&[("svc.log.1", text), ("svc.log", text)]);
    settle(&folder, "svc.log");
    let pattern = r"^(?<time>\S+ \S+) \| (?<level>\w+) \| (?<took>\S+) \| (?<message>.*)$";
    let groups = [("took", "integer"), ("time", "time %Y-%m-%d %H:%M:%S")];
    let node = open_with_options(&folder, &[("svc", options(None, Some(pattern), &groups, Some("Europe/Berlin")))]);
    assert_eq!(
        node.rows("SELECT time, level, took, message FROM svc WHERE entry_file = 'svc.log'").await,
        "2024-07-01T10:00:00Z|WARN|17|slow\nmore of it\n2024-07-01T10:00:01Z|INFO|null|ok"
    );
    assert_eq!(node.rows("SELECT count(*) FROM svc").await, "4");
}

#[tokio::test]
async fn logs_of_postgresql() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../log-formats/tests/it/data/postgresql-15");
    let folder = Folder::new();
    folder.write("postgresql-2024-03-01_000000.csv", std::fs::read(format!("{data}.csv")).unwrap());
    folder.write("pgjson.json", std::fs::read(format!("{data}.json")).unwrap());
    let tables = [
        ("postgresql", options(Some("postgres_csv"), None, &[], Some("Europe/Berlin"))),
        ("pgjson", options(Some("jsonlog"), None, &[], Some("Europe/Berlin"))),
    ];
    let node = open_with_options(&folder, &tables);
    for (table, time) in [("postgresql", "log_time"), ("pgjson", "timestamp")] {
        let sql = format!("SELECT min(\"{time}\"), count(*), count(parse_error) FROM {table}");
        assert_eq!(node.rows(&sql).await, "2026-11-26T04:15:47.599Z|17|0", "{table}");
        let sql = format!("SELECT message FROM {table} WHERE error_severity = 'WARNING'");
        assert_eq!(node.rows(&sql).await, "two\nlines, \"quoted\"", "{table}");
    }
}

#[test]
fn wrong_options_have_clear_errors() {
    let problems = |format, pattern, groups: &[(&str, &str)], zone| {
        let groups: BTreeMap<String, String> =
            groups.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let problems = LogTableOptions::parse(format, pattern, &groups, zone).unwrap_err();
        problems.iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect::<Vec<_>>().join("\n")
    };
    let several = problems(Some("combned"), None, &[("a", "integer")], Some("Europe/Berln"));
    for part in [
        "format: unknown log format \"combned\"; did you mean \"combined\"?",
        "time_zone: unknown time zone \"Europe/Berln\"; did you mean \"Europe/Berlin\"?",
        "groups: declares types of the groups of a pattern, but there is no pattern",
    ] {
        assert!(several.contains(part), "{several}");
    }
    let missing = problems(Some("pattern"), None, &[], None);
    assert!(missing.starts_with("format: the log format \"pattern\" needs a regular expression"), "{missing}");
    let useless = problems(Some("json"), Some("(?<a>.)"), &[("a", "intger")], None);
    assert!(useless.contains("groups.a: unknown type \"intger\"; did you mean \"integer\"?"), "{useless}");
    assert!(useless.contains("pattern: has no effect with format: json; write format: pattern"), "{useless}");
    let syntax = problems(None, Some("(?<a>x) (?<b"), &[], None);
    assert!(syntax.starts_with("pattern: the pattern is wrong at character"), "{syntax}");
}
