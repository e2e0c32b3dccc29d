//! Rows, errors, catalogs, plans.

use futures::StreamExt;
use tidegate_core::Principal;
use tidegate_query::Database;
use tidegate_sql::{SqlDialect, Statement};

use crate::test_database::{TestDatabase, TestJob, owner_statement};

const TABLES: [&str; 4] = [
    "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20) COMMENT 'as on the invoice') COMMENT 'who buys'",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, FOREIGN KEY (customer) REFERENCES customers (id))",
    "INSERT INTO customers VALUES (1, 'Ann'), (2, 'Bob')",
    "CREATE VIEW names AS SELECT name FROM customers",
];

#[tokio::test]
async fn rows_come_in_order() {
    let test = TestDatabase::new(&TABLES).await;
    let text = test.run_to_text("SELECT id, name FROM customers ORDER BY id DESC").await;
    assert_eq!(text, "2|Bob\n1|Ann");
    assert_eq!(test.run_to_text("SELECT id FROM customers WHERE id > 9").await, "");
    // In a database of MySQL, the case of a text does not matter.
    assert_eq!(test.run_to_text("SELECT id FROM customers WHERE name = 'ann'").await, "1");
    assert_eq!(test.run_to_text("SELECT 7 DIV 2, 7 MOD 2, 'a' 'b', \"c\"").await, "3|1|ab|c");
    // The driver looks for names of values outside of literals.
    assert_eq!(test.run_to_text("SELECT 'a:b', CONCAT('x', 1 -'1:c', 4/'2:d')").await, "a:b|x02");
}

#[tokio::test]
async fn a_million_rows_come_in_small_batches() {
    let test = TestDatabase::new(&[]).await;
    let job = TestJob::start().await;
    let statement = owner_statement("SELECT seq, REPEAT('x', 20) FROM seq_1_to_1000000", Vec::new());
    let plan = test.database.plan(&statement, &Principal::process_user()).await.unwrap();
    let mut rows = plan.run(&job.job).await.unwrap();
    let (mut count, mut largest, mut first) = (0, 0, None);
    while let Some(batch) = rows.batches.next().await {
        let batch = batch.unwrap();
        first.get_or_insert(batch.num_rows());
        count += batch.num_rows();
        largest = largest.max(batch.num_rows());
    }
    assert_eq!(count, 1_000_000);
    assert!(largest <= 8_192 && first.is_some_and(|rows| rows <= 256), "{largest} {first:?}");
    test.wait_until_idle().await;
}

#[tokio::test]
async fn catalogs_have_comments_and_keys() {
    let test = TestDatabase::new(&TABLES).await;
    let caller = Principal::process_user();
    let catalog = test.database.catalog(&caller).await.unwrap();
    let tables: Vec<String> =
        catalog.tables.iter().map(|table| format!("{}: {:?}", table.name, table.comment)).collect();
    assert_eq!(tables, ["customers: Some(\"who buys\")", "names: Some(\"view\")", "orders: None"]);
    let columns = test.database.columns("orders", &caller).await.unwrap();
    let columns: Vec<String> =
        columns.iter().map(|column| format!("{} {} {:?}", column.name, column.type_name, column.comment)).collect();
    assert_eq!(columns, ["id int(11) Some(\"primary key\")", "customer int(11) Some(\"references customers(id)\")"]);
    let qualified = format!("{}.customers", test.name);
    let columns = test.database.columns(&qualified, &caller).await.unwrap();
    assert_eq!(columns[1].comment.as_deref(), Some("as on the invoice"));
    assert_eq!(test.database.table_storage("orders", &caller).await.unwrap().indexed_columns, ["customer", "id"]);
    let unknown = test.database.columns("custmers", &caller).await.unwrap_err();
    assert_eq!(unknown.choices(), ["customers"]);
}

#[tokio::test]
async fn errors_name_what_exists() {
    let test = TestDatabase::new(&TABLES).await;
    test.database.catalog(&Principal::process_user()).await.unwrap();
    let text = test.run_to_text("SELECT * FROM custmers").await;
    assert!(text.starts_with("not_found: ") && text.contains("customers"), "{text}");
    let text = test.run_to_text("SELECT nmae FROM customers").await;
    assert!(text.starts_with("invalid_arguments: ") && text.contains("name"), "{text}");
    let text = test.run_to_text("SELECT string_agg(name, ',') FROM customers").await;
    assert!(text.contains("GROUP_CONCAT"), "{text}");
    // MariaDB has this function, with other formats.
    let text = test.run_to_text("SELECT to_char(1, 'x')").await;
    assert!(text.starts_with("invalid_arguments: "), "{text}");
    let text = test.run_to_text("SELECT * FROM customers WHERE").await;
    assert!(text.contains("syntax error"), "{text}");
}

#[tokio::test]
async fn plans_are_explained() {
    let test = TestDatabase::new(&TABLES).await;
    let statement = Statement::parse("SELECT name FROM customers WHERE id = 1", SqlDialect::MySql).unwrap();
    let plan = test.database.plan(&statement, &Principal::process_user()).await.unwrap();
    let text = plan.explain().await.unwrap();
    assert!(text.contains("table: customers") && text.contains("key: PRIMARY"), "{text}");
    drop(plan);
    test.wait_until_idle().await;
}

#[tokio::test]
async fn a_changed_table_has_its_new_columns() {
    let test = TestDatabase::new(&TABLES).await;
    let sql = "SELECT * FROM customers WHERE id = 1";
    assert_eq!(test.run_to_text(sql).await, "1|Ann");
    test.run_as_root("ALTER TABLE customers ADD COLUMN city VARCHAR(9) DEFAULT 'Ulm'").await;
    assert_eq!(test.run_to_text(sql).await, "1|Ann|Ulm");
    test.run_as_root("ALTER TABLE customers DROP COLUMN name").await;
    assert_eq!(test.run_to_text(sql).await, "1|Ulm");
}
