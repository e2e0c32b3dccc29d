//! What gets past the statement policy changes nothing: statements of the owner are not checked, and root may do everything.

use std::sync::Arc;

use tidegate_core::Principal;
use tidegate_mysql::{MySqlDatabase, MySqlOptions, MySqlTarget};
use tidegate_query::Database;

use crate::test_database::{TestDatabase, owner_statement, variable};

const TABLES: [&str; 4] = [
    "CREATE TABLE t (a INT)",
    "INSERT INTO t VALUES (1)",
    "CREATE SEQUENCE s",
    "CREATE FUNCTION write_one() RETURNS INT BEGIN INSERT INTO t VALUES (2); RETURN 1; END",
];

/// The same database with the account of root.
fn as_root(test: &TestDatabase) -> TestDatabase {
    let socket = variable("TIDEGATE_TEST_MARIADB");
    let text = socket.replace("/?", &format!("/{}?", test.name));
    let database = MySqlDatabase::open("shop", &MySqlTarget::parse(&text).unwrap(), MySqlOptions::default()).unwrap();
    TestDatabase { name: test.name.clone(), database: Arc::new(database) }
}

#[tokio::test]
async fn sessions_of_any_account_only_read() {
    let test = TestDatabase::new(&TABLES).await;
    let root = as_root(&test);
    for sql in [
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET a = 3",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
        "DROP TABLE t",
        "CREATE TABLE u (a INT)",
        "SELECT write_one()",
        "SELECT NEXTVAL(s)",
    ] {
        let outcome = root.lines(&owner_statement(sql, Vec::new())).await;
        assert!(outcome.is_err(), "{sql}: {outcome:?}");
    }
    assert_eq!(test.value("SELECT CAST(SUM(a) AS CHAR) FROM t").await, "1");
    assert_eq!(test.run_to_text("SELECT a FROM t").await, "1");
}

#[tokio::test]
async fn what_an_account_may_do_beyond_reading_is_found() {
    let test = TestDatabase::new(&TABLES).await;
    let found = test.database.excess_privileges().await.unwrap();
    assert!(found.is_empty(), "{found:?}");
    let found = as_root(&test).database.excess_privileges().await.unwrap();
    assert!(found.iter().any(|finding| finding.contains("*.*")), "{found:?}");
}

#[tokio::test]
async fn a_strict_database_refuses_an_account_that_writes() {
    let strict = MySqlOptions { strict: true, ..MySqlOptions::default() };
    let sql = ["GRANT INSERT ON {name}.* TO {name}@'127.0.0.1'"];
    let test = TestDatabase::with_options(&sql, "ssl-mode=DISABLED", strict).await;
    let text = test.run_to_text("SELECT 1").await;
    assert!(text.contains("its account can do more than read"), "{text}");
}

#[tokio::test]
async fn locks_of_a_caller_end_with_its_call() {
    let sql = ["CREATE SQL SECURITY DEFINER VIEW v AS SELECT GET_LOCK('{name}', 0) AS locked"];
    let test = TestDatabase::new(&sql).await;
    assert_eq!(test.run_to_text("SELECT locked FROM v").await, "1");
    test.wait_until_idle().await;
    let free = format!("SELECT CAST(IS_FREE_LOCK('{}') AS CHAR)", test.name);
    assert_eq!(test.value(&free).await, "1");
    assert!(test.database.catalog(&Principal::process_user()).await.is_ok());
}
