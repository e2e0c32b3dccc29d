//! Journals of systemd as databases and log sources, against the answers of `journalctl` in `log-formats`.

use std::path::Path;

use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::token_server::TokenServer;

const CONFIGURATION: &str = "databases: [{name: machine, journal: journal}]\n";

fn fixture(name: &str) -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../log-formats/tests/it/journal/data").join(format!("{name}.gz"));
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()), &mut bytes)
        .unwrap();
    bytes
}

/// Journals of two machines, the second in its own folder, and a file that is none.
pub(super) fn folder() -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let machine = configured.folder().join("journal/0123456789abcdef0123456789abcdef");
    std::fs::create_dir_all(&machine).unwrap();
    std::fs::write(configured.folder().join("journal/system.journal"), fixture("zstd.journal")).unwrap();
    std::fs::write(machine.join("system.journal"), fixture("compact.journal")).unwrap();
    configured
}

/// The entries of `journalctl` for both machines.
fn expected() -> Vec<Value> {
    let text = String::from_utf8(fixture("merged.json")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rows(configured: &ConfiguredFolder, sql: &str) -> Vec<Value> {
    let ran = configured.run(&["query", sql, "machine=journal", "--format", "ndjson"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(configured: &ConfiguredFolder, arguments: &[&str]) -> Value {
    let ran = configured.run(&[&["call"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// The values of a field: of a list, those that are texts.
fn values(entry: &Value, field: &str) -> Vec<String> {
    match &entry[field] {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn entries_are_those_of_journalctl_in_its_order() {
    let configured = folder();
    let sql = "SELECT message, priority, unit, identifier, pid, uid, hostname, transport, code_file, code_line, empty, \
               _machine_id, (extract(epoch FROM time) * 1000000)::bigint AS micros, fields FROM machine.entries";
    let (rows, expected) = (rows(&configured, sql), expected());
    assert_eq!(rows.len(), expected.len());
    let texts = [
        ("message", "MESSAGE"),
        ("unit", "_SYSTEMD_UNIT"),
        ("identifier", "SYSLOG_IDENTIFIER"),
        ("hostname", "_HOSTNAME"),
        ("transport", "_TRANSPORT"),
        ("code_file", "CODE_FILE"),
        ("code_line", "CODE_LINE"),
        ("empty", "EMPTY"),
        ("_machine_id", "_MACHINE_ID"),
    ];
    for (row, entry) in rows.iter().zip(&expected) {
        for (column, field) in texts {
            assert_eq!(row[column], entry[field], "{column} of {entry}");
        }
        for (column, field) in
            [("priority", "PRIORITY"), ("pid", "_PID"), ("uid", "_UID"), ("micros", "__REALTIME_TIMESTAMP")]
        {
            assert_eq!(row[column].to_string(), entry[field].as_str().unwrap(), "{column} of {entry}");
        }
        let fields: Value = serde_json::from_str(row["fields"].as_str().unwrap()).unwrap();
        let mut tags = (values(&fields, "TAG"), values(entry, "TAG"));
        tags.0.sort();
        tags.1.sort();
        assert_eq!(tags.0, tags.1);
    }
}

#[test]
fn conditions_find_what_a_scan_finds() {
    let configured = folder();
    let all = expected();
    let middle = all[all.len() / 2]["__REALTIME_TIMESTAMP"].as_str().unwrap().parse::<i64>().unwrap();
    let time = format!("to_timestamp({middle} / 1000000.0)");
    let is = |entry: &Value, field: &str, value: &str| entry[field] == value;
    let late = |entry: &&Value| entry["__REALTIME_TIMESTAMP"].as_str().unwrap().parse::<i64>().unwrap() >= middle;
    let count = |sql: &str| {
        rows(&configured, &format!("SELECT count(*) AS n FROM machine.entries WHERE {sql}"))[0]["n"].as_u64().unwrap()
            as usize
    };
    assert_eq!(count("priority = 3"), all.iter().filter(|entry| is(entry, "PRIORITY", "3")).count());
    assert_eq!(
        count("code_file = 'src/main.c'"),
        all.iter().filter(|entry| is(entry, "CODE_FILE", "src/main.c")).count()
    );
    assert_eq!(
        count("unit IN ('cron.service', 'nginx.service') AND uid = 33 AND priority <> 6"),
        all.iter()
            .filter(|entry| (is(entry, "_SYSTEMD_UNIT", "cron.service") || is(entry, "_SYSTEMD_UNIT", "nginx.service"))
                && is(entry, "_UID", "33")
                && !is(entry, "PRIORITY", "6"))
            .count()
    );
    let expected_late = all.iter().filter(late).count();
    assert!(count(&format!("time >= {time}")).abs_diff(expected_late) <= 1, "a double has no exact microseconds");
    assert_eq!(count(&format!("time >= {time}")) + count(&format!("time < {time}")), all.len());
    let newest = rows(&configured, "SELECT message FROM machine.entries ORDER BY time DESC LIMIT 3");
    assert_eq!(newest[0]["message"], all[all.len() - 1]["MESSAGE"]);
}

#[test]
fn all_log_tools_answer_over_a_journal() {
    let configured = folder();
    let all = expected();
    let ran = configured.run(&["config", "check"]);
    assert!(
        ran.stdout.starts_with("log source machine (recognised): time time, message message, severity priority"),
        "{ran:?}"
    );
    let sources = call(&configured, &["list_logs_sources"]);
    let bytes = fixture("zstd.journal").len() + fixture("compact.journal").len();
    assert_eq!((&sources[0]["table"], &sources[0]["bytes"]), (&json!("machine.entries"), &json!(bytes)), "{sources}");
    let fields = call(&configured, &["list_logs_fields"]);
    let search =
        |name: &str| fields.as_array().unwrap().iter().find(|field| field["field"] == name).unwrap()["search"].clone();
    for (name, expected) in [
        ("time", "index"),
        ("unit", "index"),
        ("code_file", "index"),
        ("tag", "index"),
        ("command_line", "scan"),
        ("source_time", "scan"),
        ("fields", "scan"),
    ] {
        assert_eq!(search(name), expected, "{name}");
    }
    let answer = call(
        &configured,
        &[
            "query_logs",
            "query=request",
            r#"facets=["unit", "priority"]"#,
            r#"selections={"hostname": ["web1"]}"#,
            "limit=5",
        ],
    );
    let is_found = |entry: &&Value| {
        entry["_HOSTNAME"] == "web1" && values(entry, "MESSAGE").iter().any(|text| text.contains("request"))
    };
    assert_eq!(answer["matched"], all.iter().filter(is_found).count(), "{answer}");
    let fields = r#"fields=["priority"]"#;
    let answer = call(&configured, &["list_logs_fields_values", fields, r#"selections={"hostname": ["web1"]}"#]);
    let mut counts: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for entry in all.iter().filter(|entry| entry["_HOSTNAME"] == "web1") {
        *counts.entry(entry["PRIORITY"].as_str().unwrap_or("-")).or_default() += 1;
    }
    let values = answer["facets"]["priority"]["values"].as_array().unwrap();
    assert_eq!(values.len(), counts.len(), "{answer}");
    for value in values {
        assert_eq!(value[1], counts[value[0].as_str().unwrap()], "{answer}");
    }
    assert!(values.iter().any(|value| value[0] == "6" && value[2] == "info"), "{answer}");
    // Pages of any size give each entry once.
    let (mut cursor, mut seen) = (None::<String>, 0);
    loop {
        let argument = cursor.as_ref().map(|cursor| format!("cursor={cursor}"));
        let mut arguments = vec!["query_logs", "limit=37", r#"columns=["time", "entry_offset"]"#];
        arguments.extend(argument.as_deref());
        let page = call(&configured, &arguments);
        seen += page["returned"].as_u64().unwrap() as usize;
        match page["cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen, all.len());
}

#[test]
fn a_mask_covers_the_column_with_all_fields() {
    let configured = folder();
    configured.write(
        "databases:
  - {name: machine, journal: journal, policies: [{table: entries, columns: {identifier: hash, command: hash}}]}
",
    );
    let ran = configured.run(&["config", "check"]);
    let text = format!("{}{}", ran.stdout, ran.stderr);
    for (column, covered) in [("identifier", "fields"), ("command", "command_line, executable, fields")] {
        let expected = format!("policies[0].columns.{column}: also masks {covered} of the table entries, from which");
        assert!(ran.code == Some(0) && text.contains(&expected), "{text}");
    }
    let sql = "sql=SELECT count(fields) AS fields, count(identifier) > 0 AS has_names FROM entries";
    assert_eq!(call(&configured, &["sql", sql]), json!([{"fields": 0, "has_names": true}]));
    // The index has the values, and the caller sees hashes.
    let fields = call(&configured, &["list_logs_fields"]);
    let is_indexed = |name: &str| {
        let field = fields.as_array().unwrap().iter().find(|field| field["field"] == name).unwrap();
        field["search"] == "index"
    };
    assert_eq!([is_indexed("identifier"), is_indexed("unit")], [false, true]);
}

#[test]
fn damaged_file_is_an_error_for_it_alone() {
    let configured = folder();
    std::fs::write(configured.folder().join("journal/broken.journal"), "no journal at all").unwrap();
    let whole = fixture("lz4.journal");
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    std::fs::write(configured.folder().join("journal/cut.journal"), &whole[..used - 20_000]).unwrap();
    let found = rows(
        &configured,
        "SELECT parse_error, count(*) AS n FROM machine.entries GROUP BY parse_error ORDER BY n DESC",
    );
    assert!(
        found[0]["parse_error"].is_null() && found[0]["n"].as_u64().unwrap() >= expected().len() as u64,
        "{found:?}"
    );
    let reasons: Vec<&str> = found.iter().skip(1).map(|row| row["parse_error"].as_str().unwrap()).collect();
    assert!(reasons.contains(&"broken.journal: is not a journal file: it does not begin with LPKSHHRH"), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.starts_with("cut.journal, at byte ")), "{reasons:?}");
    std::fs::remove_dir_all(configured.folder().join("journal")).unwrap();
    let ran = configured.run(&["query", "SELECT * FROM machine.entries", "machine=journal"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("no such file or folder"), "{ran:?}");
}

#[test]
fn folder_of_journals_on_the_command_line() {
    let configured = folder();
    let ran = configured.run(&["query", "SELECT count(*) AS n FROM journal.entries", "journal", "--format", "csv"]);
    assert_eq!(ran.lines(), ["n", "180"], "{ran:?}");
}

#[test]
fn folder_with_a_journal_beside_other_files_has_its_tables() {
    let configured = folder();
    std::fs::write(configured.folder().join("journal/orders.csv"), "id\n7\n").unwrap();
    let ran = configured.run(&["query", "SELECT id FROM orders", "./journal", "--format", "ndjson"]);
    assert_eq!(ran.stdout, "{\"id\":7}\n", "{ran:?}");
}

/// Entries with a command line and an environment.
fn server_with_secrets(sensitive: &str) -> TokenServer {
    let configuration = format!(
        "
databases: [{{name: machine, journal: journal{sensitive}}}]
roles:
  - {{name: admin, toolsets: ['*'], databases: ['*'], access: [machine.*], claims: {{groups: admins}}}}
  - {{name: clerk, toolsets: ['*'], databases: ['*'], claims: {{groups: clerks}}}}
"
    );
    TokenServer::start(&configuration, |folder| {
        std::fs::create_dir(folder.join("journal")).unwrap();
        std::fs::write(folder.join("journal/system.journal"), fixture("masked.journal")).unwrap();
    })
}

#[tokio::test]
async fn command_lines_and_environments_are_masked_unless_granted() {
    let node = server_with_secrets(", sensitive: machine.secrets");
    let columns = "SELECT message, command_line, coredump_cmdline, coredump_environ FROM entries";
    let header = "message,command_line,coredump_cmdline,coredump_environ\n";
    assert_eq!(
        node.sql(&node.admin, "machine", columns).await,
        format!(
            "{header}started,worker --password hunter2,,\n\
             crashed,/lib/systemd/systemd-coredump,worker --password hunter2,TOKEN=hunter2\nfinished,,,\n"
        )
    );
    assert_eq!(
        node.sql(&node.clerk, "machine", columns).await,
        format!("{header}started,***,,\ncrashed,***,***,***\nfinished,,,\n")
    );
    let fields = "SELECT fields FROM entries WHERE message = 'crashed'";
    let (granted, masked) =
        (node.sql(&node.admin, "machine", fields).await, node.sql(&node.clerk, "machine", fields).await);
    assert!(granted.contains("TOKEN=hunter2") && granted.contains("worker --password hunter2"), "{granted}");
    assert!(!masked.contains("hunter2") && masked.contains("COREDUMP_ENVIRON") && masked.contains("***"), "{masked}");
    // No condition finds what is masked.
    let searched = |token: String, query: &str| {
        let (node, arguments) = (&node, json!({"query": query, "all_fields": true, "limit": 5}));
        async move {
            let answer = node.call(&token, "query_logs", arguments).await;
            serde_json::from_str::<Value>(&answer).unwrap_or_else(|_| panic!("{answer}"))["matched"].clone()
        }
    };
    assert_eq!(searched(node.admin.clone(), "hunter2").await, 2);
    assert_eq!(searched(node.clerk.clone(), "hunter2").await, 0);
    let count = "SELECT count(*) AS n FROM entries WHERE command_line = 'worker --password hunter2'";
    assert_eq!(node.sql(&node.admin, "machine", count).await, "n\n1\n");
    assert_eq!(node.sql(&node.clerk, "machine", count).await, "n\n0\n");
    // Without the key, nobody reads them.
    let node = server_with_secrets("");
    let all = node.sql(&node.admin, "machine", "SELECT command_line, fields FROM entries").await;
    assert!(!all.contains("hunter2") && all.contains("***"), "{all}");
    let misplaced = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop, sensitive: a}, {name: m, system: {}, sensitive: a}]\n",
    );
    let text = misplaced.usage_error(&["config", "check"]);
    assert!(text.contains("databases[0].sensitive: is for a database with journal; this one has files"), "{text}");
    assert!(
        text.contains("databases[1].sensitive: is for journals; that of system tables is system.sensitive"),
        "{text}"
    );
}
