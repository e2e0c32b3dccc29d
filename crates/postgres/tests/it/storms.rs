//! Callers that leave in the middle of their calls, many at once.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_postgres::PostgresOptions;

use crate::test_database::{OpenDatabase as _, OpenedDatabase, TestDatabase, owner_statement, within_timeout};

const CONNECTIONS: usize = 4;
const STORMS: u64 = 20;
const CALLERS: usize = 50;

/// A statement of the owner, and one of a caller. Both run until they are cancelled.
async fn call(node: OpenedDatabase, number: usize) {
    if number.is_multiple_of(2) {
        let _ = node.lines(&owner_statement("SELECT pg_sleep(1000)", Vec::new())).await;
    } else {
        node.run_to_text("SELECT count(*) FROM generate_series(1, 1000000000000) i").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_call_after_a_storm_is_answered_on_the_same_connections() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions { connections_max: CONNECTIONS, ..PostgresOptions::default() });
    let login = scene.login();
    let backends = format!("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE usename = '{login}'");
    let mut seen = BTreeSet::new();
    for storm in 0..STORMS {
        let callers: Vec<_> = (0..CALLERS).map(|number| tokio::spawn(call(node.clone(), number))).collect();
        // They leave before a connection is open, while it is opened, while statements are prepared, or while they run.
        tokio::time::sleep(Duration::from_millis(storm * 3)).await;
        callers.iter().for_each(tokio::task::JoinHandle::abort);
        assert_eq!(within_timeout("the next call", node.run_to_text("SELECT 1")).await, "1");
        seen.extend(scene.value(&backends).await.split(' ').map(str::to_owned));
    }
    node.wait_until_idle().await;
    // A server that is too slow to roll back within the limit of the pool loses a connection. Behind a pooler, the connections to
    // the server are those of the pooler.
    assert!(scene.pooler || seen.len() <= 2 * CONNECTIONS, "{seen:?}");
}
