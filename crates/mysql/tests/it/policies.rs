//! Row policies: which rows callers see, and attempts to see others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::{AuthMethod, Error, Grants, Principal};
use tidegate_mysql::MySqlOptions;
use tidegate_query::{Database, HashKey, Mask, RowCondition, RowPolicies, RowPolicy, TableStatus};
use tidegate_sql::{SqlDialect, Statement};

use crate::test_database::{TestDatabase, TestJob, collect_batches, format_rows, owner_statement};

/// Rows of two tenants. By their collation, tenants that differ in case, accents or spaces at the end are equal.
const SHOP: [&str; 10] = [
    "CREATE TABLE orders (id INT PRIMARY KEY, tenant VARCHAR(20), phone VARCHAR(20), ssn VARCHAR(9), email VARCHAR(20),
     amount INT, ssn_end VARCHAR(9) AS (RIGHT(ssn, 2)), KEY (tenant), KEY (ssn)) CHARACTER SET utf8mb4",
    "INSERT INTO orders (id, tenant, phone, ssn, email, amount) VALUES
     (1, 'north', '+49 30 1234', 'ssn-111', 'ann@x', 10), (2, 'south', '+49 30 9999', 'ssn-222', 'bob@x', 1000),
     (3, 'north', '7', 'ssn-333', 'cyd@x', 30), (4, 'North', '1', 'ssn-444', 'dan@x', 2000),
     (5, 'north ', '2', 'ssn-555', 'eve@x', 3000), (6, NULL, '3', 'ssn-666', 'fay@x', 4000),
     (7, 'nörth', '4', 'ssn-777', 'gus@x', 5000)",
    "CREATE TABLE items (order_id INT, what VARCHAR(9), FOREIGN KEY (order_id) REFERENCES orders (id))",
    "INSERT INTO items VALUES (1, 'pen'), (2, 'ink'), (3, 'cap')",
    "CREATE VIEW big AS SELECT id, tenant, email FROM orders WHERE amount > 5",
    "CREATE VIEW mails AS SELECT email FROM orders",
    "CREATE TABLE seen (id INT)",
    "CREATE FUNCTION peek(wanted INT) RETURNS VARCHAR(20) RETURN (SELECT email FROM orders WHERE id = wanted)",
    "CREATE FUNCTION peék2(wanted INT) RETURNS VARCHAR(20) RETURN (SELECT email FROM orders WHERE id = wanted)",
    "GRANT EXECUTE ON {name}.* TO {name}@'127.0.0.1'",
];

/// The same with nothing but what the tenant north sees.
const COPY: [&str; 4] = [
    "CREATE TABLE orders (id INT PRIMARY KEY, tenant VARCHAR(20), phone VARCHAR(20), email VARCHAR(20), amount INT)
     CHARACTER SET utf8mb4",
    "INSERT INTO orders VALUES (1, 'north', '*********34', NULL, 10), (3, 'north', '*', NULL, 30)",
    "CREATE TABLE items (order_id INT, what VARCHAR(9))",
    "INSERT INTO items VALUES (1, 'pen'), (2, 'ink'), (3, 'cap')",
];

fn policy(table: &str, rows: &str, columns: &[(&str, Mask)]) -> RowPolicy {
    RowPolicy {
        table: table.to_owned(),
        rows: (!rows.is_empty()).then(|| RowCondition::parse(rows).unwrap()),
        columns: columns.iter().map(|(name, mask)| ((*name).to_owned(), *mask)).collect::<BTreeMap<_, _>>(),
        except_roles: BTreeSet::from(["auditor".to_owned()]),
    }
}

fn options(policies: Vec<RowPolicy>) -> MySqlOptions {
    let row_policies = RowPolicies::new(policies, HashKey::from_secret(b"key"));
    MySqlOptions { row_policies, ..MySqlOptions::default() }
}

/// The shop, in which each tenant sees its own orders.
async fn shop() -> TestDatabase {
    let masks = [("phone", Mask::KeepLast(2)), ("ssn", Mask::Deny), ("email", Mask::Null)];
    let policies = vec![policy("orders", "tenant = :tenant", &masks), policy("big", "tenant = :tenant", &[])];
    TestDatabase::with_options(&SHOP, "ssl-mode=DISABLED", options(policies)).await
}

fn tenant(name: &str) -> Principal {
    let mut principal = Principal::new(name, AuthMethod::Token, Arc::new(Grants::everything()));
    principal.tenant = Some(name.to_owned());
    principal
}

fn auditor() -> Principal {
    let mut principal = tenant("audit");
    principal.roles.insert("auditor".to_owned());
    principal
}

async fn lines(test: &TestDatabase, statement: &Statement, principal: &Principal) -> Result<String, Error> {
    let job = TestJob::start().await;
    let rows = test.database.plan(statement, principal).await?.run(&job.job).await?;
    Ok(format_rows(&collect_batches(rows).await?))
}

/// The rows of `sql`, in which `{name}` is the name of the database, or the kind of the error.
async fn outcome(test: &TestDatabase, sql: &str, principal: &Principal) -> Result<String, String> {
    let answer = match Statement::parse(&sql.replace("{name}", &test.name), SqlDialect::MySql) {
        Ok(statement) => lines(test, &statement, principal).await,
        Err(error) => Err(error),
    };
    answer.map_err(|error| format!("{}: {error}", error.kind().name()))
}

/// Errors of hidden rows, the order of conditions, counts and types would reveal what is hidden.
#[tokio::test]
async fn a_statement_reads_as_if_hidden_rows_did_not_exist() {
    let (shop, copy, north) = (shop().await, TestDatabase::new(&COPY).await, tenant("north"));
    for sql in [
        "SELECT * FROM orders ORDER BY id",
        "SELECT o.* FROM {name}.orders AS o ORDER BY o.amount DESC LIMIT 1",
        "SELECT {name}.orders.id, orders.phone FROM {name}.orders WHERE {name}.orders.amount > 10",
        "SELECT COUNT(*), SUM(amount), MIN(email), MAX(tenant) FROM orders",
        "SELECT id FROM orders WHERE id = 1",
        "SELECT id FROM orders WHERE id = 2",
        "SELECT id FROM orders WHERE tenant = 'south' OR tenant = 'NORTH' ORDER BY id",
        "SELECT id FROM orders WHERE EXP(amount) > 0",
        "SELECT id FROM orders WHERE 18446744073709551615 + amount > amount - 1000",
        "SELECT id FROM orders WHERE IF(amount = 1000, (SELECT order_id FROM items), 1) = 1 ORDER BY id",
        "SELECT a.id FROM orders a JOIN orders b ON EXP(b.amount) > 0 AND a.id < b.id",
        "SELECT a.id FROM orders a WHERE NOT EXISTS (SELECT 1 FROM orders b WHERE b.amount > a.amount)",
        "SELECT o.id, i.what FROM orders o RIGHT JOIN items i ON i.order_id = o.id ORDER BY i.order_id",
        "SELECT id FROM items NATURAL JOIN orders ORDER BY id",
        "WITH orders AS (SELECT * FROM orders WHERE amount > 10) SELECT id FROM orders",
        "WITH x AS (SELECT id FROM orders), y AS (SELECT COUNT(*) AS n FROM x) SELECT n FROM y",
        "SELECT id FROM (WITH orders AS (SELECT 9 AS id) SELECT id FROM orders) a UNION SELECT id FROM orders ORDER BY id",
        "SELECT id, SUM(amount) OVER (ORDER BY id) FROM orders ORDER BY id",
        "SELECT phone, COUNT(*) FROM orders GROUP BY phone HAVING COUNT(*) > 0 ORDER BY 1",
        "SELECT id FROM orders USE INDEX (PRIMARY) ORDER BY id DESC",
        "SELECT (SELECT MAX(amount) FROM orders) - amount FROM orders ORDER BY id",
        "SELECT id FROM orders WHERE phone LIKE '%34' OR email IS NOT NULL",
        "SELECT id FROM orders ORDER BY ssn",
        "SELECT ssn_end FROM orders",
        "SELECT orders.ssn FROM orders WHERE id = 1",
        "SELECT GROUP_CONCAT(id ORDER BY id) FROM orders",
    ] {
        let (seen, expected) = (outcome(&shop, sql, &north).await, outcome(&copy, sql, &north).await);
        let kind = |outcome: &Result<String, String>| match outcome {
            Ok(rows) => rows.clone(),
            Err(error) => error.split(':').next().unwrap_or_default().to_owned(),
        };
        assert_eq!(kind(&seen), kind(&expected), "{sql}\n{seen:?}\n{expected:?}");
    }
}

#[tokio::test]
async fn attempts_to_read_past_policies_are_refused() {
    let (shop, north) = (shop().await, tenant("north"));
    for sql in [
        "TABLE orders",
        "SELECT 1 UNION TABLE orders",
        "SELECT email FROM mails",
        "SELECT peek(2)",
        "SELECT PEEK(id) FROM seen",
        "SELECT {name}.peek(2)",
        "SELECT pèek(2)",
        "SELECT Peek2(2)",
        "SELECT `peek2`(2)",
        "SELECT TABLE_ROWS FROM information_schema.TABLES",
        "SELECT CARDINALITY FROM information_schema.STATISTICS WHERE TABLE_NAME = 'orders'",
        "SELECT * FROM information_schema.COLUMNS",
        "SELECT * FROM orders FOR SYSTEM_TIME ALL",
        "SELECT * FROM orders PARTITION (p0)",
        "SELECT tidegate_table_0.email FROM orders",
        "SELECT '`tide\\gate_table_0`' FROM orders",
        "SELECT * FROM (WITH nowhere AS (SELECT 1) SELECT 1) a, nowhere",
        "SELECT * FROM mysql.user",
    ] {
        let seen = outcome(&shop, sql, &north).await;
        assert!(seen.is_err(), "{sql}: {seen:?}");
        for hidden in ["bob@x", "ssn-", "south", ":tenant", "CAST(CONVERT"] {
            assert!(!format!("{seen:?}").contains(hidden), "{sql}: {seen:?}");
        }
    }
    let wrong = outcome(&shop, "SELECT id FROM orders WHERE MATCH (tenant) AGAINST ('x')", &north).await;
    assert!(wrong.as_ref().is_err_and(|error| !error.contains("CONVERT")), "{wrong:?}");
}

#[tokio::test]
async fn each_caller_sees_its_own_rows() {
    let shop = shop().await;
    let ids = "SELECT GROUP_CONCAT(id ORDER BY id) FROM orders";
    for (name, expected) in [("north", "1,3"), ("south", "2"), ("North", "4"), ("nörth", "7"), ("NORTH", "null")] {
        assert_eq!(outcome(&shop, ids, &tenant(name)).await.unwrap(), expected, "{name}");
    }
    let nobody = Principal::new("x", AuthMethod::Token, Arc::new(Grants::everything()));
    assert_eq!(outcome(&shop, ids, &nobody).await.unwrap(), "null");
    assert_eq!(outcome(&shop, ids, &auditor()).await.unwrap(), "1,2,3,4,5,6,7");
    assert_eq!(outcome(&shop, "SELECT ssn FROM orders WHERE id = 2", &auditor()).await.unwrap(), "ssn-222");
    assert_eq!(outcome(&shop, "SELECT email FROM big WHERE id = 2", &tenant("north")).await.unwrap(), "");
    assert_eq!(outcome(&shop, "SELECT id FROM big ORDER BY id", &tenant("north")).await.unwrap(), "1\n3");
    // The SQL of the owner runs for a caller.
    let owners = owner_statement("SELECT id FROM orders WHERE id > 0 ORDER BY id", Vec::new());
    assert_eq!(lines(&shop, &owners, &tenant("south")).await.unwrap(), "2");
    let unread = owner_statement("SELECT peek(2)", Vec::new());
    assert!(lines(&shop, &unread, &tenant("south")).await.is_err());
}

#[tokio::test]
async fn conditions_compare_as_they_are_written() {
    let sql = [
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9) CHARACTER SET latin1, n DECIMAL(30,10), d DATETIME(6),
         e ENUM('x','y'), day DATE, u BIGINT UNSIGNED, f DOUBLE)",
        "INSERT INTO t VALUES (1, 'a', 'é', 0.1, '2024-01-01 00:00:00.5', 'x', '2024-01-01', 18446744073709551615, 0.5),
         (2, 'A', 'E', 0.1000000001, '2024-01-01', 'y', '2024-01-02', 0, 1e300), (3, 'a ', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    ];
    let cases = [
        ("a = 'a'", "1"),
        ("a <> 'a'", "2,3"),
        ("a IN ('a', 'A')", "1,2"),
        ("a NOT IN ('a', 'x')", "2,3"),
        ("a < 'a'", "2"),
        ("a LIKE 'a%'", "1,3"),
        (r"a LIKE '\_'", "null"),
        ("b = 'é'", "1"),
        ("b = 'e' OR b = '日'", "null"),
        ("a = b OR b IS NULL", "3"),
        ("n = 0.1", "1"),
        ("NOT n = 0.1", "2"),
        ("d >= '2024-01-01 00:00:00.5'", "1"),
        ("e = 'y'", "2"),
        ("e = 'Y'", "null"),
        ("day BETWEEN '2024-01-02' AND '2024-01-03'", "2"),
        ("u > -1", "1,2"),
        ("f > 1 AND f < 1e301", "2"),
    ];
    // One table for each condition.
    let mut created: Vec<String> = sql.iter().map(|sql| (*sql).to_owned()).collect();
    for index in 0..cases.len() {
        created.push(format!("CREATE TABLE t{index} LIKE t"));
        created.push(format!("INSERT INTO t{index} SELECT * FROM t"));
    }
    let created: Vec<&str> = created.iter().map(String::as_str).collect();
    let policies = cases.iter().enumerate().map(|(index, (rows, _))| policy(&format!("t{index}"), rows, &[])).collect();
    let test = TestDatabase::with_options(&created, "ssl-mode=DISABLED", options(policies)).await;
    for (index, (rows, expected)) in cases.iter().enumerate() {
        let sql = format!("SELECT GROUP_CONCAT(id ORDER BY id) FROM t{index}");
        assert_eq!(outcome(&test, &sql, &tenant("x")).await.as_deref(), Ok(*expected), "{rows}");
    }
}

#[tokio::test]
async fn catalogs_and_plans_show_no_hidden_rows() {
    let (shop, north) = (shop().await, tenant("north"));
    let catalog = shop.database.catalog(&north).await.unwrap();
    let table = |name: &str| catalog.tables.iter().find(|table| table.name == name).unwrap();
    assert_eq!((table("orders").rows, &table("orders").status), (None, &TableStatus::Readable));
    assert!(matches!(&table("mails").status, TableStatus::Unreadable(reason) if reason.contains("no row policy")));
    let columns = shop.database.columns("orders", &north).await.unwrap();
    let names: Vec<String> = columns.iter().map(|column| format!("{} {}", column.name, column.type_name)).collect();
    assert_eq!(names.join(", "), "id int(11), tenant varchar(20), phone text, email varchar(20), amount int(11)");
    let storage = shop.database.table_storage("orders", &north).await.unwrap();
    assert_eq!((storage.bytes, storage.indexed_columns), (None, vec!["id".to_owned(), "tenant".to_owned()]));
    assert_eq!(shop.database.columns("orders", &auditor()).await.unwrap().len(), 7);
    let statement = Statement::parse("SELECT id FROM orders WHERE id = 2", SqlDialect::MySql).unwrap();
    let plan = shop.database.plan(&statement, &north).await.unwrap().explain().await.unwrap();
    assert!(plan.contains("table: ") && !plan.contains("rows: ") && !plan.contains("key: tenant"), "{plan}");
    let unknown = outcome(&shop, "SELECT snn FROM orders", &north).await.unwrap_err();
    assert!(unknown.contains("nknown column") && !unknown.contains("ssn"), "{unknown}");
    assert_ne!(shop.database.row_policy_fingerprint(&north), shop.database.row_policy_fingerprint(&tenant("south")));
    assert_eq!(shop.database.row_policy_fingerprint(&auditor()), 0);
}

#[tokio::test]
async fn policies_that_do_not_fit_are_reported_and_close_the_table() {
    let policies = vec![
        policy("order", "TRUE", &[]),
        policy("items", "shelf = 'x'", &[]),
        policy("seen", "", &[("id", Mask::Hash)]),
    ];
    let test = TestDatabase::with_options(&SHOP, "ssl-mode=DISABLED", options(policies)).await;
    let problems = test.database.check_policies().await.unwrap();
    let problems: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert!(problems[0].contains("there is no table \"order\"; orders is one"), "{problems:?}");
    assert!(problems[1].contains("there is no column \"shelf\""), "{problems:?}");
    for sql in ["SELECT * FROM items", "SELECT id FROM seen"] {
        let refused = outcome(&test, sql, &tenant("north")).await.unwrap_err();
        assert!(refused.starts_with("forbidden: ") && !refused.contains("shelf"), "{refused}");
    }
}
