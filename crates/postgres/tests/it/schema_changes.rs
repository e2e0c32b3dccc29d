//! Tables, views and types that change between two runs of one statement: names, types and values of an answer are
//! those of its execution, on every connection that has prepared the statement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{Error, Format, Principal};
use tidegate_postgres::PostgresOptions;
use tidegate_query::Database;
use tidegate_sql::Statement;

use crate::rendering;
use crate::test_database::{
    OpenDatabase as _, OpenedDatabase, TestDatabase, caller_statement, owner_statement, within_timeout,
};

const CONNECTIONS: usize = 3;

/// The tables before each change: one of common types, one with a column that is selected as text, and a composite type.
/// The text column is the first, so that the types of the others keep their positions when one of them is dropped.
const TABLES: &str = "
    DROP VIEW IF EXISTS v; DROP TABLE IF EXISTS t, spans, parts; DROP TYPE IF EXISTS part;
    CREATE TABLE t AS SELECT 1 AS id, 100 AS salary, 7 AS bonus;
    CREATE TABLE spans AS SELECT '[1,2)'::int4range AS span, 1 AS id, 100 AS salary, 7 AS bonus;
    CREATE VIEW v AS SELECT id, salary FROM t;
    CREATE TYPE part AS (id int, salary int, bonus int);
    CREATE TABLE parts AS SELECT ROW(1, 100, 7)::part AS part;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO {login};";

fn open_database(scene: &TestDatabase) -> OpenedDatabase {
    scene.open(PostgresOptions { connections_max: CONNECTIONS, ..PostgresOptions::default() })
}

async fn answer_as_json(node: &OpenedDatabase, statement: &Statement) -> Result<String, Error> {
    let answered = rendering::render_answer(node.database.clone(), statement.clone(), Format::Ndjson);
    within_timeout("an answer", answered).await.map(|text| text.trim_end().to_owned())
}

/// Checks that `sql`, run on all connections at once as the owner's and as a caller's statement, is answered with
/// `expected`, and that it is described with the same columns.
async fn check(node: &OpenedDatabase, sql: &str, expected: &str, change: &str) {
    for statement in [owner_statement(sql, Vec::new()), caller_statement(sql).unwrap()] {
        let requested = (0..CONNECTIONS).map(|_| answer_as_json(node, &statement));
        for answer in futures::future::join_all(requested).await {
            assert_eq!(answer.unwrap(), expected, "{sql} after {change}");
        }
        let described = node.database.describe(&statement, &Principal::process_user()).await.unwrap();
        let described: Vec<&str> = described.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(described, names(expected), "{sql} after {change}");
    }
}

/// The names in one row of JSON, in their order.
fn names(row: &str) -> Vec<String> {
    let row: Map<String, Value> = serde_json::from_str(row).unwrap();
    row.keys().cloned().collect()
}

/// Makes each of `changes` after `sql` was answered with `before` on all connections. Each change is listed with the next
/// answer.
async fn check_changes(sql: &str, before: &str, changes: &[(&str, &str)]) {
    let scene = TestDatabase::new("").await;
    let node = open_database(&scene);
    for (change, after) in changes {
        scene.run(TABLES).await;
        check(&node, sql, before, "the start").await;
        scene.run(change).await;
        check(&node, sql, after, change).await;
    }
    node.wait_until_idle().await;
}

#[tokio::test]
async fn changed_table_gives_current_columns() {
    let changes = [
        ("ALTER TABLE t DROP COLUMN salary CASCADE", r#"{"id":1,"bonus":7}"#),
        ("ALTER TABLE t DROP COLUMN id CASCADE", r#"{"salary":100,"bonus":7}"#),
        ("ALTER TABLE t ADD COLUMN more int DEFAULT 5", r#"{"id":1,"salary":100,"bonus":7,"more":5}"#),
        ("ALTER TABLE t RENAME COLUMN salary TO wage", r#"{"id":1,"wage":100,"bonus":7}"#),
        ("ALTER TABLE t ALTER COLUMN bonus TYPE numeric(10,2)", r#"{"id":1,"salary":100,"bonus":7.00}"#),
        ("ALTER TABLE t ALTER COLUMN bonus TYPE text USING 'seven'", r#"{"id":1,"salary":100,"bonus":"seven"}"#),
        ("ALTER TABLE t ALTER COLUMN bonus TYPE int4range USING '[7,8)'", r#"{"id":1,"salary":100,"bonus":"[7,8)"}"#),
        (
            "ALTER TABLE t DROP COLUMN salary CASCADE, ADD COLUMN salary int DEFAULT 3",
            r#"{"id":1,"bonus":7,"salary":3}"#,
        ),
        (
            "ALTER TABLE t RENAME COLUMN salary TO x; ALTER TABLE t RENAME COLUMN bonus TO salary;
             ALTER TABLE t RENAME COLUMN x TO bonus",
            r#"{"id":1,"bonus":100,"salary":7}"#,
        ),
        (
            "DROP TABLE t CASCADE; CREATE TABLE t AS SELECT 8 AS bonus, 200 AS salary, 2 AS id; GRANT SELECT ON t TO {login}",
            r#"{"bonus":8,"salary":200,"id":2}"#,
        ),
    ];
    check_changes("SELECT * FROM t", r#"{"id":1,"salary":100,"bonus":7}"#, &changes).await;
}

/// The statement runs within another one, whose columns are the same after each of these changes.
#[tokio::test]
async fn changed_table_with_text_cast_gives_current_columns() {
    let changes = [
        (
            "ALTER TABLE spans DROP COLUMN id, ADD COLUMN more int DEFAULT 5",
            r#"{"span":"[1,2)","salary":100,"bonus":7,"more":5}"#,
        ),
        ("ALTER TABLE spans RENAME COLUMN salary TO wage", r#"{"span":"[1,2)","id":1,"wage":100,"bonus":7}"#),
        (
            "ALTER TABLE spans ADD COLUMN more int DEFAULT 5",
            r#"{"span":"[1,2)","id":1,"salary":100,"bonus":7,"more":5}"#,
        ),
        ("ALTER TABLE spans DROP COLUMN salary", r#"{"span":"[1,2)","id":1,"bonus":7}"#),
        ("ALTER TABLE spans DROP COLUMN span", r#"{"id":1,"salary":100,"bonus":7}"#),
        (
            "ALTER TABLE spans ALTER COLUMN span TYPE text USING 'one'",
            r#"{"span":"one","id":1,"salary":100,"bonus":7}"#,
        ),
    ];
    check_changes("SELECT * FROM spans", r#"{"span":"[1,2)","id":1,"salary":100,"bonus":7}"#, &changes).await;
}

#[tokio::test]
async fn replaced_view_gives_current_columns() {
    let changes = [
        ("CREATE OR REPLACE VIEW v AS SELECT id, salary, bonus FROM t", r#"{"id":1,"salary":100,"bonus":7}"#),
        ("ALTER VIEW v RENAME COLUMN salary TO wage", r#"{"id":1,"wage":100}"#),
        ("CREATE OR REPLACE VIEW v AS SELECT id, bonus AS salary FROM t", r#"{"id":1,"salary":7}"#),
        (
            "DROP VIEW v; CREATE VIEW v AS SELECT salary AS id, id AS salary FROM t; GRANT SELECT ON v TO {login}",
            r#"{"id":100,"salary":1}"#,
        ),
        (
            "DROP VIEW v; CREATE VIEW v AS SELECT salary, id FROM t; GRANT SELECT ON v TO {login}",
            r#"{"salary":100,"id":1}"#,
        ),
    ];
    check_changes("SELECT * FROM v", r#"{"id":1,"salary":100}"#, &changes).await;
}

#[tokio::test]
async fn changed_composite_type_gives_current_members() {
    let changes = [
        ("ALTER TYPE part ADD ATTRIBUTE more int", r#"{"part":{"id":1,"salary":100,"bonus":7,"more":null}}"#),
        ("ALTER TYPE part DROP ATTRIBUTE salary", r#"{"part":{"id":1,"bonus":7}}"#),
        ("ALTER TYPE part RENAME ATTRIBUTE salary TO wage", r#"{"part":{"id":1,"wage":100,"bonus":7}}"#),
        ("ALTER TYPE part DROP ATTRIBUTE salary, ADD ATTRIBUTE more int", r#"{"part":{"id":1,"bonus":7,"more":null}}"#),
    ];
    check_changes("SELECT * FROM parts", r#"{"part":{"id":1,"salary":100,"bonus":7}}"#, &changes).await;
    let changes = [
        ("ALTER TABLE t DROP COLUMN salary CASCADE", r#"{"t":{"id":1,"bonus":7}}"#),
        ("ALTER TABLE t DROP COLUMN id CASCADE, ADD COLUMN id int", r#"{"t":{"salary":100,"bonus":7,"id":null}}"#),
        ("ALTER TABLE t RENAME COLUMN salary TO wage", r#"{"t":{"id":1,"wage":100,"bonus":7}}"#),
    ];
    check_changes("SELECT t FROM t", r#"{"t":{"id":1,"salary":100,"bonus":7}}"#, &changes).await;
}

/// Each value is its column's name, so that no answer can be under another one without being noticed.
const SELF_DESCRIBING_TABLE_SQL: &str = "
    CREATE TABLE t AS SELECT 'a'::text AS a, 'b'::text AS b, 'c'::text AS c;
    CREATE TABLE spans AS SELECT int4range(1, 2) AS span, 'a'::text AS a, 'b'::text AS b, 'c'::text AS c;
    CREATE VIEW v AS SELECT 'b'::text AS b, 'a'::text AS a;
    CREATE TYPE part AS (a text, b text, c text);
    CREATE TABLE parts AS SELECT ROW('a', 'b', 'c')::part AS part;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO {login};";

/// Made again and again, each in one transaction.
const CHANGES: [&str; 8] = [
    "ALTER TABLE t DROP COLUMN a; ALTER TABLE spans DROP COLUMN a",
    "ALTER TABLE t ADD COLUMN a text DEFAULT 'a'; ALTER TABLE spans ADD COLUMN a text DEFAULT 'a'",
    "ALTER TABLE t RENAME COLUMN b TO d; UPDATE t SET d = 'd';
     ALTER TABLE spans RENAME COLUMN b TO d; UPDATE spans SET d = 'd'",
    "CREATE OR REPLACE VIEW v AS SELECT 'b'::text AS b, 'a'::text AS a, 'c'::text AS c",
    "ALTER TYPE part DROP ATTRIBUTE a; DROP VIEW v; CREATE VIEW v AS SELECT 'a'::text AS a, 'b'::text AS b;
     GRANT SELECT ON v TO {login}",
    "ALTER TYPE part ADD ATTRIBUTE a text",
    "DROP TABLE t; CREATE TABLE t AS SELECT 'c'::text AS c, 'b'::text AS b, 'a'::text AS a; GRANT SELECT ON t TO {login};
     ALTER TABLE spans RENAME COLUMN d TO b; UPDATE spans SET b = 'b'",
    "DROP VIEW v; CREATE VIEW v AS SELECT 'b'::text AS b, 'a'::text AS a; GRANT SELECT ON v TO {login}",
];

const QUERIES: [&str; 5] =
    ["SELECT * FROM t", "SELECT * FROM spans", "SELECT * FROM v", "SELECT * FROM parts", "SELECT t FROM t"];

/// Whether each text in `value` equals the name of its column or member.
fn matches_its_name(name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => text == name || (name == "span" && text == "[1,2)"),
        Value::Object(members) => members.iter().all(|(name, value)| matches_its_name(name, value)),
        _ => value.is_null(),
    }
}

/// The distinct answers to each query so far.
type SeenAnswers = Arc<Mutex<BTreeMap<&'static str, BTreeSet<String>>>>;

/// Whether some query was answered before and after a change of its columns.
fn has_seen_change(seen_answers: &SeenAnswers) -> bool {
    seen_answers.lock().values().any(|answers| answers.len() > 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn values_match_names_under_concurrent_ddl() {
    let scene = TestDatabase::new(SELF_DESCRIBING_TABLE_SQL).await;
    let node = open_database(&scene);
    let (has_ended, seen_answers) = (Arc::new(AtomicBool::new(false)), SeenAnswers::default());
    let callers = (0..6_usize).map(|caller| {
        let (node, has_ended, seen_answers) = (node.clone(), has_ended.clone(), seen_answers.clone());
        tokio::spawn(async move {
            while !has_ended.load(Ordering::Relaxed) {
                for sql in QUERIES {
                    let statement =
                        if caller % 2 == 0 { owner_statement(sql, Vec::new()) } else { caller_statement(sql).unwrap() };
                    match answer_as_json(&node, &statement).await {
                        Ok(row) => {
                            let value: Value = serde_json::from_str(&row).unwrap();
                            assert!(matches_its_name("", &value), "{sql}: {row}");
                            seen_answers.lock().entry(sql).or_default().insert(row);
                        }
                        // Nothing locks a composite type, so a change of it may be noticed only while its values are read.
                        Err(error) => assert!(error.to_string().contains("a composite type changed"), "{sql}: {error}"),
                    }
                }
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    let change_all = async || {
        for change in CHANGES {
            scene.run(&format!("BEGIN; {change}; COMMIT")).await;
        }
    };
    for _ in 0..10 {
        change_all().await;
    }
    // Slow callers may need more changes until they have seen one.
    within_timeout("an answer with changed columns", async {
        while !has_seen_change(&seen_answers) {
            change_all().await;
        }
    })
    .await;
    has_ended.store(true, Ordering::Relaxed);
    for caller in callers {
        within_timeout("a caller", caller).await.unwrap();
    }
    node.wait_until_idle().await;
}
