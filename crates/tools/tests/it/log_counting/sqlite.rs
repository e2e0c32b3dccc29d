//! Tables of SQLite: each value has a type of its own, and times are texts or numbers.

use std::sync::Arc;

use proptest::prelude::*;
use rusqlite::types::Value as SqliteValue;
use rusqlite::{Connection, params};
use serde_json::{Map, json};
use tempfile::TempDir;
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};
use tidegate_telemetry::logs::{TimeInput, format_time, parse_time};

use super::node::LogNode;
use super::properties::{check_answers, check_pages};
use super::rows::{DAY_START, LogRow, questions, rows};
use super::runner;

/// How a table writes times.
#[derive(Debug, Clone, Copy)]
enum TimeForm {
    Spaced,
    Zoned,
    Microseconds,
    Seconds,
    /// Each row in another form, also in none that SQL compares.
    Mixed,
}

struct Table {
    folder: TempDir,
    connection: Connection,
}

impl Table {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("log.db")).unwrap();
        let columns = "time, message TEXT COLLATE NOCASE, level TEXT COLLATE RTRIM, code, flag INTEGER";
        connection.execute_batch(&format!("CREATE TABLE events ({columns}); CREATE INDEX i ON events (time)")).unwrap();
        Self { folder, connection }
    }

    fn node(&self) -> LogNode {
        let path = self.folder.path().join("log.db");
        LogNode::new(Arc::new(SqliteDatabase::open("lite", vec![path], SqliteOptions::default()).unwrap()))
    }

    fn fill(&self, rows: &[LogRow], form: TimeForm) {
        self.connection.execute("DELETE FROM events", []).unwrap();
        self.add(rows, form);
    }

    fn add(&self, rows: &[LogRow], form: TimeForm) {
        self.connection.execute_batch("BEGIN").unwrap();
        for (index, row) in rows.iter().enumerate() {
            let time = row.time.map_or(SqliteValue::Null, |time| time_value(time, index, form));
            self.connection
                .execute(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
                    params![time, row.message, row.level, row.code, row.flag],
                )
                .unwrap();
        }
        self.connection.execute_batch("COMMIT").unwrap();
    }
}

fn time_value(microseconds: i64, index: usize, form: TimeForm) -> SqliteValue {
    let nanos = DAY_START * 1_000_000_000 + microseconds * 1_000;
    let text = |text: String| SqliteValue::Text(text);
    let seconds = || format_time(nanos).get(..19).unwrap().to_owned();
    let digits = || format!("{}.{:06}", seconds(), microseconds.rem_euclid(1_000_000));
    match form {
        TimeForm::Spaced => text(digits().replace('T', " ")),
        TimeForm::Zoned => text(format!("{}Z", digits())),
        TimeForm::Microseconds => SqliteValue::Integer(DAY_START * 1_000_000 + microseconds),
        TimeForm::Seconds => SqliteValue::Integer(DAY_START + microseconds / 1_000_000),
        TimeForm::Mixed => match index % 6 {
            0 => text(format_time(nanos)),
            1 => text(digits()),
            2 => SqliteValue::Integer(DAY_START * 1_000_000 + microseconds),
            3 => text(format!("{}+01:00", format_time(nanos + 3_600_000_000_000).trim_end_matches('Z'))),
            4 => SqliteValue::Real((DAY_START * 1_000_000 + microseconds) as f64 / 1_000_000.0),
            _ => text(digits().replace('T', " ")),
        },
    }
}

/// The rows with the times that the table can express.
fn expressed(rows: &[LogRow], form: TimeForm) -> Vec<LogRow> {
    let time = |index: usize, time: i64| match time_value(time, index, form) {
        SqliteValue::Integer(number) => parse_time(TimeInput::Integer(number), 0).unwrap(),
        SqliteValue::Real(number) => parse_time(TimeInput::Decimal(number), 0).unwrap(),
        SqliteValue::Text(text) => parse_time(TimeInput::Text(&text), 0).unwrap(),
        _ => unreachable!(),
    };
    let row = |(index, row): (usize, &LogRow)| LogRow {
        time: row.time.map(|own| (time(index, own) - DAY_START * 1_000_000_000).div_euclid(1_000)),
        ..row.clone()
    };
    rows.iter().enumerate().map(row).collect()
}

fn forms() -> impl Strategy<Value = TimeForm> {
    use TimeForm::{Microseconds, Mixed, Seconds, Spaced, Zoned};
    prop::sample::select(vec![Spaced, Zoned, Microseconds, Seconds, Mixed])
}

#[test]
fn counts_of_sqlite_are_those_of_a_scan() {
    let (mut runner, runtime) = runner(4);
    let table = Table::new();
    let node = table.node();
    let cases = (rows(40), forms(), prop::collection::vec(questions(), 3));
    runner
        .run(&cases, |(rows, form, questions)| {
            table.fill(&rows, form);
            let rows = expressed(&rows, form);
            for question in questions {
                runtime.block_on(check_answers(&node, &rows, &question, |flag| if flag { "1" } else { "0" }));
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn pages_of_sqlite_have_each_entry_once() {
    let (mut runner, runtime) = runner(8);
    let table = Table::new();
    let node = table.node();
    let cases = (rows(25), rows(6), forms(), 1usize..7, any::<bool>());
    runner
        .run(&cases, |(rows, added, form, limit, is_forward)| {
            table.fill(&rows, form);
            let last = expressed(&rows, form).iter().filter_map(|row| row.time).max().unwrap_or(0);
            let added: Vec<LogRow> = added.into_iter().map(|row| newer(row, last)).collect();
            let grow = async || table.add(&added, if matches!(form, TimeForm::Mixed) { TimeForm::Zoned } else { form });
            runtime.block_on(check_pages(&node, &rows, (limit, is_forward), &added, grow));
            Ok(())
        })
        .unwrap();
}

/// An entry with the newest time or a newer one, and a message of its own.
pub(super) fn newer(row: LogRow, last: i64) -> LogRow {
    let time = Some(last + if row.flag == Some(true) { 1_000_000 } else { 0 });
    LogRow { time, message: Some(format!("new {:?} {:?}", row.message, row.code)), ..row }
}

/// The database counts what it can count, and the others are scanned.
#[test]
fn sqlite_returns_no_rows_to_count_them() {
    let (table, runtime) = (Table::new(), tokio::runtime::Runtime::new().unwrap());
    let row = |index: i64| LogRow {
        time: Some(index * 1_000),
        message: Some(if index % 10 == 0 { "timeout".to_owned() } else { format!("entry {index}") }),
        level: Some(if index % 3 == 0 { "info".to_owned() } else { "warn".to_owned() }),
        code: Some(index % 7),
        flag: None,
    };
    let rows: Vec<LogRow> = (0..2_000).map(row).collect();
    table.fill(&rows, TimeForm::Zoned);
    let node = table.node();
    let ask = |arguments: serde_json::Value| {
        let serde_json::Value::Object(arguments) = arguments else { unreachable!() };
        runtime.block_on(node.ask(arguments))
    };
    let counted = ask(json!({"query": "TIMEOUT", "histogram": {"field": "level"}, "limit": 5}));
    assert_eq!((&counted["evaluated"], &counted["matched"]), (&json!(200), &json!(200)));
    // Groups of all rows take more time than a scan.
    let all = ask(json!({"facets": ["code"], "selections": {}, "limit": 0}));
    assert_eq!((&all["evaluated"], &all["matched"]), (&json!(2_000), &json!(2_000)));
    // One message that is not ASCII is scanned.
    table.add(&[LogRow { message: Some("Timeout é".to_owned()), ..row(1) }], TimeForm::Zoned);
    let mixed = ask(json!({"query": "TIMEOUT", "facets": ["level"], "limit": 0}));
    assert_eq!((&mixed["evaluated"], &mixed["matched"]), (&json!(201), &json!(201)));
    let scanned = runtime.block_on(node.scan(Map::from_iter([("query".to_owned(), json!("timeout"))])));
    assert_eq!((&scanned["evaluated"], &scanned["matched"]), (&json!(2_001), &json!(201)));
}

#[test]
fn a_selection_finds_integers_in_a_column_without_a_type() {
    let (table, runtime) = (Table::new(), tokio::runtime::Runtime::new().unwrap());
    let row = LogRow { time: Some(0), message: None, level: None, code: Some(7), flag: None };
    table.fill(&[row], TimeForm::Zoned);
    let node = table.node();
    let arguments = || Map::from_iter([("selections".to_owned(), json!({"code": ["7"]}))]);
    assert_eq!(runtime.block_on(node.ask(arguments()))["matched"], 1);
    assert_eq!(runtime.block_on(node.scan(arguments()))["matched"], 1);
}

#[test]
fn a_source_is_a_resource_that_changes_with_its_rows() {
    let (table, runtime) = (Table::new(), tokio::runtime::Runtime::new().unwrap());
    let node = table.node();
    let row = LogRow { time: Some(0), message: None, level: None, code: Some(7), flag: None };
    table.fill(std::slice::from_ref(&row), TimeForm::Zoned);
    let before = runtime.block_on(node.version_tag());
    assert!(before.is_some());
    assert_eq!(runtime.block_on(node.version_tag()), before);
    table.add(&[row], TimeForm::Zoned);
    assert_ne!(runtime.block_on(node.version_tag()), before);
    let source = runtime.block_on(node.read("tidegate://logs/app")).unwrap();
    assert_eq!((&source["name"], &source["table"]), (&json!("app"), &json!("lite.events")));
    assert_eq!(source["columns"][0], json!({"name": "time", "type": "any", "role": "time"}));
    let unknown = runtime.block_on(node.read("tidegate://logs/ap")).unwrap_err();
    assert!(unknown.contains("there is no log source \"ap\"; nearest: app"), "{unknown}");
}

/// So many rows that they are checked once, until the file changes.
#[test]
fn a_table_with_uniform_times_is_checked_once() {
    let (table, runtime) = (Table::new(), tokio::runtime::Runtime::new().unwrap());
    let rows = "WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 149999) \
                INSERT INTO events SELECT strftime('%Y-%m-%dT%H:%M:%S', 1772366400 + n / 10, 'unixepoch') || '.' || (n % 10), \
                'entry ' || n, 'info', n % 7, NULL FROM n";
    table.connection.execute_batch(rows).unwrap();
    let node = table.node();
    let ask = |arguments: serde_json::Value| {
        let serde_json::Value::Object(arguments) = arguments else { unreachable!() };
        runtime.block_on(node.ask(arguments))
    };
    let question = || json!({"after": "2026-03-01T12:00:01Z", "before": "2026-03-01T12:00:03Z", "facets": ["code"]});
    for _ in 0..2 {
        let answer = ask(question());
        assert_eq!((&answer["evaluated"], &answer["matched"]), (&json!(20), &json!(20)));
    }
    // The same time in another form: it is scanned now.
    table
        .connection
        .execute_batch("UPDATE events SET time = '2026-03-01 13:00:02+01:00' WHERE message = 'entry 149999'")
        .unwrap();
    let answer = ask(question());
    assert_eq!((&answer["evaluated"], &answer["matched"]), (&json!(21), &json!(21)));
    assert_eq!(runtime.block_on(node.scan(question().as_object().unwrap().clone()))["matched"], 21);
}
