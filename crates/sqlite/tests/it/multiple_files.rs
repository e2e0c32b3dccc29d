//! Several files as one database.

use std::path::PathBuf;

use tidegate_sqlite::{SqliteDatabase, SqliteOptions};

use crate::support::{Folder, SqliteFixture};

fn two_files() -> (Folder, SqliteFixture) {
    let folder = Folder::new();
    drop(folder.write("shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INT); CREATE TABLE log (a); INSERT INTO orders VALUES (1, 10), (2, 20); INSERT INTO log VALUES ('shop')"));
    drop(folder.write("crm 2024.sqlite", "CREATE TABLE customers (id INTEGER PRIMARY KEY, name); CREATE TABLE log (a); INSERT INTO customers VALUES (10, 'Ada'); INSERT INTO log VALUES ('crm'); CREATE VIEW logged AS SELECT a FROM log"));
    let node = folder.open(&["shop.db", "crm 2024.sqlite"], SqliteOptions::default());
    (folder, node)
}

#[tokio::test]
async fn tables_are_qualified_by_file_name() {
    let (_folder, node) = two_files();
    insta::assert_snapshot!(node.tables().await.unwrap(), @r#"
    crm 2024.customers: readable
    crm 2024.log: readable
    crm 2024.logged: readable
    shop.log: readable
    shop.orders: readable
    "#);
    insta::assert_snapshot!(node.columns("crm 2024.customers").await.unwrap(), @r#"
    id INTEGER not null -- primary key
    name any
    "#);
    insta::assert_snapshot!(node.columns("customers").await.unwrap(), @r#"
    id INTEGER not null -- primary key
    name any
    "#);
    insta::assert_snapshot!(node.columns("log").await.unwrap_err(), @r#"
    several files of "shop" have a table "log"
    Valid choices: shop.log, crm 2024.log
    "#);
    insta::assert_snapshot!(node.columns("shop.customers").await.unwrap_err(), @r#"
    there is no table "shop.customers" in "shop"
    Valid choices: shop.orders, shop.log, crm 2024.customers
    "#);
}

#[tokio::test]
async fn tables_of_several_files_are_joined() {
    let (_folder, node) = two_files();
    let sql = "SELECT o.id, c.name FROM shop.orders o LEFT JOIN \"crm 2024\".customers c ON c.id = o.customer";
    assert_eq!(node.rows(sql).await, "1,Ada\n2,");
    assert_eq!(node.rows("SELECT name FROM customers JOIN orders ON customer = customers.id").await, "Ada");
    // A view sees the tables of its own file only.
    assert_eq!(node.rows("SELECT a FROM logged").await, "crm");
    insta::assert_snapshot!(node.refusal("SELECT a FROM log").await, @r#"
    invalid_arguments: several files of "shop" have a table "log"
    Valid choices: shop.log, crm 2024.log
    "#);
    insta::assert_snapshot!(node.refusal("SELECT a FROM crm.log").await, @r#"
    invalid_arguments: there is no table "crm.log" in "shop"
    Valid choices: crm 2024.log, crm 2024.logged, crm 2024.customers, shop.log
    "#);
}

#[tokio::test]
async fn conflicting_files_are_rejected_on_open() {
    let folder = Folder::new();
    for name in ["a.db", "a.sqlite", "MAIN.db"] {
        drop(folder.write(name, "CREATE TABLE t (a)"));
    }
    let refusal = |names: &[&str]| {
        let files: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let error = SqliteDatabase::open("shop", files, SqliteOptions::default()).err().unwrap();
        error.to_string().replace(&folder.join("").display().to_string(), "…/")
    };
    insta::assert_snapshot!(refusal(&["a.db", "a.sqlite"]), @r#"
    …/a.sqlite: the schema name "a" is already in use
    Each of several files needs its own name without the ending; "main" and "temp" are reserved by SQLite.
    "#);
    insta::assert_snapshot!(refusal(&["a.db", "MAIN.db"]), @r#"
    …/MAIN.db: the schema name "MAIN" is already in use
    Each of several files needs its own name without the ending; "main" and "temp" are reserved by SQLite.
    "#);
    insta::assert_snapshot!(refusal(&["missing.db"]), @"…/missing.db: no such file");
    insta::assert_snapshot!(refusal(&[]), @r#"the database "shop" has no file"#);
    insta::assert_snapshot!(refusal(&["a.db"; 11]), @r#"
    the database "shop" has 11 files; SQLite can attach at most 10
    Declare several databases instead.
    "#);
    insta::assert_snapshot!(refusal(&[""]), @"…/: it is not a file");
}
