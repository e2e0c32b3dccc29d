//! TLS, logins, and connections that are lost.

use std::sync::Arc;

use tidegate_core::{ErrorKind, Principal};
use tidegate_mysql::{MySqlDatabase, MySqlOptions, MySqlTarget};
use tidegate_query::Database;

use crate::test_database::{TestDatabase, variable, wait_until};

const CIPHER: &str =
    "SELECT VARIABLE_VALUE <> '' FROM information_schema.session_status WHERE VARIABLE_NAME = 'ssl_cipher'";

#[tokio::test]
async fn modes_of_tls_have_their_meaning() {
    let authority = variable("TIDEGATE_TEST_MARIADB_CA");
    let verified = format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={authority}");
    for (parameters, expected) in [
        ("ssl-mode=DISABLED", "0"),
        ("ssl-mode=PREFERRED", "1"),
        ("", "1"),
        ("ssl-mode=REQUIRED", "1"),
        (verified.as_str(), "1"),
    ] {
        let test = TestDatabase::with_options(&[], parameters, MySqlOptions::default()).await;
        assert_eq!(test.run_to_text(CIPHER).await, expected, "{parameters}");
    }
    // The authorities of the system have not signed its certificate.
    let test = TestDatabase::with_options(&[], "ssl-mode=VERIFY_IDENTITY", MySqlOptions::default()).await;
    let text = test.run_to_text("SELECT 1").await;
    assert!(text.starts_with("unavailable: "), "{text}");
}

#[tokio::test]
async fn a_refused_login_is_a_fault_of_the_configuration() {
    let text = format!("mysql://nobody:wrong@{}/mysql?ssl-mode=DISABLED", variable("TIDEGATE_TEST_MARIADB_TCP"));
    let target = MySqlTarget::parse(&text).unwrap();
    let database = MySqlDatabase::open("shop", &target, MySqlOptions::default()).unwrap();
    let error = database.check_reachable().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_configuration_fault() && error.message().contains("refuses the login"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let target = MySqlTarget::parse("mysql://a:b@127.0.0.1:1/x").unwrap();
    let database = Arc::new(MySqlDatabase::open("shop", &target, MySqlOptions::default()).unwrap());
    let error = database.catalog(&Principal::process_user()).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Unavailable, "the database shop cannot be reached"));
}

#[tokio::test]
async fn a_connection_that_was_lost_while_it_was_idle_is_replaced() {
    let options = MySqlOptions { connections_max: 1, ..MySqlOptions::default() };
    let test = TestDatabase::with_options(&[], "ssl-mode=DISABLED", options).await;
    let sql = "SELECT CONNECTION_ID()";
    let first = test.run_to_text(sql).await;
    test.wait_until_idle().await;
    test.run_as_root(&format!("KILL CONNECTION {first}")).await;
    let open = format!("SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist WHERE id = {first}");
    wait_until("the end of the connection", || async { test.value(&open).await == "0" }).await;
    let second = test.run_to_text(sql).await;
    assert!(second.parse::<u64>().is_ok() && second != first, "{second}");
    assert!(test.database.check_reachable().await.is_ok());
}
