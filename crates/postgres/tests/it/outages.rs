//! Outages of a server under load: callers receive complete answers or clear errors, and later calls succeed again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidegate_core::ErrorKind;
use tidegate_postgres::PostgresOptions;
use tidegate_sql::Statement;

use crate::cluster::Cluster;
use crate::test_database::{
    OpenDatabase as _, OpenedDatabase, TestDatabase, caller_statement, owner_statement, wait_until, within_timeout,
    writing_statement,
};

const NUMBERS: &str = "
    CREATE TYPE parity AS ENUM ('even', 'odd');
    CREATE TABLE numbers AS
        SELECT i, CASE i % 2 WHEN 0 THEN 'even'::parity ELSE 'odd' END AS parity, repeat('x', 300) AS filling
        FROM generate_series(1, 1000) i;
    CREATE TABLE counter AS SELECT 0 AS count;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO {login}; GRANT UPDATE ON counter TO {login};
    ALTER ROLE {login} SET synchronous_commit = on;";

const CALLERS: usize = 6;

/// Callers that repeat queries, and their results.
struct CallerLoad {
    node: OpenedDatabase,
    is_stopped: Arc<AtomicBool>,
    results: Arc<LoadResults>,
    callers: Vec<tokio::task::JoinHandle<()>>,
}

#[derive(Default)]
struct LoadResults {
    /// Answers of each caller.
    answers: [AtomicU64; CALLERS],
    increments: AtomicU64,
    errors: Mutex<Vec<(ErrorKind, String)>>,
    failures: AtomicU64,
}

/// The query of a round, and the only correct answer.
fn query_for_round(round: usize) -> (Statement, String) {
    let all = |line: &dyn Fn(i32) -> String| (1..=1000).map(line).collect::<Vec<_>>().join("\n");
    match round % 3 {
        0 => (caller_statement("SELECT count(*), sum(i) FROM numbers").unwrap(), "1000|500500".to_owned()),
        // Enough of it that rows have left before the last one is read.
        1 => (owner_statement("SELECT i, filling FROM numbers ORDER BY i", Vec::new()), {
            let filling = "x".repeat(300);
            all(&|i| format!("{i}|{filling}"))
        }),
        _ => (
            caller_statement("SELECT parity, i FROM numbers ORDER BY i").unwrap(),
            all(&|i| format!("{}|{i}", if i % 2 == 0 { "even" } else { "odd" })),
        ),
    }
}

impl CallerLoad {
    fn start(node: &OpenedDatabase) -> Self {
        let (is_stopped, results) = (Arc::new(AtomicBool::new(false)), Arc::new(LoadResults::default()));
        let callers = (0..CALLERS).map(|caller| {
            let (node, stops, load_results) = (node.clone(), is_stopped.clone(), results.clone());
            tokio::spawn(async move {
                let mut round = caller;
                while !stops.load(Ordering::Relaxed) {
                    round += 1;
                    let (statement, right) = query_for_round(round);
                    match node.lines(&statement).await {
                        Ok(answer) => assert!(answer == right, "a wrong answer to {}", statement.text()),
                        Err(error) => load_results.record_failure(error.kind(), error.message()),
                    }
                    if caller < 2 {
                        load_results.increment(&node).await;
                    }
                    load_results.answers[caller].fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let callers = callers.collect();
        Self { node: node.clone(), is_stopped, results, callers }
    }

    /// Waits until every caller was answered again, without a failure in between.
    async fn wait_until_served(&self) {
        wait_until("service", || async {
            let failures = self.results.failures.load(Ordering::Relaxed);
            let before: Vec<u64> = self.results.answers.iter().map(|count| count.load(Ordering::Relaxed)).collect();
            wait_until("answers", || async {
                self.results
                    .answers
                    .iter()
                    .zip(&before)
                    .all(|(count, before)| count.load(Ordering::Relaxed) > before + 2)
            })
            .await;
            failures == self.results.failures.load(Ordering::Relaxed)
        })
        .await;
    }

    /// Stops the callers; none of them may have had a wrong answer. Then nothing is left behind.
    async fn end(self, scene: &TestDatabase, connections_max: usize) -> Arc<LoadResults> {
        self.is_stopped.store(true, Ordering::Relaxed);
        for caller in self.callers {
            within_timeout("the end of a caller", caller).await.unwrap();
        }
        self.node.wait_until_idle().await;
        wait_until("the rest of all backends", || async { scene.active().await == "0" }).await;
        let backends = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                        AND application_name LIKE 'tidegate%'";
        // The server lists the backend of a closed connection for a moment.
        wait_until("no more backends than connections", || async {
            scene.value(backends).await.parse::<usize>().unwrap() <= connections_max
        })
        .await;
        self.results
    }
}

impl LoadResults {
    fn record_failure(&self, kind: ErrorKind, message: &str) {
        let mut errors = self.errors.lock();
        let error = (kind, message.to_owned());
        if !errors.contains(&error) {
            errors.push(error);
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    async fn increment(&self, node: &OpenedDatabase) {
        match node.lines(&writing_statement("UPDATE counter SET count = count + 1", Vec::new())).await {
            Ok(_) => drop(self.increments.fetch_add(1, Ordering::Relaxed)),
            Err(error) => self.record_failure(error.kind(), error.message()),
        }
    }

    /// The messages of all errors, which must be of the kind `kind`.
    fn expect_messages(&self, kind: ErrorKind) -> Vec<String> {
        let errors = self.errors.lock();
        assert!(errors.iter().all(|(found, _)| *found == kind), "{errors:#?}");
        errors.iter().map(|(_, message)| message.clone()).collect()
    }
}

/// The beginnings of all error messages during an outage; the rest is the reason of the server or of the pooler.
const OUTAGE_MESSAGES: [&str; 3] = [
    "the connection to the database shop was lost; try again",
    "the database shop is not available: ",
    "the database shop cannot be reached: ",
];

fn expect_only_outage_errors(load_results: &LoadResults) {
    for message in load_results.expect_messages(ErrorKind::Unavailable) {
        assert!(OUTAGE_MESSAGES.iter().any(|beginning| message.starts_with(beginning)), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn restart_under_load_is_transient() {
    let cluster = Arc::new(Cluster::start());
    let scene = cluster.create_database(NUMBERS).await;
    restart_under_load(cluster, scene).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn restart_behind_a_pooler_is_transient() {
    let cluster = Arc::new(Cluster::start());
    let (scene, _pooler) = cluster.create_database_behind_pooler(NUMBERS).await;
    restart_under_load(cluster, scene).await;
}

async fn restart_under_load(cluster: Arc<Cluster>, mut scene: TestDatabase) {
    let node = scene.open(PostgresOptions { connections_max: 4, ..PostgresOptions::default() });
    let load = CallerLoad::start(&node);
    load.wait_until_served().await;
    for mode in ["fast", "immediate"] {
        let failures = load.results.failures.load(Ordering::Relaxed);
        let restarting = cluster.clone();
        tokio::task::spawn_blocking(move || restarting.restart(mode)).await.unwrap();
        load.wait_until_served().await;
        assert!(load.results.failures.load(Ordering::Relaxed) > failures, "nobody noticed: {mode}");
        scene.reconnect_admin().await;
    }
    let load_results = load.end(&scene, 4).await;
    expect_only_outage_errors(&load_results);
    // Confirmed increments are stored; unconfirmed ones may be.
    let count: u64 = scene.value("SELECT count FROM counter").await.parse().unwrap();
    let (confirmed, failures) =
        (load_results.increments.load(Ordering::Relaxed), load_results.failures.load(Ordering::Relaxed));
    assert!((confirmed..=confirmed + failures).contains(&count), "{count} of {confirmed}, {failures} failures");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn terminated_backends_fail_only_their_calls() {
    let scene = TestDatabase::new(NUMBERS).await;
    let node = scene.open(PostgresOptions { connections_max: 4, ..PostgresOptions::default() });
    let load = CallerLoad::start(&node);
    load.wait_until_served().await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
                AND application_name LIKE 'tidegate%' AND state = 'active' LIMIT 1";
    // A backend that had just answered dies between two statements, and no call notices.
    let kills = AtomicU64::new(0);
    wait_until("calls that fail", || async {
        let killed = scene.admin.query(kill, &[]).await.unwrap().len();
        kills.fetch_add(killed as u64, Ordering::Relaxed);
        load.results.failures.load(Ordering::Relaxed) >= 3
    })
    .await;
    load.wait_until_served().await;
    let load_results = load.end(&scene, 4).await;
    expect_only_outage_errors(&load_results);
    let count: u64 = scene.value("SELECT count FROM counter").await.parse().unwrap();
    let (confirmed, failures) =
        (load_results.increments.load(Ordering::Relaxed), load_results.failures.load(Ordering::Relaxed));
    let kills = kills.load(Ordering::Relaxed);
    assert!(failures <= kills, "{kills} backends were terminated, and {failures} calls failed");
    assert!((confirmed..=confirmed + failures).contains(&count), "{count} of {confirmed}, {failures} failures");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dropped_table_is_not_found_until_recreated() {
    let scene = TestDatabase::new(NUMBERS).await;
    let node = scene.open(PostgresOptions { connections_max: 4, ..PostgresOptions::default() });
    let load = CallerLoad::start(&node);
    for columns in ["parity, i, filling", "filling, i, parity, i AS more"] {
        load.wait_until_served().await;
        let failures = load.results.failures.load(Ordering::Relaxed);
        scene.run("CREATE TABLE kept AS TABLE numbers; DROP TABLE numbers").await;
        wait_until("a failure", || async { load.results.failures.load(Ordering::Relaxed) > failures }).await;
        let retried = format!(
            "CREATE TABLE numbers AS SELECT {columns} FROM kept ORDER BY i; GRANT SELECT ON numbers TO {{login}}; \
             DROP TABLE kept"
        );
        scene.run(&retried).await;
    }
    load.wait_until_served().await;
    let load_results = load.end(&scene, 4).await;
    for message in load_results.expect_messages(ErrorKind::NotFound) {
        assert!(message.starts_with("relation \"numbers\" does not exist at line 1, column "), "{message}");
    }
}

/// The server's disk is full, for tables and for temporary files.
#[tokio::test]
async fn full_disk_is_reported_and_recovered() {
    let folder = tempfile::tempdir().unwrap();
    // Without the permission to mount a small disk, this cannot be tested.
    let Some(cluster) = Cluster::start_beside_tmpfs(folder.path(), 8) else { return };
    let scene = cluster
        .create_database("CREATE TABLE t AS SELECT i, repeat('x', 1000) AS x FROM generate_series(1, 20000) i; GRANT ALL ON t TO {login};")
        .await;
    scene.run(&format!("CREATE TABLESPACE small LOCATION '{}'", folder.path().display())).await;
    scene.run("CREATE TABLE kept (i int, x text) TABLESPACE small; GRANT ALL ON kept TO {login}; GRANT CREATE ON TABLESPACE small TO {login}; ALTER ROLE {login} SET temp_tablespaces = small; ALTER ROLE {login} SET work_mem = '64kB'").await;
    let node = scene.open(PostgresOptions { connections_max: 2, ..PostgresOptions::default() });
    let sort = "SELECT i FROM t ORDER BY x, i DESC";
    let keep = writing_statement("INSERT INTO kept SELECT i, x FROM t", Vec::new());
    for _ in 0..3 {
        let full = "the database shop is not available: its disk is full";
        assert_eq!(node.run_to_text(sort).await, format!("unavailable: {full}"));
        assert_eq!(node.lines(&keep).await.unwrap_err().to_string(), full);
        assert_eq!(node.run_to_text("SELECT count(*) FROM kept").await, "0");
        assert_eq!(node.run_to_text("SELECT count(*) FROM t").await, "20000");
    }
    node.wait_until_idle().await;
}

/// The server limits the temporary files of a statement and reports it.
#[tokio::test]
async fn temp_file_limit_is_too_large_error() {
    let scene =
        TestDatabase::new("ALTER ROLE {login} SET temp_file_limit = '1MB'; ALTER ROLE {login} SET work_mem = '64kB'")
            .await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let sort = "SELECT i FROM generate_series(1, 1000000) i ORDER BY i DESC";
    for _ in 0..2 {
        let message = node.run_to_text(sort).await;
        assert!(message.starts_with("too_large: temporary file size exceeds "), "{message}");
        assert_eq!(node.run_to_text("SELECT 1").await, "1");
    }
    node.wait_until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_killed_while_it_is_idle_costs_no_call() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let backends = format!("FROM pg_stat_activity WHERE usename = '{}'", scene.login());
    for _ in 0..20 {
        assert_eq!(within_timeout("a call", node.run_to_text("SELECT 1")).await, "1");
        node.wait_until_idle().await;
        scene.value(&format!("SELECT count(pg_terminate_backend(pid)) {backends}")).await;
        // The next call may begin before this process learns that the connection has ended.
        let count = format!("SELECT count(*) {backends}");
        wait_until("the end of all connections", || async { scene.value(&count).await == "0" }).await;
    }
}
