//! Files that are no databases, vanish or are replaced; odd names and links.

use std::fs;

use rusqlite::Connection;
use tidegate_sqlite::SqliteOptions;

use crate::support::{Folder, open_database};

#[tokio::test]
async fn reports_non_database_files_without_their_path() {
    let folder = Folder::new();
    fs::write(
        folder.join("text.db"),
        "this is a text and no database, and it is long enough to be looked at. ".repeat(20),
    )
    .unwrap();
    fs::write(
        folder.join("noise.db"),
        (0..8192_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>(),
    )
    .unwrap();
    drop(folder.write("good.db", "CREATE TABLE t (a)"));
    let node = folder.open(&["text.db"], SqliteOptions::default());
    insta::assert_snapshot!(node.refusal("SELECT 1").await, @r#"unavailable: the file of the database "shop" is not a SQLite database, or is encrypted"#);
    insta::assert_snapshot!(node.tables().await.unwrap_err(), @r#"the file of the database "shop" is not a SQLite database, or is encrypted"#);
    let node = folder.open(&["good.db", "noise.db"], SqliteOptions::default());
    insta::assert_snapshot!(node.refusal("SELECT * FROM t").await, @r#"unavailable: the file "noise" of the database "shop" is not a SQLite database, or is encrypted"#);
    // An empty file is an empty database.
    fs::write(folder.join("empty.db"), "").unwrap();
    assert_eq!(folder.open(&["empty.db"], SqliteOptions::default()).tables().await.unwrap(), "");
}

#[tokio::test]
async fn damaged_pages_fail_only_queries_that_read_them() {
    let sql = "CREATE TABLE t (a); CREATE TABLE u (a); INSERT INTO u VALUES (1);
        INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT hex(zeroblob(50)) FROM n";
    let (folder, node) = open_database(sql);
    let mut bytes = fs::read(folder.join("data.db")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40_000].fill(0xa5);
    fs::write(folder.join("data.db"), bytes).unwrap();
    insta::assert_snapshot!(node.refusal("SELECT sum(length(a)) FROM t").await, @r#"
    unavailable: the database "shop" is damaged
    Check it with PRAGMA integrity_check, or restore a copy.
    "#);
    assert_eq!(node.rows("SELECT a FROM u").await, "1");
}

#[tokio::test]
async fn recovers_when_a_missing_file_returns() {
    let (folder, node) = open_database("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_eq!(node.rows("SELECT a FROM t").await, "1");
    fs::rename(folder.join("data.db"), folder.join("away.db")).unwrap();
    insta::assert_snapshot!(node.refusal("SELECT a FROM t").await, @r#"unavailable: the file of the database "shop" does not exist"#);
    fs::rename(folder.join("away.db"), folder.join("data.db")).unwrap();
    assert_eq!(node.rows("SELECT a FROM t").await, "1");
}

#[tokio::test]
async fn reopens_a_replaced_file() {
    let (folder, node) = open_database("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    let other = |value: &str| {
        drop(folder.write(
            "other.db",
            &format!("DROP TABLE IF EXISTS t; CREATE TABLE t (a, b); INSERT INTO t VALUES ('{value}', 2)"),
        ));
        folder.join("other.db")
    };
    assert_eq!(node.rows("SELECT * FROM t").await, "1");
    fs::rename(other("moved"), folder.join("data.db")).unwrap();
    assert_eq!(node.rows("SELECT * FROM t").await, "moved,2");
    // Over the same file, so that only its content and time are others.
    fs::copy(other("copied"), folder.join("data.db")).unwrap();
    assert_eq!(node.rows("SELECT * FROM t").await, "copied,2");
}

#[tokio::test]
async fn paths_are_taken_literally() {
    let folder = Folder::new();
    for name in ["what?mode=rwc&vfs=x.db", "100%41.db", "a'b\"c.db", "#.db", "ä ö.db"] {
        drop(folder.write(name, "CREATE TABLE t (a); INSERT INTO t VALUES (1)"));
        assert_eq!(folder.open(&[name], SqliteOptions::default()).rows("SELECT a FROM t").await, "1");
        drop(folder.write("other.db", "CREATE TABLE IF NOT EXISTS u (a)"));
        let several = folder.open(&[name, "other.db"], SqliteOptions::default());
        assert_eq!(several.rows("SELECT a FROM t").await, "1", "{name}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn follows_symbolic_links() {
    let folder = Folder::new();
    let writer = folder.write("data.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    fs::create_dir(folder.join("links")).unwrap();
    std::os::unix::fs::symlink(folder.join("data.db"), folder.join("links/link.db")).unwrap();
    let node = folder.open(&["links/link.db"], SqliteOptions::default());
    assert_eq!(node.rows("SELECT a FROM t").await, "1");
    writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(node.rows("SELECT count(*) FROM t").await, "2");
    // A link that is turned to another file is another file.
    drop(folder.write("other.db", "CREATE TABLE t (a); INSERT INTO t VALUES (3)"));
    fs::remove_file(folder.join("links/link.db")).unwrap();
    std::os::unix::fs::symlink(folder.join("other.db"), folder.join("links/link.db")).unwrap();
    assert_eq!(node.rows("SELECT a FROM t").await, "3");
}

#[cfg(unix)]
#[tokio::test]
async fn opens_wal_file_without_shm_only_if_log_is_empty() {
    let folder = Folder::new();
    for name in ["data.db", "other.db"] {
        drop(folder.write(name, "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)"));
    }
    // As in a folder that may not be written, the index cannot be made: SQLite follows no link there.
    std::os::unix::fs::symlink("nowhere", folder.join("data.db-shm")).unwrap();
    let node = folder.open(&["data.db"], SqliteOptions::default());
    assert_eq!(node.rows("SELECT a FROM t").await, "1");
    let several = folder.open(&["other.db", "data.db"], SqliteOptions::default());
    assert_eq!(several.rows("SELECT a FROM data.t").await, "1");
    // It is replaced by another, and seen to be.
    fs::copy(folder.join("other.db"), folder.join("data.db")).unwrap();
    assert_eq!(node.rows("SELECT count(*) FROM t").await, "1");
    // Rows in a write-ahead log would be missing from the answer.
    fs::write(folder.join("data.db-wal"), [0; 64]).unwrap();
    insta::assert_snapshot!(folder.open(&["data.db"], SqliteOptions::default()).refusal("SELECT a FROM t").await, @r#"
    unavailable: the file of the database "shop" has a write-ahead log that cannot be read
    Grant the server write access to the folder, or close the program that uses the file.
    "#);
    insta::assert_snapshot!(node.refusal("SELECT a FROM t").await, @r#"
    unavailable: the file of the database "shop" has a write-ahead log that cannot be read
    Grant the server write access to the folder, or close the program that uses the file.
    "#);
}

#[tokio::test]
async fn reports_an_unfinished_write() {
    let (folder, node) = open_database("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    let writer = folder.write("data.db", "PRAGMA cache_size = 1; BEGIN; CREATE TABLE u (a); INSERT INTO t
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT hex(zeroblob(20)) FROM n");
    // What is on the disk when the writer dies now.
    let (data, journal) =
        (fs::read(folder.join("data.db")).unwrap(), fs::read(folder.join("data.db-journal")).unwrap());
    drop(writer);
    fs::write(folder.join("data.db"), data).unwrap();
    fs::write(folder.join("data.db-journal"), journal).unwrap();
    insta::assert_snapshot!(node.refusal("SELECT a FROM t").await, @r#"
    unavailable: the file of the database "shop" contains an incomplete write
    Open it once with a program that may write it; SQLite then recovers it.
    "#);
    drop(folder.write("data.db", "SELECT 1; CREATE TABLE v (a)"));
    assert_eq!(node.rows("SELECT a FROM t").await, "1");
}

#[tokio::test]
async fn reading_does_not_change_files() {
    let (folder, node) = open_database("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    let before = fs::read(folder.join("data.db")).unwrap();
    node.rows("SELECT a FROM t ORDER BY a").await;
    node.tables().await.unwrap();
    drop(node);
    assert_eq!(fs::read(folder.join("data.db")).unwrap(), before);
    let names: Vec<_> = fs::read_dir(folder.join("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["data.db"]);
    assert_eq!(
        Connection::open(folder.join("data.db")).unwrap().query_row("SELECT a FROM t", [], |row| row.get(0)),
        Ok(1)
    );
}
