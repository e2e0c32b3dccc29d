//! All rows or none, and a repeated write stores nothing.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};
use insta::assert_snapshot;
use tidegate_core::{ErrorKind, WriteTotals};
use tidegate_query::{CountedTarget, TableWrite, WriteMode, WriteRequest, WriteStart, WriteTarget as _};
use tidegate_sqlite::{SqliteIngest, SqliteIngestOptions};

use super::{Target, begin, columns, notes, options, refusal, refusal_line, request};
use crate::support::{Folder, wait_until};

const NOTES: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT CHECK (note <> 'bad'));
    CREATE TABLE notes__rejects (line INTEGER, reason TEXT NOT NULL);";

#[tokio::test]
async fn rows_are_visible_together_with_the_commit() {
    for mode in ["", "PRAGMA journal_mode = WAL;"] {
        let target = Target::new(&format!("{mode}{NOTES}"), &["notes", "notes__rejects"]);
        let before = target.value("SELECT journal_mode FROM pragma_journal_mode");
        assert_eq!(target.ingest.tables(), ["notes"]);
        let rejects = |line: i64| {
            columns([
                ("line", Arc::new(Int64Array::from(vec![line])) as ArrayRef),
                ("reason", Arc::new(StringArray::from(vec!["why"])) as ArrayRef),
            ])
        };
        let tables = [("notes", notes([]).schema()), ("notes__rejects", rejects(1).schema())];
        let tables = tables.map(|(table, schema)| TableWrite { table: table.to_owned(), schema }).to_vec();
        let mut writer = target.begin(WriteRequest { tables, mode: WriteMode::Append, key: None }).await.unwrap();
        for number in 0..5 {
            writer.write(0, notes([(number, Some("fine")), (100 + number, None)])).await.unwrap();
            writer.write(1, rejects(number)).await.unwrap();
            assert_eq!(target.value("SELECT count(*) FROM notes"), "0");
        }
        let first = writer.commit().await.unwrap();
        assert_eq!(first.rows, [10, 5]);
        assert_eq!(target.value("SELECT count(*) || ' ' || sum(id) FROM notes"), "10 520");
        assert_eq!(target.value("SELECT sum(line) FROM notes__rejects"), "10");
        let second = target.append("notes", vec![notes([(7_000, None)])]).await.unwrap();
        assert!(second.sequence > first.sequence);
        assert_eq!(target.value("SELECT journal_mode FROM pragma_journal_mode"), before);
    }
}

/// The counters of a target that takes the place of another one go on.
#[tokio::test]
async fn writes_are_counted() {
    let target = Target::new(NOTES, &["notes", "notes__rejects"]);
    let open = || {
        let (files, options) = (vec![target.folder.join("data.db")], options(&["notes", "notes__rejects"]));
        CountedTarget::new(Arc::new(SqliteIngest::open("shop", files, options).unwrap()))
    };
    let write = async |ingest: &CountedTarget, id: i64, key: &str| {
        let rows = notes([(id, None)]);
        let reasons = columns([("reason", Arc::new(StringArray::from(vec!["why"])) as ArrayRef)]);
        let tables = [("notes", rows.schema()), ("notes__rejects", reasons.schema())];
        let tables = tables.map(|(table, schema)| TableWrite { table: table.to_owned(), schema }).to_vec();
        let request = WriteRequest { tables, mode: WriteMode::Append, key: Some(key.to_owned()) };
        let WriteStart::Writer(mut writer) = ingest.begin(request).await.unwrap() else { return };
        // The counters have the outcome.
        if writer.write(0, rows).await.is_ok() && writer.write(1, reasons).await.is_ok() {
            let _ = writer.commit().await;
        }
    };
    let first = open();
    write(&first, 1, "one").await;
    write(&first, 1, "one").await;
    // The row is there already.
    write(&first, 1, "other").await;
    let second = open().with_counters_of(&first);
    write(&second, 3, "two").await;
    second.count_rejected(7);
    let WriteTotals { bytes, .. } = second.totals();
    let expected = WriteTotals { writes: 2, repeated_writes: 1, failed_writes: 1, rows: 2, rejected_rows: 9, bytes };
    assert_eq!(second.totals(), expected);
    assert!((20..500).contains(&bytes), "{bytes}");
    assert_eq!(first.totals(), expected);
}

#[tokio::test]
async fn dropped_writer_leaves_nothing() {
    let target = Target::new(NOTES, &["notes"]);
    for batches in 0..4_i64 {
        let mut writer = target.begin(request("notes", &notes([]).schema(), None)).await.unwrap();
        for number in 0..batches {
            writer.write(0, notes((0..1_000).map(|row| (number * 1_000 + row, Some("text"))))).await.unwrap();
        }
        drop(writer);
    }
    // The lock is free.
    wait_until("the lock", || async { target.reader.execute_batch("BEGIN IMMEDIATE; COMMIT").is_ok() }).await;
    assert_eq!(target.value("SELECT count(*) FROM notes"), "0");
}

#[tokio::test]
async fn violations_name_constraint_and_row_and_store_nothing() {
    let target = Target::new(
        &format!(
            "{NOTES} INSERT INTO notes VALUES (777, 'secret');
             CREATE TABLE parts (note_id INTEGER REFERENCES notes, size INTEGER NOT NULL);
             CREATE TABLE late (note_id INTEGER REFERENCES notes DEFERRABLE INITIALLY DEFERRED);
             CREATE TABLE kept (id INTEGER UNIQUE ON CONFLICT REPLACE);
             INSERT INTO kept VALUES (1);
             CREATE TRIGGER ignored BEFORE INSERT ON kept WHEN NEW.id = 3 BEGIN SELECT RAISE(IGNORE); END;
             CREATE TABLE strict_ids (id INTEGER PRIMARY KEY, note ANY) STRICT;"
        ),
        &["notes", "parts", "late", "kept", "strict_ids"],
    );
    let first = || notes([(1, None), (2, None)]);
    let integers = |name, values: Vec<Option<i64>>| (name, Arc::new(Int64Array::from(values)) as ArrayRef);
    let cases = [
        ("notes", vec![first(), notes([(3, None), (777, None)])]),
        ("notes", vec![first(), notes([(3, Some("bad"))])]),
        ("parts", vec![columns([integers("note_id", vec![Some(777)]), integers("size", vec![None])])]),
        ("parts", vec![columns([integers("note_id", vec![Some(5)]), integers("size", vec![Some(1)])])]),
        ("late", vec![columns([integers("note_id", vec![Some(5)])])]),
        ("kept", vec![columns([integers("id", vec![Some(2), Some(1)])])]),
        ("kept", vec![columns([integers("id", vec![Some(2), Some(3)])])]),
    ];
    let mut lines = Vec::new();
    for (table, rows) in cases {
        lines.push(refusal_line(&refusal(target.append(table, rows).await)));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    invalid_arguments: row 3: UNIQUE constraint failed: notes.id
    invalid_arguments: row 2: CHECK constraint failed: note <> 'bad'
    invalid_arguments: row 0: NOT NULL constraint failed: parts.size
    invalid_arguments: row 0: FOREIGN KEY constraint failed
    invalid_arguments: FOREIGN KEY constraint failed
    invalid_arguments: row 1: UNIQUE constraint failed: kept.id
    invalid_arguments: row 1: a trigger of "kept" ignored a row, so nothing was stored
    "#);
    let counts = ["notes", "parts", "late", "kept"].map(|table| target.value(&format!("SELECT count(*) FROM {table}")));
    assert_eq!(counts, ["1", "0", "0", "1"]);
}

#[tokio::test]
async fn replace_takes_the_place_of_all_rows_at_once() {
    let target = Target::new(&format!("{NOTES} INSERT INTO notes VALUES (1, 'old'), (2, 'old');"), &["notes"]);
    let rows = notes([(2, Some("new")), (3, Some("new"))]);
    let replace = || WriteRequest { mode: WriteMode::Replace, ..request("notes", &rows.schema(), None) };
    let mut writer = target.begin(replace()).await.unwrap();
    writer.write(0, rows.clone()).await.unwrap();
    assert_eq!(target.value("SELECT group_concat(note, ' ') FROM notes"), "old old");
    drop(writer);
    let mut writer = target.begin(replace()).await.unwrap();
    writer.write(0, rows.clone()).await.unwrap();
    assert_eq!(writer.commit().await.unwrap().rows, [2]);
    assert_eq!(target.value("SELECT group_concat(id || note, ' ') FROM notes"), "2new 3new");
    let writer = target.begin(replace()).await.unwrap();
    assert_eq!(writer.commit().await.unwrap().rows, [0]);
    assert_eq!(target.value("SELECT count(*) FROM notes"), "0");
}

#[tokio::test]
async fn file_has_one_writer() {
    let target = Target::new(NOTES, &["notes"]);
    let ingest = target.with_short_timeout(&["notes"]);
    let rows = notes([(1, None)]);
    target.reader.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = refusal(ingest.begin(request("notes", &rows.schema(), None)).await);
    target.reader.execute_batch("COMMIT").unwrap();
    let mut writer = begin(&ingest, request("notes", &rows.schema(), None)).await.unwrap();
    let running = refusal(ingest.begin(request("notes", &rows.schema(), None)).await);
    assert_snapshot!(format!("{}: {locked}\n{}: {running}", locked.kind().name(), running.kind().name()), @r#"
    unavailable: another program writes to the database "shop"
    Try again in a few seconds.
    unavailable: another write to the database "shop" is running
    Try again when it has ended.
    "#);
    writer.write(0, rows).await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(target.value("SELECT count(*) FROM notes"), "1");
}

#[tokio::test]
async fn columns_without_values_have_their_default() {
    let target = Target::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, code TEXT NOT NULL DEFAULT 'none', mark INTEGER DEFAULT 7)",
        &["t"],
    );
    let batch = |code: Option<&str>, mark: Option<i64>| {
        columns([
            ("code", Arc::new(StringArray::from(vec![code])) as ArrayRef),
            ("mark", Arc::new(Int64Array::from(vec![mark])) as ArrayRef),
        ])
    };
    target.append("t", vec![batch(None, None), batch(Some("a"), None), batch(None, None)]).await.unwrap();
    target.append("t", vec![batch(Some("b"), Some(1)), batch(Some("c"), None)]).await.unwrap();
    let rows = "SELECT group_concat(id || code || coalesce(mark, '-'), ' ') FROM t";
    assert_eq!(target.value(rows), "1none7 2a7 3none7 4b1 5c-");
    let late = refusal(target.append("t", vec![batch(None, None), batch(None, Some(2))]).await);
    assert_eq!((late.kind(), late.message().contains("has a default")), (ErrorKind::InvalidArguments, true));
    assert_eq!(target.value("SELECT count(*) FROM t"), "5");
}

#[tokio::test]
async fn repeated_key_stores_nothing_and_returns_the_receipt() {
    let target = Target::new(NOTES, &["notes"]);
    let rows = notes([(1, Some("one")), (2, None)]);
    let mut writer = target.begin(request("notes", &rows.schema(), Some("ann/1"))).await.unwrap();
    writer.write(0, rows.clone()).await.unwrap();
    let running = refusal(target.ingest.begin(request("notes", &rows.schema(), Some("ann/1"))).await);
    assert_eq!((running.kind(), running.message()), (ErrorKind::Conflict, "a write with the same key is running"));
    let receipt = writer.commit().await.unwrap();
    // Another process, which has forgotten everything.
    let other = SqliteIngest::open("shop", vec![target.folder.join("data.db")], options(&["notes"])).unwrap();
    for ingest in [&target.ingest, &other] {
        match ingest.begin(request("notes", &rows.schema(), Some("ann/1"))).await.unwrap() {
            WriteStart::Repeated(repeated) => assert_eq!(repeated, receipt),
            WriteStart::Writer(_) => panic!("the key was forgotten"),
        }
    }
    assert_eq!(target.value("SELECT count(*) FROM notes"), "2");
    assert_eq!(target.value("SELECT count(*) FROM tidegate_ingest_keys WHERE key LIKE '%ann%'"), "0");
    let abandoned = target.begin(request("notes", &rows.schema(), Some("ann/2"))).await.unwrap();
    drop(abandoned);
    target.reader.execute_batch("UPDATE tidegate_ingest_keys SET at = at - 86400000001").unwrap();
    let mut writer = target.begin(request("notes", &rows.schema(), Some("ann/1"))).await.unwrap();
    writer.write(0, notes([(3, None)])).await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(target.value("SELECT count(*) || ' ' || max(rows) FROM tidegate_ingest_keys"), "1 1");
    let without = SqliteIngestOptions { stores_keys: false, ..options(&["notes"]) };
    let without = SqliteIngest::open("shop", vec![target.folder.join("data.db")], without).unwrap();
    let refused = refusal(without.begin(request("notes", &rows.schema(), Some("x"))).await);
    assert_eq!(refused.kind(), ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn several_files_are_written_by_full_names() {
    let folder = Folder::new();
    let left = folder.write("left.db", NOTES);
    let right = folder.write("right.db", NOTES);
    let files = vec![folder.join("left.db"), folder.join("right.db")];
    let ingest = SqliteIngest::open("shop", files, options(&["left.notes", "right.notes", "notes"])).unwrap();
    let rows = notes([(1, None)]);
    let mut writer = begin(&ingest, request("RIGHT.notes", &rows.schema(), None)).await.unwrap();
    writer.write(0, rows.clone()).await.unwrap();
    writer.commit().await.unwrap();
    let count = |connection: &rusqlite::Connection| -> i64 {
        connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count(&left), count(&right)), (0, 1));
    assert_eq!(refusal(ingest.begin(request("notes", &rows.schema(), None)).await).kind(), ErrorKind::NotFound);
    let tables =
        ["left.notes", "right.notes"].map(|table| TableWrite { table: table.to_owned(), schema: rows.schema() });
    let both = WriteRequest { tables: tables.to_vec(), mode: WriteMode::Append, key: None };
    assert_eq!(refusal(ingest.begin(both).await).kind(), ErrorKind::InvalidArguments);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn million_rows_are_never_in_memory_together() {
    const BATCHES: i64 = 125;
    const ROWS: i64 = 8_000;
    let target = Target::new("CREATE TABLE numbers (id INTEGER, label TEXT)", &["numbers"]);
    let schema = target.schema("numbers").await;
    let labels: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("label of row {row}"))));
    let mut writer = target.begin(request("numbers", &schema, None)).await.unwrap();
    let mut alive_max = 0;
    for number in 0..BATCHES {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(number * ROWS..(number + 1) * ROWS));
        writer.write(0, RecordBatch::try_new(schema.clone(), vec![ids, labels.clone()]).unwrap()).await.unwrap();
        // Each batch that waits or is written holds the labels.
        alive_max = alive_max.max(Arc::strong_count(&labels));
    }
    assert_eq!(writer.commit().await.unwrap().rows, [1_000_000]);
    // Two that wait, one that is written and its column, and the test's own.
    assert!(alive_max <= 5, "{alive_max}");
    let sums = "SELECT count(*) || ' ' || sum(id) || ' ' || count(DISTINCT id) FROM numbers";
    assert_eq!(target.value(sums), "1000000 499999500000 1000000");
    assert_eq!(labels.len(), 8_000);
}
