//! Tables as last known, and checks.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tidegate_core::{ErrorKind, Principal};
use tidegate_network::FlightSqlOptions;
use tidegate_query::{Database, NodeDatabase, TableEntry, TableStatus};
use tidegate_sql::SqlDialect;
use tidegate_testkit::wait::wait_until;

use crate::node::{TestNode, client, client_with, run};
use crate::proxy::{closed_address, silent_address};
use crate::tables::{TestTables, schema_of};

#[tokio::test]
async fn tables_have_their_exact_columns() {
    let node = TestNode::start(&TestTables::new(&["typed", "numbers", "broken", "callers"])).await;
    let client = client(&[node.url()]);
    let principal = Principal::process_user();
    let listed = client.tables(&principal).await.unwrap();
    let names: Vec<&str> = listed.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["broken", "callers", "numbers", "typed"]);
    let (broken, readable) = listed.tables.split_first().unwrap();
    assert!(broken.unreadable.as_deref().is_some_and(|reason| !reason.is_empty()), "{broken:?}");
    assert!(readable.iter().all(|table| table.unreadable.is_none()));
    for table in readable {
        assert_eq!(table.schema.fields(), schema_of(&table.name).fields(), "{}", table.name);
    }
    let numbers = &readable[1];
    assert_eq!((numbers.rows, numbers.comment.as_deref()), (Some(30), Some("Some numbers")));
    assert_eq!(readable[0].rows, None);
    let catalog = client.catalog(&principal).await.unwrap();
    let is_readable = |table: &TableEntry| table.status == TableStatus::Readable;
    assert!(catalog.tables.iter().all(|table| is_readable(table) == (table.name != "broken")));
    assert_eq!(client.columns("broken", &principal).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let columns = client.columns("typed", &principal).await.unwrap();
    assert_eq!((columns[0].name.as_str(), columns[0].type_name.as_str()), ("at", "timestamp with time zone"));
    assert_eq!((columns[3].type_name.as_str(), columns[3].nullable), ("tinyint unsigned", false));
    let error = client.columns("number", &principal).await.unwrap_err();
    assert_eq!((error.kind(), error.choices()), (ErrorKind::NotFound, &["numbers".to_owned()][..]));
}

#[tokio::test]
async fn a_list_is_remembered_until_a_statement_finds_other_tables() {
    let tables = TestTables::new(&["numbers"]);
    let node = TestNode::start(&tables).await;
    let client = client(&[node.url()]);
    let principal = Principal::process_user();
    let first = client.tables(&principal).await.unwrap();
    let listings = tables.listings.load(Ordering::SeqCst);
    tables.names.lock().push("others".to_owned());
    assert_eq!(client.tables(&principal).await.unwrap(), first);
    assert_eq!(tables.listings.load(Ordering::SeqCst), listings);
    assert_eq!(run(&client, "SELECT * FROM unknown").await.err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(client.tables(&principal).await.unwrap().tables.len(), 2);
}

#[tokio::test]
async fn tables_are_kept_while_the_node_is_away() {
    let node = TestNode::start(&TestTables::new(&["numbers"])).await;
    let client = client(&[node.url()]);
    let principal = Principal::process_user();
    let first = client.tables(&principal).await.unwrap();
    // The list is fetched again for the next caller.
    run(&client, "SELECT * FROM unknown").await.err().unwrap();
    node.stop().await;
    assert_eq!(client.tables(&principal).await.unwrap(), first);
    assert!(client.observed().failure.is_some_and(|failure| failure.contains("is not available")));
    assert_eq!(run(&client, "SELECT * FROM numbers").await.err().unwrap().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_node_that_was_never_seen_has_no_tables() {
    let client = client(&[closed_address().await]);
    let error = client.tables(&Principal::process_user()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // The failure is remembered for a moment.
    assert_eq!(client.tables(&Principal::process_user()).await.unwrap_err().to_string(), error.to_string());
}

/// A caller that gives up early does not make the next one wait again.
#[tokio::test]
async fn a_failure_is_remembered_after_its_caller_is_gone() {
    let timeout = Duration::from_millis(400);
    let options = FlightSqlOptions { timeout, ..FlightSqlOptions::new(vec![silent_address().await]) };
    let client = client_with(options);
    let principal = Principal::process_user();
    assert!(tokio::time::timeout(Duration::from_millis(50), client.tables(&principal)).await.is_err());
    wait_until("the failure", || async { client.observed().failure.is_some() }).await;
    let begun = Instant::now();
    assert_eq!(client.tables(&principal).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(begun.elapsed() < timeout, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn another_dialect_than_the_configured_one_is_an_error() {
    let node = TestNode::start(&TestTables::with_dialect(&["numbers"], SqlDialect::Sqlite)).await;
    let client = client(&[node.url()]);
    let expected = "node \"oslo\" has SQL of the dialect sqlite, but the configuration has datafusion\n\
                    Set dialect: sqlite where the node is configured.";
    let principal = Principal::process_user();
    assert_eq!(client.tables(&principal).await.unwrap_err().to_string(), expected);
    assert_eq!(run(&client, "SELECT * FROM numbers").await.err().unwrap().to_string(), expected);
    assert_eq!(client.check(&principal).await.unwrap_err().to_string(), expected);
    let options = FlightSqlOptions::new(vec![node.url()]);
    let client = client_with(FlightSqlOptions { dialect: SqlDialect::Sqlite, ..options });
    assert_eq!(client.tables(&principal).await.unwrap().tables.len(), 1);
}

#[tokio::test]
async fn the_default_database_is_the_only_one() {
    let node = TestNode::start(&TestTables::new(&["numbers"])).await;
    let client = tidegate_network::FlightSqlDatabase::new("oslo", FlightSqlOptions::new(vec![node.url()])).unwrap();
    assert_eq!(client.tables(&Principal::process_user()).await.unwrap().tables.len(), 1);
    assert_eq!(crate::node::numbers(&client, "SELECT n FROM numbers").await.unwrap().len(), 30);
    let other = client_with(FlightSqlOptions { database: None, ..FlightSqlOptions::new(vec![node.url()]) });
    assert_eq!(other.name(), "oslo");
}

#[tokio::test]
async fn an_unknown_database_is_not_found() {
    let node = TestNode::start(&TestTables::new(&["numbers"])).await;
    let options = FlightSqlOptions { database: Some("plan".to_owned()), ..FlightSqlOptions::new(vec![node.url()]) };
    let client = tidegate_network::FlightSqlDatabase::new("oslo", options).unwrap();
    let error = client.tables(&Principal::process_user()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("there is no database \"plan\""), "{error}");
}

#[tokio::test]
async fn a_check_reports_version_clock_and_subject() {
    let node = TestNode::start(&TestTables::new(&["numbers"])).await;
    let client = client(&[node.url()]);
    let check = client.check(&Principal::process_user()).await.unwrap();
    assert_eq!((check.version.as_str(), check.subject.as_str()), ("1.2.3", "anonymous"));
    assert_eq!(check.url, node.url());
    let half = i64::try_from(check.latency.as_millis()).unwrap() / 2 + 2;
    assert!(check.clock_offset_ms.abs() <= half, "{check:?}");
    let observed = client.observed();
    assert_eq!(observed.version.as_deref(), Some("1.2.3"));
    assert!(observed.latency.is_some() && observed.last_seen.is_some() && observed.failure.is_none());
}
