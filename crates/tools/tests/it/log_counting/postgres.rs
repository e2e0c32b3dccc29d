//! Tables of PostgreSQL.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresDatabase, PostgresOptions};
use tidegate_testkit::test_database::{TestDatabase, wait_until};

use super::node::LogNode;
use super::properties::{check_answers, check_pages};
use super::rows::{DAY_START, LogRow, questions, rows};
use super::runner;
use super::sqlite::newer;

const CREATE: &str = "CREATE TABLE events (time timestamptz, message text, level varchar(20), code int, flag boolean);
    GRANT SELECT ON events TO {login}; GRANT CONNECT ON DATABASE {db} TO {login}";

async fn open() -> (TestDatabase, LogNode) {
    let server = TestDatabase::new(CREATE).await;
    let text = format!("{} dbname={} user={} password=right sslmode=disable", server.host, server.name, server.login());
    let target = ConnectTarget::parse(&text, &ConnectEnvironment::from_process()).unwrap();
    let options = PostgresOptions { is_behind_pooler: server.pooler, ..PostgresOptions::default() };
    let node = LogNode::new(Arc::new(PostgresDatabase::open("pg", target, options).unwrap()));
    (server, node)
}

async fn add(server: &TestDatabase, rows: &[LogRow]) {
    let text = |value: &Option<String>| value.as_ref().map_or("NULL".to_owned(), |text| format!("'{text}'"));
    for row in rows {
        let time = row.time.map_or("NULL".to_owned(), |time| {
            format!("timestamptz 'epoch' + {} * interval '1 microsecond'", DAY_START * 1_000_000 + time)
        });
        let number = |number: Option<String>| number.unwrap_or_else(|| "NULL".to_owned());
        let (code, flag) =
            (number(row.code.map(|code| code.to_string())), number(row.flag.map(|flag| flag.to_string())));
        let (message, level) = (text(&row.message), text(&row.level));
        server.run(&format!("INSERT INTO events VALUES ({time}, {message}, {level}, {code}, {flag})")).await;
    }
}

#[test]
fn counts_of_postgres_are_those_of_a_scan() {
    let (mut runner, runtime) = runner(8);
    let (server, node) = runtime.block_on(open());
    let cases = (rows(40), prop::collection::vec(questions(), 3));
    runner
        .run(&cases, |(rows, questions)| {
            runtime.block_on(async {
                server.run("TRUNCATE events").await;
                add(&server, &rows).await;
                for question in questions {
                    check_answers(&node, &rows, &question, |flag| if flag { "true" } else { "false" }).await;
                }
            });
            Ok(())
        })
        .unwrap();
}

#[test]
fn pages_of_postgres_have_each_entry_once() {
    let (mut runner, runtime) = runner(16);
    let (server, node) = runtime.block_on(open());
    let cases = (rows(25), rows(6), 1usize..7, any::<bool>());
    runner
        .run(&cases, |(rows, added, limit, is_forward)| {
            let last = rows.iter().filter_map(|row| row.time).max().unwrap_or(0);
            let added: Vec<LogRow> = added.into_iter().map(|row| newer(row, last)).collect();
            runtime.block_on(async {
                server.run("TRUNCATE events").await;
                add(&server, &rows).await;
                check_pages(&node, &rows, (limit, is_forward), &added, async || add(&server, &added).await).await;
            });
            Ok(())
        })
        .unwrap();
}

/// The database counts what it can count, and the others are scanned.
#[test]
fn postgres_returns_no_rows_to_count_them() {
    let (_, runtime) = runner(1);
    let (server, node) = runtime.block_on(open());
    let ask = |arguments: Value| {
        let Value::Object(arguments) = arguments else { unreachable!() };
        runtime.block_on(node.ask(arguments))
    };
    let fill = "INSERT INTO events SELECT to_timestamp(1772366400 + n * 0.001), \
                CASE WHEN n % 10 = 0 THEN 'timeout' ELSE 'entry ' || n END, CASE WHEN n % 3 = 0 THEN 'info' ELSE 'warn' END, n % 7 \
                FROM generate_series(0, 1999) n";
    runtime.block_on(server.run(fill));
    let counted = ask(json!({"query": "TIMEOUT", "histogram": {"field": "level"}, "limit": 5}));
    assert_eq!((&counted["evaluated"], &counted["matched"]), (&json!(200), &json!(200)));
    assert_eq!(counted["returned"], 5);
    runtime.block_on(server.run("INSERT INTO events VALUES (to_timestamp(1772366400), 'Timeout é')"));
    let mixed = ask(json!({"query": "TIMEOUT", "facets": ["level"], "limit": 0}));
    assert_eq!((&mixed["evaluated"], &mixed["matched"]), (&json!(201), &json!(201)));
    // Times that the scan cannot express are scanned.
    runtime.block_on(server.run("INSERT INTO events VALUES ('infinity', 'timeout')"));
    let scanned = ask(json!({"histogram": {}, "limit": 0}));
    assert_eq!((&scanned["evaluated"], &scanned["matched"]), (&json!(2_002), &json!(2_002)));
}

#[test]
fn what_a_facet_leaves_out_is_counted_exactly() {
    let (_, runtime) = runner(1);
    let (server, node) = runtime.block_on(open());
    let fill = "INSERT INTO events (time, message) SELECT now(), 'single ' || n FROM generate_series(1, 100500) n;
                INSERT INTO events (time, message) SELECT now(), 'often ' || n % 12 FROM generate_series(0, 35) n";
    runtime.block_on(server.run(fill));
    let arguments = || match json!({"facets": ["message"], "limit": 0}) {
        Value::Object(arguments) => arguments,
        _ => unreachable!(),
    };
    let counted = runtime.block_on(node.ask(arguments()));
    let facet = &counted["facets"]["message"];
    assert_eq!(facet["values"][0], json!(["often 0", 3]));
    assert_eq!(facet["more"], json!({"values": 100_502, "rows": 100_506}));
    assert_eq!(facet["uncounted_rows"], Value::Null);
    // A scan counts as many values as it keeps.
    let scanned = runtime.block_on(node.scan(arguments()));
    assert_ne!(scanned["facets"]["message"]["uncounted_rows"], Value::Null);
}

#[tokio::test]
async fn the_version_tag_of_a_source_changes_with_its_rows() {
    let (server, node) = open().await;
    let before = node.version_tag().await;
    assert!(before.is_some());
    server.run("INSERT INTO events (time, message) SELECT now(), 'new' FROM generate_series(1, 3)").await;
    let has_changed = || async { node.version_tag().await != before };
    wait_until("the rows are counted", has_changed).await;
    // Where policies hide rows, others must not learn when they are written.
    server.run("ALTER TABLE events ENABLE ROW LEVEL SECURITY").await;
    let has_no_count = || async { node.version_tag().await.is_some_and(|tag| tag.ends_with(' ')) };
    wait_until("row-level security applies", has_no_count).await;
}
