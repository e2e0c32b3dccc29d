//! Declared tools that write: each writes completely or not at all, and no other statement writes.

use std::sync::Arc;

use tidegate_core::{ErrorKind, Principal};
use tidegate_postgres::PostgresOptions;
use tidegate_query::Database;
use tidegate_sql::{Isolation, Parameter, Transaction};

use crate::test_database::{OpenDatabase as _, TestDatabase, TestJob, owner_statement, writing_statement};

const ACCOUNTS: &str = "
    CREATE TABLE accounts (id int PRIMARY KEY, amount int CHECK (amount >= 0));
    INSERT INTO accounts VALUES (1, 100), (2, 100);
    CREATE FUNCTION touch() RETURNS int LANGUAGE sql AS 'UPDATE accounts SET amount = 0 RETURNING 1';
    GRANT SELECT, INSERT, UPDATE ON accounts TO {login};";

#[tokio::test]
async fn writing_statement_commits_and_returns_rows() {
    let scene = TestDatabase::new(ACCOUNTS).await;
    let node = scene.open(PostgresOptions::default());
    let pay = writing_statement(
        "UPDATE accounts SET amount = amount - $1 RETURNING id, amount",
        vec![Parameter::Integer(30)],
    );
    assert_eq!(node.lines(&pay).await.unwrap(), "1|70\n2|70");
    assert_eq!(scene.value("SELECT sum(amount) FROM accounts").await, "140");
    let quiet = writing_statement("UPDATE accounts SET amount = amount + 1", Vec::new());
    assert_eq!(node.lines(&quiet).await.unwrap(), "2");
    assert_eq!(scene.value("SELECT sum(amount) FROM accounts").await, "142");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn failed_write_is_rolled_back() {
    let scene = TestDatabase::new(ACCOUNTS).await;
    let node = scene.open(PostgresOptions::default());
    let pay = writing_statement(
        "UPDATE accounts SET amount = amount - CASE id WHEN 1 THEN 1 ELSE 500 END RETURNING id",
        Vec::new(),
    );
    assert_eq!(node.lines(&pay).await.unwrap_err().kind(), ErrorKind::InvalidArguments);
    assert_eq!(scene.value("SELECT sum(amount) FROM accounts").await, "200");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn cancelled_write_is_rolled_back() {
    let scene = TestDatabase::new(ACCOUNTS).await;
    let node = scene.open(PostgresOptions::default());
    let job = TestJob::start().await;
    let slow = writing_statement("UPDATE accounts SET amount = 0 WHERE pg_sleep(1000) IS NOT NULL", Vec::new());
    let plan = node.plan(&slow).await.unwrap();
    let cancel = async {
        crate::test_database::wait_until("the statement's start", || async { scene.active().await == "1" }).await;
        job.job.cancel();
    };
    let (outcome, ()) = futures::join!(plan.run(&job.job), cancel);
    assert_eq!(outcome.err().unwrap().kind(), ErrorKind::Cancelled);
    crate::test_database::wait_until("the end of the statement", || async { scene.active().await == "0" }).await;
    assert_eq!(scene.value("SELECT sum(amount) FROM accounts").await, "200");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn undeclared_write_is_rejected() {
    let scene = TestDatabase::new(ACCOUNTS).await;
    let node = scene.open(PostgresOptions::default());
    for sql in [
        "UPDATE accounts SET amount = 0",
        "SELECT touch()",
        "WITH w AS (DELETE FROM accounts RETURNING 1) SELECT * FROM w",
    ] {
        let refusal = node.lines(&owner_statement(sql, Vec::new())).await.unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Forbidden, "{sql}: {refusal}");
    }
    assert_eq!(scene.value("SELECT sum(amount) FROM accounts").await, "200");
    node.wait_until_idle().await;
}

/// Each of many writers reads and writes the same row under serializable isolation: all of them come through, because
/// those that lose are tried again, and none is counted twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serialization_conflicts_are_retried() {
    let scene = TestDatabase::new(ACCOUNTS).await;
    let node = scene.open(PostgresOptions { connections_max: 4, ..PostgresOptions::default() });
    let transaction = Arc::new(Transaction {
        isolation: Isolation::Serializable,
        writes: true,
        retries_max: 100,
        ..Transaction::default()
    });
    let add =
        "UPDATE accounts SET amount = (SELECT amount + 1 FROM accounts WHERE id = 1) WHERE id = 1 RETURNING amount";
    let writers = (0..20).map(|_| {
        let (node, statement) = (node.clone(), owner_statement(add, Vec::new()).in_transaction(transaction.clone()));
        tokio::spawn(async move { node.lines(&statement).await.unwrap() })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(scene.value("SELECT amount FROM accounts WHERE id = 1").await, "120");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn describe_does_not_run_a_write() {
    let scene = TestDatabase::new(ACCOUNTS).await;
    let node = scene.open(PostgresOptions::default());
    let pay = writing_statement("UPDATE accounts SET amount = 0 RETURNING id, amount", Vec::new());
    let schema = node.database.describe(&pay, &Principal::process_user()).await.unwrap();
    assert_eq!(schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["id", "amount"]);
    assert_eq!(scene.value("SELECT sum(amount) FROM accounts").await, "200");
    node.wait_until_idle().await;
}
