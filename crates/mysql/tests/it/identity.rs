//! Roles and variables of callers, on connections that they share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tidegate_core::{AuthMethod, Error, ErrorKind, Grants, Principal};
use tidegate_mysql::MySqlOptions;
use tidegate_query::{ClaimSettings, Database, RunAs};
use tidegate_sql::{SqlDialect, Statement};

use crate::test_database::{TestDatabase, TestJob, collect_batches, format_rows, owner_statement, wait_until};

const TABLES: [&str; 6] = [
    "CREATE TABLE orders (id INT, tenant VARCHAR(20))",
    "INSERT INTO orders VALUES (1, 'north'), (2, 'south'), (3, 'North'), (4, '')",
    "CREATE TABLE labels (id INT)",
    "INSERT INTO labels VALUES (7)",
    "CREATE FUNCTION my_tenant() RETURNS VARCHAR(64) CHARSET utf8mb4 COLLATE utf8mb4_bin NO SQL RETURN @app_tenant",
    "CREATE SQL SECURITY DEFINER VIEW mine AS SELECT id, my_tenant() AS name FROM orders
     WHERE tenant = my_tenant() AND CAST(tenant AS BINARY) = CAST(my_tenant() AS BINARY)",
];

fn caller(tenant: &str, role: &str) -> Principal {
    let mut principal = Principal::new(tenant, AuthMethod::Token, Arc::new(Grants::everything()));
    principal.tenant = (!tenant.is_empty()).then(|| tenant.to_owned());
    principal.roles.insert(role.to_owned());
    principal
}

async fn lines(test: &TestDatabase, sql: &str, principal: &Principal) -> Result<String, Error> {
    let job = TestJob::start().await;
    let statement = Statement::parse(sql, SqlDialect::MySql)?;
    let rows = test.database.plan(&statement, principal).await?.run(&job.job).await?;
    Ok(format_rows(&collect_batches(rows).await?))
}

/// A database whose account has the roles of the options, `orders` and `labels`, each of which reads the table of its name.
async fn with_roles(further: &[&str]) -> (TestDatabase, [String; 2]) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let suffix = format!("{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let roles = ["orders", "labels"].map(|table| format!("{table}_{suffix}"));
    let mut sql: Vec<String> = TABLES.iter().map(|sql| (*sql).to_owned()).collect();
    for (role, table) in roles.iter().zip(["orders", "labels"]) {
        sql.push(format!("CREATE ROLE {role}"));
        sql.push(format!("GRANT SELECT ON {{name}}.{table} TO {role}"));
        sql.push(format!("GRANT {role} TO {{name}}@'127.0.0.1'"));
    }
    sql.push("REVOKE SELECT ON {name}.* FROM {name}@'127.0.0.1'".to_owned());
    // The account needs some privilege in the database that it connects to.
    sql.push("GRANT SHOW VIEW ON {name}.* TO {name}@'127.0.0.1'".to_owned());
    sql.extend(further.iter().map(|sql| sql.replace("{orders}", &roles[0])));
    let mapping = ["support", "analyst"].map(str::to_owned).into_iter().zip(roles.clone()).collect();
    let options =
        MySqlOptions { run_as: RunAs::Roles { mapping, default: None }, connections_max: 1, ..MySqlOptions::default() };
    let sql: Vec<&str> = sql.iter().map(String::as_str).collect();
    (TestDatabase::with_options(&sql, "ssl-mode=DISABLED", options).await, roles)
}

#[tokio::test]
async fn a_call_runs_as_the_role_of_its_caller() {
    let (test, _) = with_roles(&[]).await;
    let (support, analyst) = (caller("north", "support"), caller("north", "analyst"));
    // They share the only connection, and a statement that it keeps prepared.
    for _ in 0..3 {
        assert_eq!(lines(&test, "SELECT COUNT(*) FROM orders", &support).await.unwrap(), "4");
        assert_eq!(lines(&test, "SELECT id FROM labels", &analyst).await.unwrap(), "7");
        for (sql, principal) in [("SELECT id FROM labels", &support), ("SELECT COUNT(*) FROM orders", &analyst)] {
            assert_eq!(lines(&test, sql, principal).await.unwrap_err().kind(), ErrorKind::Forbidden, "{sql}");
        }
    }
    for (principal, expected) in [(&support, "orders"), (&analyst, "labels")] {
        let catalog = test.database.catalog(principal).await.unwrap();
        let names: Vec<&str> = catalog.tables.iter().map(|table| table.name.as_str()).collect();
        assert!(names.contains(&expected), "{names:?}");
        assert_eq!(names.contains(&"orders"), expected == "orders", "{names:?}");
    }
    let stranger = lines(&test, "SELECT 1", &caller("north", "none")).await.unwrap_err();
    assert_eq!(
        (stranger.kind(), stranger.message()),
        (ErrorKind::Forbidden, "your identity has no role in this database")
    );
    let fingerprint = |principal| test.database.row_policy_fingerprint(principal);
    assert_ne!(fingerprint(&support), fingerprint(&analyst));
    // A connection that was lost gets the role again.
    let id = lines(&test, "SELECT CONNECTION_ID()", &support).await.unwrap();
    test.wait_until_idle().await;
    test.run_as_root(&format!("KILL CONNECTION {id}")).await;
    let open = format!("SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist WHERE id = {id}");
    wait_until("the end of the connection", || async { test.value(&open).await == "0" }).await;
    assert_eq!(lines(&test, "SELECT COUNT(*) FROM orders", &support).await.unwrap(), "4");
}

#[tokio::test]
async fn privileges_of_roles_are_inspected() {
    let (test, roles) = with_roles(&["GRANT INSERT ON {name}.orders TO {orders}"]).await;
    let found = test.database.excess_privileges().await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(&format!("the role `{}` may do more than read", roles[0])), "{found:?}");
    // The inspection has left its role on the connection.
    assert_eq!(lines(&test, "SELECT id FROM labels", &caller("x", "analyst")).await.unwrap(), "7");
}

#[tokio::test]
async fn a_role_that_the_account_does_not_have_is_refused() {
    let options = MySqlOptions { run_as: RunAs::Fixed("nobody".to_owned()), ..MySqlOptions::default() };
    let test = TestDatabase::with_options(&TABLES, "ssl-mode=DISABLED", options).await;
    let refused = lines(&test, "SELECT 1", &caller("north", "x")).await.unwrap_err();
    assert!(refused.message().contains("refuses the role"), "{refused}");
    test.wait_until_idle().await;
}

/// A database in which views use the tenant of the caller.
async fn with_variables(connections_max: usize) -> TestDatabase {
    let claims = ClaimSettings {
        combined: Some("claims".to_owned()),
        per_claim: BTreeMap::from([("app_tenant".to_owned(), "tenant".to_owned())]),
        for_handlers: false,
    };
    let options = MySqlOptions { claims, connections_max, ..MySqlOptions::default() };
    TestDatabase::with_options(&TABLES, "ssl-mode=DISABLED", options).await
}

#[tokio::test]
async fn views_use_the_claims_of_the_caller() {
    let test = with_variables(1).await;
    let mine = "SELECT id, name FROM mine ORDER BY id";
    for (tenant, expected) in [
        ("north", "1|north"),
        ("south", "2|south"),
        ("North", "3|North"),
        ("", "4|"),
        ("o'x\\", ""),
        ("north", "1|north"),
    ] {
        assert_eq!(lines(&test, mine, &caller(tenant, "x")).await.unwrap(), expected, "{tenant}");
    }
    let claims = owner_statement("SELECT JSON_VALUE(@claims, '$.tenant')", Vec::new());
    let job = TestJob::start().await;
    let rows = test.database.plan(&claims, &caller("south", "x")).await.unwrap().run(&job.job).await.unwrap();
    assert_eq!(format_rows(&collect_batches(rows).await.unwrap()), "south");
    // A function of the owner that changes a variable has no effect on later calls, also of the same caller.
    test.run_as_root(
        "CREATE FUNCTION become_south() RETURNS INT NO SQL BEGIN SET @app_tenant = 'south'; RETURN 1; END",
    )
    .await;
    test.run_as_root(&format!("GRANT EXECUTE ON FUNCTION {0}.become_south TO {0}@'127.0.0.1'", test.name)).await;
    assert_eq!(lines(&test, "SELECT become_south()", &caller("north", "x")).await.unwrap(), "1");
    assert_eq!(lines(&test, mine, &caller("north", "x")).await.unwrap(), "1|north");
    for sql in ["SELECT @app_tenant := 'south'", "SELECT 'south' INTO @app_tenant", "SET @app_tenant = 'south'"] {
        assert!(lines(&test, sql, &caller("north", "x")).await.is_err(), "{sql}");
    }
}

#[tokio::test]
async fn callers_that_share_connections_see_only_their_own() {
    let test = with_variables(2).await;
    let mut calls = Vec::new();
    for index in 0..60 {
        let database = test.database.clone();
        calls.push(tokio::spawn(async move {
            let tenant = if index % 2 == 0 { "north" } else { "south" };
            let statement = Statement::parse("SELECT name FROM mine", SqlDialect::MySql)?;
            let job = TestJob::start().await;
            let rows = database.plan(&statement, &caller(tenant, "x")).await?.run(&job.job).await?;
            // Some leave before they read their rows.
            let read = if index % 3 == 0 { tenant.to_owned() } else { format_rows(&collect_batches(rows).await?) };
            Ok::<_, Error>((tenant, read))
        }));
    }
    for call in calls {
        let (tenant, read) = call.await.unwrap().unwrap();
        assert_eq!(read, tenant);
    }
    test.wait_until_idle().await;
}
