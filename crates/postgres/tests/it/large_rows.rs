//! Rows that are larger than the bound: their call fails before they are in memory.

use std::sync::Arc;

use insta::assert_snapshot;
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresDatabase, PostgresOptions};

use crate::test_database::{OpenDatabase as _, OpenedDatabase, TestDatabase, owner_statement};

const BOUND: usize = 1 << 20;

fn options() -> PostgresOptions {
    PostgresOptions { message_bytes_max: BOUND, connections_max: 2, ..PostgresOptions::default() }
}

async fn check_bound(node: &OpenedDatabase) {
    assert_snapshot!(node.run_to_text("SELECT repeat('x', 2000000)").await, @r"
    too_large: the server sent a row of 2000010 bytes; the limit is 1048576 bytes (max_message_bytes)
    Select less of long values, such as left(column, 10000), or fewer columns.
    ");
    // Other calls are not affected, and the sum of the rows has no bound.
    assert_eq!(node.run_to_text("SELECT length(repeat('x', 2000000))").await, "2000000");
    let many = node.run_to_text("SELECT n, repeat('x', 100000) FROM generate_series(1, 50) AS n").await;
    assert_eq!((many.lines().count(), many.len() > 4 * BOUND), (50, true));
    let late = "SELECT CASE WHEN n < 20000 THEN 'x' ELSE repeat('x', 2000000) END FROM generate_series(1, 20000) AS n";
    for _ in 0..3 {
        let refusal = node.lines(&owner_statement(late, Vec::new())).await.unwrap_err();
        assert!(refusal.message().contains("a row of 2000010 bytes"), "{refusal}");
    }
    assert_eq!(node.run_to_text("SELECT 1").await, "1");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn large_row_ends_its_call_only() {
    let scene = TestDatabase::new("").await;
    check_bound(&scene.open(options())).await;
}

#[tokio::test]
async fn large_row_ends_its_call_over_tls() {
    let scene = TestDatabase::new("").await;
    if scene.pooler || std::env::var("TIDEGATE_TEST_POSTGRES_CA").is_err() {
        return;
    }
    let text = format!("{} dbname={} user={} password=right sslmode=require", scene.host, scene.name, scene.login());
    let target = ConnectTarget::parse(&text, &ConnectEnvironment::from_process()).unwrap();
    let database = Arc::new(PostgresDatabase::open("shop", target, options()).unwrap());
    check_bound(&OpenedDatabase { database }).await;
}

/// The default bound, and the memory of the whole process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn large_row_is_not_held_in_memory() {
    let peak_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions::default());
    assert_eq!(node.run_to_text("SELECT 1").await, "1");
    let before = peak_kib();
    let answer = node.run_to_text("SELECT repeat('x', 150000000)").await;
    assert!(answer.starts_with("too_large: the server sent a row of 150000010 bytes"), "{answer}");
    let grown = peak_kib() - before;
    assert!(grown < 32 << 10, "{grown} KiB");
}
