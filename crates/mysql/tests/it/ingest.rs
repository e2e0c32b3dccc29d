//! Tables that take rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use tidegate_core::{Error, ErrorKind};
use tidegate_mysql::{MySqlIngest, MySqlOptions, MySqlTarget};
use tidegate_query::{
    Database, DeclaredTable, RowWriter, TableWrite, WriteMode, WriteReceipt, WriteRequest, WriteStart, WriteTarget,
};

use crate::test_database::{TestDatabase, variable, wait_until};

const TABLES: [&str; 5] = [
    "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(5) NOT NULL, price DECIMAL(10,2), at DATETIME(3),
     kind ENUM('a','b') DEFAULT 'b', twice INT AS (id * 2))",
    "CREATE TABLE old (id INT) ENGINE = MyISAM",
    "CREATE VIEW seen AS SELECT id FROM orders",
    "GRANT INSERT, DELETE ON {name}.orders TO {name}@'127.0.0.1'",
    "GRANT CREATE, INSERT, UPDATE, DELETE ON {name}.tidegate_ingest_keys TO {name}@'127.0.0.1'",
];

async fn shop() -> (TestDatabase, MySqlIngest) {
    let tables = ["orders", "old", "seen", "missing"].map(str::to_owned);
    let options = MySqlOptions { ingest_tables: tables.to_vec(), ..MySqlOptions::default() };
    let test = TestDatabase::with_options(&TABLES, "ssl-mode=DISABLED", options.clone()).await;
    let host = variable("TIDEGATE_TEST_MARIADB_TCP");
    let target = MySqlTarget::parse(&format!("mysql://{0}:right@{host}/{0}?ssl-mode=DISABLED", test.name)).unwrap();
    let declared = tables.map(|name| DeclaredTable { name, stamps: Vec::new() });
    (test, MySqlIngest::open("shop", &target, options, declared.to_vec()).unwrap())
}

/// Rows with these ids and names.
fn rows(ids: &[i32], names: &[&str]) -> RecordBatch {
    let prices = Decimal128Array::from(vec![Some(125); ids.len()]).with_precision_and_scale(10, 2).unwrap();
    let times = TimestampMicrosecondArray::from(vec![1_709_175_845_678_000; ids.len()]);
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int32Array::from(ids.to_vec())) as ArrayRef, false),
        ("name", Arc::new(StringArray::from(names.to_vec())) as ArrayRef, false),
        ("price", Arc::new(prices) as ArrayRef, true),
        ("at", Arc::new(times) as ArrayRef, true),
    ])
    .unwrap()
}

fn request(schema: SchemaRef, mode: WriteMode, key: Option<&str>) -> WriteRequest {
    let tables = vec![TableWrite { table: "orders".to_owned(), schema }];
    WriteRequest { tables, mode, key: key.map(str::to_owned) }
}

async fn begin(target: &MySqlIngest, mode: WriteMode, key: Option<&str>) -> Result<Box<dyn RowWriter>, WriteReceipt> {
    match target.begin(request(rows(&[], &[]).schema(), mode, key)).await.unwrap() {
        WriteStart::Writer(writer) => Ok(writer),
        WriteStart::Repeated(receipt) => Err(receipt),
    }
}

async fn write(target: &MySqlIngest, batch: RecordBatch, mode: WriteMode) -> Result<WriteReceipt, Error> {
    let mut writer = begin(target, mode, None).await.unwrap();
    writer.write(0, batch).await?;
    writer.commit().await
}

const ALL: &str = "SELECT CONCAT(COUNT(*), ' ', COALESCE(GROUP_CONCAT(name ORDER BY id), '')) FROM orders";

#[tokio::test]
async fn rows_are_stored_in_one_transaction() {
    let (test, target) = shop().await;
    let schema = target.table("orders").await.unwrap().schema.unwrap();
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(columns, ["id", "name", "price", "at", "kind"]);
    let mut writer = begin(&target, WriteMode::Append, None).await.unwrap();
    writer.write(0, rows(&[1, 2, 3], &["Ann", "Ben", "Zoe"])).await.unwrap();
    writer.write(0, rows(&[4], &["d'\\x"])).await.unwrap();
    assert_eq!(test.value(ALL).await, "0 ");
    let receipt = writer.commit().await.unwrap();
    assert_eq!(receipt.rows, [4]);
    assert_eq!(test.value(ALL).await, "4 Ann,Ben,Zoe,d'\\x");
    let first = "SELECT CONCAT_WS('|', price, at, kind, twice) FROM orders WHERE id = 2";
    assert_eq!(test.value(first).await, "1.25|2024-02-29 03:04:05.678|b|4");
    let later = write(&target, rows(&[9], &["new"]), WriteMode::Replace).await.unwrap();
    assert_eq!(test.value(ALL).await, "1 new");
    assert!(later.sequence > receipt.sequence);
    // Many rows take several statements.
    let ids: Vec<i32> = (10..5_010).collect();
    let many = rows(&ids, &vec!["many"; ids.len()]);
    assert_eq!(write(&target, many, WriteMode::Append).await.unwrap().rows, [5_000]);
    assert_eq!(test.value("SELECT CAST(COUNT(*) AS CHAR) FROM orders").await, "5001");
}

#[tokio::test]
async fn a_row_that_does_not_fit_stores_nothing_and_is_named() {
    let (test, target) = shop().await;
    write(&target, rows(&[7], &["first"]), WriteMode::Append).await.unwrap();
    for (batch, row) in [(rows(&[1, 2], &["a", "longer"]), 1), (rows(&[1, 2], &["spaces ", "b"]), 0)] {
        let error = write(&target, batch, WriteMode::Replace).await.unwrap_err();
        assert_eq!((error.kind(), error.refused_row()), (ErrorKind::InvalidArguments, Some(row)), "{error}");
        assert!(error.message().contains("more than 5 characters (column name)"), "{error}");
    }
    let duplicate = write(&target, rows(&[1, 2, 7, 8], &["a", "b", "c", "d"]), WriteMode::Append).await.unwrap_err();
    assert_eq!((duplicate.kind(), duplicate.refused_row()), (ErrorKind::InvalidArguments, Some(2)), "{duplicate}");
    assert_eq!(test.value(ALL).await, "1 first");
}

#[tokio::test]
async fn a_write_that_is_left_stores_nothing() {
    let (test, target) = shop().await;
    for index in 0..10 {
        let mut writer = begin(&target, WriteMode::Replace, None).await.unwrap();
        writer.write(0, rows(&[index], &["left"])).await.unwrap();
        drop(writer);
    }
    assert_eq!(write(&target, rows(&[1], &["kept"]), WriteMode::Append).await.unwrap().rows, [1]);
    let is_idle = || async { test.running().await == "0" };
    wait_until("the end of all writes", is_idle).await;
    assert_eq!(test.value(ALL).await, "1 kept");
}

#[tokio::test]
async fn a_repeated_key_stores_nothing() {
    let (test, target) = shop().await;
    let mut writer = begin(&target, WriteMode::Append, Some("k")).await.unwrap();
    writer.write(0, rows(&[1], &["once"])).await.unwrap();
    let receipt = writer.commit().await.unwrap();
    let repeated = begin(&target, WriteMode::Append, Some("k")).await.unwrap_err();
    assert_eq!(repeated, receipt);
    assert!(begin(&target, WriteMode::Append, Some("other")).await.is_ok());
    assert_eq!(test.value(ALL).await, "1 once");
}

#[tokio::test]
async fn writes_with_other_keys_run_at_once() {
    let (test, target) = shop().await;
    write_with_key(&target, 1, "first").await;
    test.run_as_root("INSERT INTO tidegate_ingest_keys VALUES ('old', 1, '1', 0)").await;
    // The second one holds its key.
    let mut open = begin(&target, WriteMode::Append, Some("second")).await.unwrap();
    open.write(0, rows(&[2], &["two"])).await.unwrap();
    write_with_key(&target, 3, "third").await;
    assert_eq!(open.commit().await.unwrap().rows, [1]);
    assert_eq!(test.value(ALL).await, "3 new,two,new");
    assert_eq!(test.value("SELECT CAST(COUNT(*) AS CHAR) FROM tidegate_ingest_keys").await, "3");
}

async fn write_with_key(target: &MySqlIngest, id: i32, key: &str) {
    let mut writer = begin(target, WriteMode::Append, Some(key)).await.unwrap();
    writer.write(0, rows(&[id], &["new"])).await.unwrap();
    assert_eq!(writer.commit().await.unwrap().rows, [1]);
}

#[tokio::test]
async fn tables_that_cannot_take_rows_are_refused() {
    let (test, target) = shop().await;
    for (table, kind, reason) in [
        ("old", ErrorKind::InvalidArguments, "no transactions"),
        ("seen", ErrorKind::InvalidArguments, "it is a view"),
        ("missing", ErrorKind::NotFound, "is declared, but"),
        ("labels", ErrorKind::NotFound, "that takes rows"),
    ] {
        let error = target.table(table).await.unwrap_err();
        assert!(error.kind() == kind && error.message().contains(reason), "{error}");
    }
    // What the tables need is no excess.
    let found = test.database.excess_privileges().await.unwrap();
    assert_eq!(found.iter().filter(|finding| finding.contains("orders")).count(), 0, "{found:?}");
    // Calls still only read.
    assert!(test.run_to_text("SELECT 1").await == "1");
}
