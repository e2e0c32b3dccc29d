//! Nodes that are away, return, or are replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_core::{ErrorKind, Principal};
use tidegate_network::FlightSqlOptions;
use tidegate_query::{Database, NodeDatabase};
use tidegate_testkit::wait::wait_until;

use crate::node::{TestNode, client, client_with, numbers, run};
use crate::other_program::OtherProgram;
use crate::proxy::{closed_address, cutting_proxy, proxy_with_cut, silent_address};
use crate::tables::TestTables;

const COUNT: &str = "SELECT n FROM numbers";

#[tokio::test]
async fn a_node_that_is_away_is_unavailable() {
    let url = closed_address().await;
    let client = client(std::slice::from_ref(&url));
    assert!(client.observed().last_seen.is_none());
    let error = run(&client, COUNT).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().starts_with("node \"oslo\" is not available: "), "{error}");
    assert!(error.message().to_lowercase().contains("refused"), "{error}");
    assert_eq!(client.observed().failure.as_deref(), Some(error.message()));
    assert_eq!(client.check_reachable().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(client.url(), url);
}

#[tokio::test]
async fn the_next_replica_answers_and_stays_in_use() {
    let tables = TestTables::new(&["numbers"]);
    let node = TestNode::start(&tables).await;
    // Each replica has a share of it.
    let timeout = Duration::from_secs(20);
    let urls = vec![closed_address().await, silent_address().await, cutting_proxy(node.address, 150).await, node.url()];
    let client = client_with(FlightSqlOptions { timeout, ..FlightSqlOptions::new(urls) });
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
    assert_eq!(client.url(), node.url());
    assert!(client.observed().failure.is_none());
    client.check_reachable().await.unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
    assert!(begun.elapsed() < timeout / 4, "the replica is used at once");
}

/// An error of the statement is the same on each replica.
#[tokio::test]
async fn errors_of_statements_do_not_move_on() {
    let (first, second) = (TestTables::new(&["numbers"]), TestTables::new(&["numbers", "others"]));
    let (first, second) = (TestNode::start(&first).await, TestNode::start(&second).await);
    let client = client(&[first.url(), second.url()]);
    let error = run(&client, "SELECT * FROM others").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(client.url(), first.url());
}

#[tokio::test]
async fn a_node_that_returns_is_used_again() {
    let tables = TestTables::new(&["numbers"]);
    let (first, second) = (TestNode::start(&tables).await, TestNode::start(&tables).await);
    let client = client(&[first.url(), second.url()]);
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
    assert_eq!(client.url(), first.url());
    let address = first.stop().await;
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
    assert_eq!(client.url(), second.url());
    let first = TestNode::start_at(&address.to_string(), &tables).await;
    wait_until("the first replica", || async {
        numbers(&client, COUNT).await.unwrap();
        client.url() == first.url()
    })
    .await;
}

#[tokio::test]
async fn a_restarted_node_is_connected_again() {
    let tables = TestTables::new(&["numbers"]);
    let node = TestNode::start(&tables).await;
    let client = client(&[node.url()]);
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
    let address = node.stop().await;
    assert_eq!(run(&client, COUNT).await.err().unwrap().kind(), ErrorKind::Unavailable);
    let node = TestNode::start_at(&address.to_string(), &tables).await;
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
    assert_eq!(client.url(), node.url());
    client.close().await;
    // A database that was closed connects again if it is still used.
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
}

/// A connection that broke unnoticed costs no statement.
#[tokio::test]
async fn a_broken_connection_is_replaced() {
    let tables = TestTables::new(&["numbers"]);
    let (node, cut) = (TestNode::start(&tables).await, Arc::new(AtomicBool::new(false)));
    let client = client(&[proxy_with_cut(node.address, cut.clone()).await]);
    for round in 0..3 {
        assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
        assert!(!cut.load(Ordering::SeqCst), "the connection was not cut in round {round}");
        cut.store(round < 2, Ordering::SeqCst);
    }
}

/// Another program at the same address is found out after the failure of the first one.
#[tokio::test]
async fn another_program_at_the_address_is_recognized() {
    let tables = TestTables::new(&["numbers"]);
    let (node, program) = (TestNode::start(&tables).await, OtherProgram::default());
    let client = client(&[node.url(), program.start().await]);
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
    node.stop().await;
    assert_eq!(numbers(&client, COUNT).await.unwrap(), [0]);
    assert_eq!(program.received(), [COUNT]);
}

/// Statements are often planned and read where there are no sockets.
#[tokio::test]
async fn a_runtime_for_computation_can_use_a_node() {
    let node = TestNode::start(&TestTables::new(&["numbers"])).await;
    let client = Arc::new(client(&[node.url()]));
    let computation = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let reading = client.clone();
    let read = computation.spawn(async move {
        let tables = reading.tables(&Principal::process_user()).await.unwrap().tables.len();
        (tables, numbers(&reading, COUNT).await.unwrap().len())
    });
    assert_eq!(read.await.unwrap(), (1, 30));
    computation.shutdown_background();
    // The connection is still there.
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
}

#[tokio::test]
async fn many_answers_are_open_at_once() {
    let tables = TestTables::new(&["numbers", "endless"]);
    let node = TestNode::start(&tables).await;
    let client = client(&[node.url()]);
    let mut open = Vec::new();
    // None of them is read, and each fills its window.
    for _ in 0..80 {
        open.push(run(&client, "SELECT * FROM endless").await.unwrap());
    }
    assert_eq!(numbers(&client, COUNT).await.unwrap().len(), 30);
    drop(open);
    wait_until("the end of the calls", || async { tables.observed.open() == 0 }).await;
    let principal = Principal::process_user();
    assert_eq!(client.check(&principal).await.unwrap().running_calls, 0);
}
