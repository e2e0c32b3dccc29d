//! Behind PgBouncer in transaction mode: what the driver's names of statements make of a connection that changes with
//! each transaction. The rest of this suite runs behind one too: `scripts/postgres pooler -- cargo nextest run …`.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_postgres::PostgresOptions;

use crate::background_script::BackgroundScript;
use crate::test_database::{
    OpenDatabase as _, OpenedDatabase, TestDatabase, caller_statement, connect, owner_statement, wait_until,
    within_timeout,
};

/// Types of users, each in a table of its own, and one table of them all.
const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('glad', 'sad');
    CREATE DOMAIN short AS varchar(9);
    CREATE TYPE part AS (label short, moods mood[]);
    CREATE TYPE span AS RANGE (subtype = date);
    CREATE TABLE moods AS SELECT 'glad'::mood AS mood;
    CREATE TABLE parts AS SELECT ROW('a', '{sad}')::part AS part;
    CREATE TABLE lists AS SELECT ARRAY[ROW('b', NULL)::part] AS parts;
    CREATE TABLE spans AS SELECT '[2024-01-01,2024-02-01)'::span AS span;
    CREATE TABLE shorts AS SELECT ARRAY['c', 'd']::short[] AS shorts;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO {login};";

const ANSWERS: [(&str, &str); 5] = [
    ("SELECT mood FROM moods", "glad"),
    ("SELECT part FROM parts", "{label: a, moods: [sad]}"),
    ("SELECT parts FROM lists", "[{label: b, moods: null}]"),
    ("SELECT span FROM spans", "[2024-01-01,2024-02-01)"),
    ("SELECT shorts FROM shorts", "[c, d]"),
];

/// A pooler before the server that the tests share.
struct TestPooler(BackgroundScript);

impl TestPooler {
    fn start() -> Self {
        Self(BackgroundScript::start(&[], &["pooler"]))
    }

    fn open(&self, scene: &TestDatabase, connections_max: usize) -> OpenedDatabase {
        let options = PostgresOptions { is_behind_pooler: true, connections_max, ..PostgresOptions::default() };
        scene.open_at(self.host(), &scene.login(), options)
    }

    fn host(&self) -> &str {
        self.0.variable("TIDEGATE_TEST_PGBOUNCER")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn user_defined_types_decode_on_every_connection() {
    let (scene, pooler) = (TestDatabase::new(TYPES).await, TestPooler::start());
    let node = pooler.open(&scene, 4);
    // More callers than connections of ours, which are more than those of the pooler.
    let callers = (0..8).map(|caller| {
        let node = node.clone();
        tokio::spawn(async move {
            for round in 0..20 {
                let (sql, answer) = ANSWERS[(caller + round) % ANSWERS.len()];
                assert_eq!(node.run_to_text(sql).await, answer, "{sql}");
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let together = "SELECT mood, part, parts, span, shorts FROM moods, parts, lists, spans, shorts";
    assert_eq!(node.run_to_text(together).await, ANSWERS.map(|(_, answer)| answer).join("|"));
    node.wait_until_idle().await;
}

/// Once all types have been seen, one connection serves them all: alternating callers cause no reconnection.
#[tokio::test]
async fn user_defined_types_do_not_replace_connections() {
    let (scene, pooler) = (TestDatabase::new(TYPES).await, TestPooler::start());
    let node = pooler.open(&scene, 1);
    let ask_all = async || {
        for (sql, answer) in ANSWERS {
            assert_eq!(node.run_to_text(sql).await, answer, "{sql}");
        }
    };
    ask_all().await;
    ask_all().await;
    let before = pooler_clients(&scene, &pooler).await;
    for _ in 0..5 {
        ask_all().await;
    }
    assert_eq!(pooler_clients(&scene, &pooler).await, before);
    // A dropped type has no further effect, and a new type of the same name is another type.
    scene.run("DROP TYPE mood CASCADE; CREATE TYPE mood AS ENUM ('sad', 'calm'); DROP TABLE moods; CREATE TABLE moods AS SELECT 'calm'::mood AS mood; GRANT SELECT ON moods TO {login}").await;
    assert_eq!(node.run_to_text("SELECT mood FROM moods").await, "calm");
    let other = pooler.open(&scene, 1);
    assert_eq!(other.run_to_text("SELECT span FROM spans").await, ANSWERS[3].1);
    node.wait_until_idle().await;
}

/// The ports of Tidegate's connections to the pooler, as the pooler has logged them.
async fn pooler_clients(scene: &TestDatabase, pooler: &TestPooler) -> BTreeSet<String> {
    let log = std::fs::read_to_string(pooler.0.variable("TIDEGATE_TEST_PGBOUNCER_LOG")).unwrap();
    let logins = log.lines().filter(|line| line.contains("login attempt") && line.contains(&scene.name));
    logins.map(str::to_owned).collect()
}

/// Another process uses the same names, and leaves some behind.
#[tokio::test]
async fn foreign_statement_names_do_not_conflict() {
    let (scene, pooler) = (TestDatabase::new(TYPES).await, TestPooler::start());
    let text = format!("{} dbname={} user={} password=right sslmode=disable", pooler.host(), scene.name, scene.login());
    let leave = (0..500).map(|number| format!("PREPARE s{number} (oid) AS SELECT 'another''s';")).collect::<String>();
    let node = pooler.open(&scene, 2);
    for _ in 0..3 {
        // Two at once, so that both connections of the pooler are used.
        let (one, two) = (connect(&text).await, connect(&text).await);
        let (first, second) = futures::join!(
            async { (one.batch_execute(&format!("DEALLOCATE ALL; {leave} SELECT pg_sleep(0.02)")).await, ()) },
            async { (two.batch_execute(&format!("DEALLOCATE ALL; {leave} SELECT pg_sleep(0.02)")).await, ()) },
        );
        first.0.unwrap();
        second.0.unwrap();
        for (sql, answer) in ANSWERS {
            assert_eq!(node.run_to_text(sql).await, answer, "{sql}");
        }
        assert_eq!(node.tables().await, "lists moods parts shorts spans");
    }
    node.wait_until_idle().await;
}

/// The pooler may keep a statement longer than the table that it reads stays the same.
#[tokio::test]
async fn a_changed_table_is_seen_on_every_connection() {
    let (scene, pooler) =
        (TestDatabase::new("CREATE TABLE t AS SELECT 1 AS a; GRANT SELECT ON t TO {login}").await, TestPooler::start());
    let node = pooler.open(&scene, 2);
    let statements = [owner_statement("SELECT * FROM t", Vec::new()), caller_statement("SELECT * FROM t").unwrap()];
    for columns in ["1", "1|2", "1|2|3"] {
        for statement in statements.iter().cycle().take(6) {
            let (one, two) = futures::join!(node.lines(statement), node.lines(statement));
            assert_eq!((one.unwrap().as_str(), two.unwrap().as_str()), (columns, columns));
        }
        let next = columns.split('|').count() + 1;
        scene.run(&format!("ALTER TABLE t ADD COLUMN c{next} int DEFAULT {next}")).await;
    }
    node.wait_until_idle().await;
}

/// The pooler passes a cancellation on to the connection that the cancelled client uses at that moment.
#[tokio::test]
async fn cancellation_stops_only_its_statement() {
    let (scene, pooler) = (TestDatabase::new("").await, TestPooler::start());
    let node = pooler.open(&scene, 3);
    // The catalog, which is read in the background, would wait in the pooler's queue, too.
    assert_eq!(node.run_to_text("SELECT 1").await, "1");
    node.wait_until_idle().await;
    scene.run("SELECT pg_advisory_lock(1)").await;
    let running = |sql: &'static str| {
        let node = node.clone();
        tokio::spawn(async move { node.lines(&owner_statement(sql, Vec::new())).await })
    };
    let sleeping = running("SELECT pg_sleep(1000)");
    let waiting = running("SELECT 'let in' FROM pg_advisory_xact_lock(1)");
    let both = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
                AND query ~ '^SELECT (pg_sleep|''let in)'";
    wait_until("the start of both", || async { scene.value(both).await == "2" }).await;
    // A third query finds no connection and is dropped in the pooler's queue: nothing is stopped.
    let third = tokio::time::timeout(Duration::from_millis(50), node.run_to_text("SELECT 1")).await;
    assert!(third.is_err(), "{third:?}");
    wait_until("the end of the third", || async { node.database.connections_in_use() == 2 }).await;
    assert_eq!(scene.value(both).await, "2");
    sleeping.abort();
    wait_until("the end of the sleeper", || async { scene.value(both).await == "1" }).await;
    assert_eq!(node.run_to_text("SELECT 1").await, "1");
    scene.run("SELECT pg_advisory_unlock(1)").await;
    assert_eq!(within_timeout("the lock", waiting).await.unwrap().unwrap(), "let in");
    node.wait_until_idle().await;
}

/// If the configuration does not declare the pooler, the error names the option.
#[tokio::test]
async fn undeclared_pooler_is_reported() {
    let (scene, pooler) = (TestDatabase::new(TYPES).await, TestPooler::start());
    let options = PostgresOptions { connections_max: 4, ..PostgresOptions::default() };
    let node = scene.open_at(pooler.host(), &scene.login(), options);
    let requested = (0..8).map(|_| node.run_to_text("SELECT mood FROM moods"));
    for message in futures::future::join_all(requested).await {
        assert!(message == "glad" || message.contains("pgbouncer: true"), "{message}");
    }
}
