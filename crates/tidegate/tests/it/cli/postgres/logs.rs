//! The same questions about the same entries in CSV, PostgreSQL and SQLite have the same answers.

use serde_json::{Value, json};

use super::super::ConfiguredFolder;
use super::super::logs::EVENTS;
use super::{psql, shop};

/// Without the entries whose order is undefined because they have the same time.
fn distinct_events() -> impl Iterator<Item = Vec<&'static str>> {
    EVENTS.lines().skip(1).filter(|line| !line.contains("tie")).map(|line| line.split(',').collect())
}

fn insert_statement() -> String {
    let quote = |value: &&str| if value.is_empty() { "NULL".to_owned() } else { format!("'{value}'") };
    let rows: Vec<String> = distinct_events()
        .map(|values| format!("({})", values.iter().map(quote).collect::<Vec<_>>().join(", ")))
        .collect();
    format!("INSERT INTO events VALUES {};", rows.join(", "))
}

#[test]
fn files_postgres_and_sqlite_agree() {
    let target = shop("logs");
    let name = target.rsplit('=').next().unwrap().to_owned();
    let columns = "level text, service text, body text, status int";
    psql(
        &name,
        &format!(
            "SET timezone TO 'UTC'; CREATE TABLE events (created_at timestamptz, {columns}); {}",
            insert_statement()
        ),
    );
    let configured = ConfiguredFolder::new(&format!(
        "databases: [{{name: files, files: shop}}, {{name: pg, postgres: '{target}'}}, {{name: lite, sqlite: lite.db}}]
logs: [{{name: files, table: files.events}}, {{name: pg, table: pg.events}}, {{name: lite, table: lite.events}}]
"
    ));
    let lite = rusqlite::Connection::open(configured.folder().join("lite.db")).unwrap();
    lite.execute_batch(&format!(
        "CREATE TABLE events (created_at, level TEXT, service TEXT, body TEXT, status INTEGER); {}",
        insert_statement()
    ))
    .unwrap();
    let csv: Vec<String> = distinct_events().map(|values| values.join(",")).collect();
    let header = EVENTS.lines().next().unwrap();
    std::fs::write(configured.folder().join("shop/events.csv"), format!("{header}\n{}\n", csv.join("\n"))).unwrap();
    let questions = [
        json!({}),
        json!({"query": "connection"}),
        json!({"query": "!connection | level:warning"}),
        json!({"query": "web", "all_fields": true}),
        json!({"selections": {"level": ["error", "info"], "status": [null]}}),
        json!({"selections": {"service": ["web"]}, "facets": ["level", "service", "status"]}),
        json!({"after": "2026-03-01T12:00:10Z", "before": "2026-03-01T12:02:00Z", "facets": ["level"]}),
        json!({"conditions": {"column": "status", "op": ">=", "value": 300}}),
        json!({"histogram": {"field": "level", "bars": 3}, "direction": "forward"}),
        json!({"patterns": 10, "limit": 0}),
    ];
    for question in questions {
        let answers = ["files", "pg", "lite"].map(|source| {
            let arguments = question.as_object().unwrap().iter().map(|(key, value)| match value {
                Value::String(text) => format!("{key}={text}"),
                value => format!("{key}={value}"),
            });
            let arguments: Vec<String> = arguments.chain([format!("source={source}")]).collect();
            let mut line = vec!["call", "query_logs"];
            line.extend(arguments.iter().map(String::as_str));
            let ran = configured.run(&line);
            let mut answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{question}: {ran:?}"));
            // What a database filters itself is not evaluated here, and cursors belong to a source.
            for key in ["evaluated", "cursor", "tail", "searched"] {
                answer.as_object_mut().unwrap().remove(key);
            }
            answer
        });
        assert_eq!(answers[0], answers[1], "{question}");
        assert_eq!(answers[0], answers[2], "{question}");
    }
}
