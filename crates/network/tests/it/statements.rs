//! Answers, errors, cancellation, deadlines and large messages.

use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use tidegate_core::{ErrorKind, Principal};
use tidegate_network::FlightSqlOptions;
use tidegate_query::{Database, NodeDatabase};
use tidegate_sql::{Parameter, SqlDialect, Statement, Transaction};
use tidegate_testkit::wait::{wait_until, within_timeout};

use crate::node::{TestJob, TestNode, client, client_with, collect, numbers, run, run_with, statement};
use crate::proxy::{cutting_proxy, silent_address};
use crate::tables::{BATCH_ROWS, TestTables, schema_of};

const TABLES: [&str; 6] = ["numbers", "endless", "slow", "fails_later", "wide", "callers"];

#[tokio::test]
async fn rows_arrive_with_the_columns_of_the_node() {
    let node = TestNode::start(&TestTables::new(&TABLES)).await;
    let client = client(&[node.url()]);
    let rows = run(&client, "SELECT * FROM numbers").await.unwrap();
    assert_eq!(rows.schema.fields(), schema_of("numbers").fields());
    assert!(rows.missing.is_none());
    let batch = collect(rows).await.unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &(0..30).collect::<Vec<_>>()[..]);
    assert_eq!(batch.column(1).as_string::<i32>().value(29), "row 29");
}

#[tokio::test]
async fn an_answer_without_rows_has_its_columns() {
    let node = TestNode::start(&TestTables::new(&TABLES)).await;
    let rows = run(&client(&[node.url()]), "SELECT * FROM numbers WHERE 1 = 0").await.unwrap();
    assert_eq!(rows.schema.fields(), schema_of("numbers").fields());
    assert_eq!(collect(rows).await.unwrap().num_rows(), 0);
}

#[tokio::test]
async fn a_node_that_is_a_network_itself_marks_its_answers() {
    let node = TestNode::start(&TestTables::new(&["partial"])).await;
    let client = client(&[node.url()]);
    for sql in ["SELECT * FROM partial", "SELECT * FROM partial WHERE 1 = 0"] {
        let rows = run(&client, sql).await.unwrap();
        let missing = rows.missing.clone().unwrap();
        assert_eq!((missing.nodes[0].name.as_str(), missing.nodes[0].reason.as_str()), ("rome", "is away"), "{sql}");
        assert!(rows.schema.metadata().is_empty(), "the mark is not a part of the columns");
        collect(rows).await.unwrap();
    }
}

#[tokio::test]
async fn a_plan_has_the_columns_and_runs() {
    let tables = TestTables::new(&TABLES);
    let node = TestNode::start(&tables).await;
    let client = client(&[node.url()]);
    let statement = statement(&client, "SELECT * FROM numbers");
    let plan = client.plan(&statement, &Principal::process_user()).await.unwrap();
    assert_eq!(plan.schema().fields(), schema_of("numbers").fields());
    assert_eq!(tables.observed.runs.load(Ordering::SeqCst), 0);
    assert!(plan.explain().await.unwrap().contains(&node.url()));
    let running = TestJob::start().await;
    assert_eq!(collect(plan.run(&running.job).await.unwrap()).await.unwrap().num_rows(), 30);
}

#[tokio::test]
async fn values_are_bound() {
    let node = TestNode::start(&TestTables::new(&TABLES)).await;
    let client = client(&[node.url()]);
    let values = vec![
        Parameter::Integer(i64::MAX),
        Parameter::Float(1.0),
        Parameter::Null,
        Parameter::Boolean(true),
        Parameter::Text("it's \"é\"".to_owned()),
    ];
    let expected = format!("{values:?}");
    let batch = collect(run_with(&client, "SELECT $1, $2, $3, $4, $5", values).await.unwrap()).await.unwrap();
    assert_eq!(batch.column(0).as_string::<i32>().value(0), expected);
    let error = run_with(&client, "SELECT $1", vec![Parameter::Float(f64::NAN)]).await.err().unwrap();
    assert!(error.to_string().contains("NaN cannot be a parameter"), "{error}");
}

#[tokio::test]
async fn errors_of_the_node_keep_their_kind_and_their_parts() {
    let node = TestNode::start(&TestTables::new(&TABLES)).await;
    let client = client(&[node.url()]);
    let error = run(&client, "SELECT missing_column FROM numbers").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert_eq!(error.message(), "node \"oslo\": there is no column \"missing_column\"");
    assert_eq!((error.choices(), error.hint()), (&["n".to_owned(), "t".to_owned()][..], Some("Columns: n, t.")));
    let error = run(&client, "SELECT * FROM number").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("numbers"), "{error}");
    // The answer to a statement is no failure of the node.
    assert!(client.observed().failure.is_none() && client.observed().last_seen.is_some());
}

#[tokio::test]
async fn a_failure_after_the_first_rows_fails_the_answer() {
    let node = TestNode::start(&TestTables::new(&TABLES)).await;
    let rows = run(&client(&[node.url()]), "SELECT * FROM fails_later").await.unwrap();
    let error = collect(rows).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.message(), "node \"oslo\": the disk is away");
}

#[tokio::test]
async fn statements_that_write_are_refused() {
    let client = client(&["grpc://127.0.0.1:1".to_owned()]);
    let transaction = Transaction { writes: true, ..Transaction::default() };
    let owner = Statement::from_owner("DELETE FROM numbers", Vec::new(), SqlDialect::DataFusion);
    let statement = owner.in_transaction(transaction.into());
    let running = TestJob::start().await;
    let error = client.run(&statement, &Principal::process_user(), &running.job).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(error.to_string().contains("statements that write"), "{error}");
}

/// A reader that stops reading stops the node, and one that goes away ends the call there.
#[tokio::test]
async fn an_answer_is_pulled_and_ends_with_its_reader() {
    let tables = TestTables::new(&TABLES);
    let node = TestNode::start(&tables).await;
    let client = client(&[node.url()]);
    let mut rows = run(&client, "SELECT * FROM endless").await.unwrap();
    let first = rows.batches.next().await.unwrap().unwrap();
    assert_eq!(first.column(0).as_primitive::<Int64Type>().value(0), 0);
    let pulled = || tables.observed.batches.load(Ordering::SeqCst);
    within_timeout("back-pressure", async {
        let mut before = 0;
        while pulled() != before {
            before = pulled();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    assert!(pulled() < 1000, "{} batches of {BATCH_ROWS} rows were pulled", pulled());
    assert_eq!(tables.observed.open(), 1);
    // Other statements of the same connection go on.
    assert_eq!(numbers(&client, "SELECT n FROM numbers").await.unwrap().len(), 30);
    drop(rows);
    wait_until("the end of the call", || async { tables.observed.open() == 0 }).await;
}

#[tokio::test]
async fn cancelling_the_job_ends_the_call_at_the_node() {
    let tables = TestTables::new(&TABLES);
    let node = TestNode::start(&tables).await;
    let client = client(&[node.url()]);
    let running = TestJob::start().await;
    let endless = statement(&client, "SELECT * FROM endless");
    let mut rows = client.run(&endless, &Principal::process_user(), &running.job).await.unwrap();
    rows.batches.next().await.unwrap().unwrap();
    let slow = statement(&client, "SELECT * FROM slow");
    let principal = Principal::process_user();
    let waiting = client.run(&slow, &principal, &running.job);
    let cancelling = async {
        wait_until("both calls", || async { tables.observed.open() == 2 }).await;
        running.job.cancel();
    };
    let (waited, ()) = within_timeout("the cancelled call", futures::future::join(waiting, cancelling)).await;
    assert_eq!(waited.err().unwrap().kind(), ErrorKind::Cancelled);
    let error = within_timeout("the error", async {
        loop {
            if let Err(error) = rows.batches.next().await.unwrap() {
                break error;
            }
        }
    });
    assert_eq!(error.await.kind(), ErrorKind::Cancelled);
    drop(rows);
    wait_until("the end of the calls", || async { tables.observed.open() == 0 }).await;
}

#[tokio::test]
async fn a_node_without_a_first_row_in_time_is_given_up() {
    let tables = TestTables::new(&TABLES);
    let node = TestNode::start(&tables).await;
    let timeout = Duration::from_millis(700);
    let client = client_with(FlightSqlOptions { timeout, ..FlightSqlOptions::new(vec![node.url()]) });
    let error = run(&client, "SELECT * FROM slow").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().starts_with("node \"oslo\" did not answer within 0."), "{error}");
    wait_until("the end of the call", || async { tables.observed.open() == 0 }).await;
    // After the first row, only the time limit of the call counts. Five seconds are enough for that row on any machine.
    let timeout = Duration::from_secs(5);
    let client = client_with(FlightSqlOptions { timeout, ..FlightSqlOptions::new(vec![node.url()]) });
    let mut rows = run(&client, "SELECT * FROM endless").await.unwrap();
    tokio::time::sleep(timeout).await;
    for _ in 0..200 {
        rows.batches.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_time_limit_of_the_call_counts() {
    let tables = TestTables::new(&TABLES);
    let node = TestNode::start(&tables).await;
    let client = client(&[node.url()]);
    let slow = statement(&client, "SELECT * FROM slow");
    let running = TestJob::start_within(Duration::from_millis(300)).await;
    let principal = Principal::process_user();
    let error = within_timeout("the error", client.run(&slow, &principal, &running.job)).await.err().unwrap();
    assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Cancelled), "{error}");
    wait_until("the end of the call", || async { tables.observed.open() == 0 }).await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let timeout = Duration::from_millis(300);
    let options = FlightSqlOptions { timeout, ..FlightSqlOptions::new(vec![silent_address().await]) };
    let error = run(&client_with(options), "SELECT * FROM numbers").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
}

#[tokio::test]
async fn a_message_that_is_too_large_is_an_error() {
    let node = TestNode::start(&TestTables::new(&TABLES)).await;
    let error = run(&client(&[node.url()]), "SELECT * FROM wide").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("a message of more than 64 MiB"), "{error}");
}

/// A connection that breaks, wherever it does, never makes an answer look complete.
#[tokio::test]
async fn a_cut_answer_is_an_error() {
    let node = TestNode::start(&TestTables::new(&TABLES)).await;
    let mut errors = Vec::new();
    // The whole conversation has about three thousand bytes.
    for bytes in (0..20_000).step_by(97) {
        let client = client(&[cutting_proxy(node.address, bytes).await]);
        match numbers(&client, "SELECT n FROM numbers").await {
            Ok(rows) => assert_eq!(rows.len(), 30, "after {bytes} bytes"),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut), "{bytes}: {error:?}");
                errors.push(bytes);
            }
        }
    }
    assert!((5..200).contains(&errors.len()), "{errors:?}");
}

#[tokio::test]
async fn a_cut_between_batches_is_an_error() {
    let node = TestNode::start(&TestTables::new(&TABLES)).await;
    let client = client(&[cutting_proxy(node.address, 3_000_000).await]);
    let mut rows = run(&client, "SELECT * FROM endless").await.unwrap();
    let mut batches = 0;
    let ended = within_timeout("the end", async {
        loop {
            match rows.batches.next().await {
                Some(Ok(_)) => batches += 1,
                end => break end,
            }
        }
    });
    assert_eq!(ended.await.expect("an error").unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(batches > 5, "{batches}");
}
