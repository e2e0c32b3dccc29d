//! The words of errors.

use tidegate_sql::Parameter;
use tidegate_sqlite::SqliteOptions;

use crate::support::{open_database, open_database_with};

const TABLES: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer, amount REAL);
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);";

#[tokio::test]
async fn unknown_names_list_similar_names() {
    let (_folder, node) = open_database(TABLES);
    insta::assert_snapshot!(node.refusal("SELECT * FROM order_s").await, @r#"
    invalid_arguments: there is no table "order_s" in "shop"
    Valid choices: orders
    "#);
    insta::assert_snapshot!(node.refusal("SELECT amout FROM orders").await, @r#"
    invalid_arguments: there is no column "amout"
    Valid choices: amount, id, customer
    "#);
    insta::assert_snapshot!(node.refusal("SELECT o.missing FROM orders o JOIN customers c ON c.id = o.customer").await, @r#"
    invalid_arguments: there is no column "o.missing"
    Valid choices: id, name, customer, amount
    "#);
    insta::assert_snapshot!(node.refusal("SELECT * FROM customers WHERE name = \"Ada\"").await, @r#"
    invalid_arguments: there is no column "Ada"
    Valid choices: id, name
    "#);
    insta::assert_snapshot!(node.refusal("SELECT id FROM orders, customers").await, @r#"
    invalid_arguments: the column "id" is in several tables of the query
    Write the table before it: table.column.
    "#);
    insta::assert_snapshot!(node.refusal("SELECT uper(name) FROM customers").await, @r#"invalid_arguments: there is no function "uper"; did you mean "upper"?"#);
    insta::assert_snapshot!(node.refusal("SELECT year(name) FROM customers").await, @r#"
    invalid_arguments: there is no function "year"
    Write CAST(strftime('%Y', x) AS INTEGER).
    "#);
    insta::assert_snapshot!(node.refusal("SELECT split_part(name, ',', 1) FROM customers").await, @r#"invalid_arguments: there is no function "split_part""#);
    insta::assert_snapshot!(node.refusal("SELECT upper(name, 1) FROM customers").await, @"invalid_arguments: wrong number of arguments to function upper() at line 1, column 8");
    insta::assert_snapshot!(node.refusal("SELECT abs(-9223372036854775807 - 1)").await, @"invalid_arguments: integer overflow");
    insta::assert_snapshot!(node.refusal("SELECT json('{')").await, @"invalid_arguments: malformed JSON");
}

#[tokio::test]
async fn rejects_values_and_queries_over_limits() {
    let options = SqliteOptions { value_bytes_max: 1 << 20, memory_bytes: 64 << 20, ..SqliteOptions::default() };
    let (_folder, node) = open_database_with(TABLES, options);
    insta::assert_snapshot!(node.refusal("SELECT zeroblob(1000000000)").await, @r#"
    too_large: a text, a blob or a row exceeds the size limit
    Leave out the column. A part of it can be selected only if the whole row is within the limit.
    "#);
    insta::assert_snapshot!(node.refusal("SELECT hex(zeroblob(500000)), hex(zeroblob(500001)), hex(zeroblob(500002)), hex(zeroblob(500003)), hex(zeroblob(500004))").await, @r#"
    too_large: one row of the result exceeds the limit of 4 MiB
    Select fewer columns, or parts of long ones: substr(column, 1, 1000).
    "#);
    let values = (0..200).map(|value| format!("hex(zeroblob({}))", 500_000 + value)).collect::<Vec<_>>().join(", ");
    insta::assert_snapshot!(node.refusal(&format!("SELECT {values}")).await, @r#"
    too_large: the query exceeds the memory limit of SQLite
    Try again later, or reduce the query: filter, aggregate, or select fewer columns.
    "#);
    insta::assert_snapshot!(node.refusal(&format!("SELECT 'a' LIKE '{}'", "%a".repeat(200))).await, @"invalid_arguments: LIKE or GLOB pattern too complex");
    // The database is as good as before.
    assert_eq!(node.rows("SELECT count(*) FROM orders").await, "0");
}

#[tokio::test]
async fn reports_a_table_changed_after_planning() {
    let (folder, node) = open_database(TABLES);
    let plan = node.plan("SELECT * FROM orders", Vec::<Parameter>::new()).await.unwrap();
    drop(folder.write("data.db", "ALTER TABLE orders ADD COLUMN late INTEGER"));
    let job = crate::support::TestJob::start().await;
    let mut rows = plan.run(&job.job).await.unwrap();
    let error = futures::StreamExt::next(&mut rows.batches).await.unwrap().unwrap_err();
    insta::assert_snapshot!(format!("{}: {error}", error.kind().name()), @r#"
    unavailable: the database "shop" changed while it was read
    Try again.
    "#);
    assert_eq!(node.rows("SELECT count(late) FROM orders").await, "0");
}
