use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use insta::assert_snapshot;
use tidegate_core::{ErrorKind, Principal};
use tidegate_postgres::PostgresOptions;
use tidegate_query::{Database as _, TableWrite, WriteMode, WriteRequest, WriteTarget as _};

use super::{notes, open, refusal, refusal_line, request};
use crate::test_database::{OpenDatabase as _, OpenedDatabase, TestDatabase, wait_until};

const NOTES: &str = "
    CREATE TABLE notes (id bigint PRIMARY KEY, note text CHECK (note <> 'bad'));
    CREATE TABLE notes__rejects (line bigint, reason text NOT NULL);
    GRANT INSERT, SELECT, DELETE ON notes, notes__rejects TO {login};";

#[tokio::test]
async fn rows_are_visible_together_with_the_commit() {
    let scene = TestDatabase::new(NOTES).await;
    let target = open(&scene, &["notes", "notes__rejects"]);
    assert_eq!(target.ingest.tables(), ["notes"]);
    let rejects = |line: i64| {
        RecordBatch::try_from_iter_with_nullable([
            ("line", Arc::new(Int32Array::from(vec![line as i32])) as ArrayRef, true),
            ("reason", Arc::new(StringArray::from(vec!["why"])) as ArrayRef, false),
        ])
        .unwrap()
    };
    let rows = notes([(1, None)]);
    let tables = [("notes", rows.schema()), ("notes__rejects", rejects(1).schema())];
    let tables = tables.map(|(table, schema)| TableWrite { table: table.to_owned(), schema }).to_vec();
    let request = WriteRequest { tables, mode: WriteMode::Append, key: None };
    let mut writer = target.begin(request).await.unwrap();
    for number in 0..5 {
        writer.write(0, notes([(number, Some("fine")), (100 + number, None)])).await.unwrap();
        writer.write(1, rejects(number)).await.unwrap();
        assert_eq!(scene.value("SELECT count(*) FROM notes").await, "0");
    }
    assert_eq!(writer.commit().await.unwrap().rows, [10, 5]);
    assert_eq!(scene.value("SELECT count(*) || ' ' || sum(id) FROM notes").await, "10 520");
    assert_eq!(scene.value("SELECT sum(line) FROM notes__rejects").await, "10");
    target.wait_until_idle().await;
}

/// Clients that subscribe to the table receive a notification then. Of tables with row-level security, only the columns count.
#[tokio::test]
async fn version_tag_of_a_table_that_takes_rows_changes_with_them() {
    let scene = TestDatabase::new(&format!(
        "{NOTES}
        CREATE TABLE plain (id bigint); CREATE TABLE hidden (id bigint); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
        GRANT SELECT ON plain, hidden TO {{login}};"
    ))
    .await;
    let open_database = || {
        let ingest_tables = vec!["public.notes".to_owned(), "hidden".to_owned()];
        scene.open(PostgresOptions { ingest_tables, ..PostgresOptions::default() })
    };
    let version_tag = async |node: &OpenedDatabase, table| {
        node.database.version_tag(Some(table), &Principal::process_user()).await.unwrap()
    };
    let node = open_database();
    let mut before = Vec::new();
    for table in ["notes", "plain", "hidden"] {
        before.push(version_tag(&node, table).await);
    }
    scene.run("INSERT INTO plain VALUES (1); INSERT INTO hidden VALUES (1); INSERT INTO notes VALUES (1)").await;
    wait_until("the version tag changes", async || version_tag(&node, "notes").await != before[0]).await;
    // Another database has cached nothing yet.
    let fresh = open_database();
    for (table, before) in ["plain", "hidden"].into_iter().zip(&before[1..]) {
        assert_eq!(version_tag(&fresh, table).await, *before, "{table}");
    }
    let stored = version_tag(&fresh, "notes").await;
    let target = open(&scene, &["notes"]);
    let mut writer = target.begin(request("notes", &notes([]).schema(), None)).await.unwrap();
    writer.write(0, notes([(2, None)])).await.unwrap();
    writer.commit().await.unwrap();
    wait_until("the version tag changes", async || version_tag(&fresh, "notes").await != stored).await;
    target.wait_until_idle().await;
}

#[tokio::test]
async fn dropped_writer_leaves_nothing() {
    let scene = TestDatabase::new(NOTES).await;
    let target = open(&scene, &["notes"]);
    for batches in 0..4_i64 {
        let mut writer = target.begin(request("notes", &notes([]).schema(), None)).await.unwrap();
        for number in 0..batches {
            writer.write(0, notes((0..1_000).map(|row| (number * 1_000 + row, Some("text"))))).await.unwrap();
        }
        drop(writer);
        target.wait_until_idle().await;
    }
    wait_until("the end of the transactions", || async { scene.active().await == "0" }).await;
    assert_eq!(scene.value("SELECT count(*) FROM notes").await, "0");
    assert_eq!(scene.value("SELECT count(*) FROM pg_locks WHERE relation = 'notes'::regclass").await, "0");
}

/// More than one command of a write: those before are rolled back too.
#[tokio::test]
async fn last_row_of_a_long_write_rolls_back_all() {
    let scene = TestDatabase::new(NOTES).await;
    let target = open(&scene, &["notes"]);
    let mut writer = target.begin(request("notes", &notes([]).schema(), None)).await.unwrap();
    let text: &'static str = "x".repeat(10_000).leak();
    for number in 0..10 {
        writer.write(0, notes((0..1_000).map(|row| (number * 1_000 + row, Some(text))))).await.unwrap();
    }
    writer.write(0, notes([(0, None)])).await.unwrap();
    let error = refusal(writer.commit().await);
    assert_eq!(error.refused_row(), Some(10_000));
    assert!(error.message().starts_with("duplicate key value"), "{error}");
    assert_eq!(scene.value("SELECT count(*) FROM notes").await, "0");
    target.wait_until_idle().await;
}

#[tokio::test]
async fn lost_connection_is_unavailable_and_stores_nothing() {
    let scene = TestDatabase::new(NOTES).await;
    let target = open(&scene, &["notes"]);
    let mut writer = target.begin(request("notes", &notes([]).schema(), None)).await.unwrap();
    writer.write(0, notes([(1, None)])).await.unwrap();
    wait_until("the command", || async { scene.active().await == "1" }).await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE datname = current_database() AND application_name LIKE 'tidegate%' AND state <> 'idle'";
    assert_eq!(scene.value(end).await, "1");
    let lost = async {
        loop {
            writer.write(0, notes((2..1_000).map(|id| (id, Some("text"))))).await?;
        }
    };
    let error: Result<(), _> = lost.await;
    assert_eq!(refusal(error).kind(), ErrorKind::Unavailable);
    drop(writer);
    target.wait_until_idle().await;
    target.append("notes", vec![notes([(1, None)])]).await.unwrap();
    assert_eq!(scene.value("SELECT count(*) FROM notes").await, "1");
}

#[tokio::test]
async fn closing_ends_running_writes() {
    let scene = TestDatabase::new(NOTES).await;
    let target = open(&scene, &["notes"]);
    let mut writer = target.begin(request("notes", &notes([]).schema(), None)).await.unwrap();
    writer.write(0, notes([(1, None)])).await.unwrap();
    target.ingest.close().await;
    assert_eq!(refusal(writer.commit().await).kind(), ErrorKind::Unavailable);
    assert_eq!(scene.value("SELECT count(*) FROM notes").await, "0");
}

#[tokio::test]
async fn names_are_those_of_the_catalog() {
    let scene = TestDatabase::new(
        r#"CREATE SCHEMA "Odd ""one"; CREATE TABLE "Odd ""one"."a.b" ("select" bigint, "Note ""x" text) PARTITION BY LIST ("select");
           CREATE TABLE "Odd ""one".part PARTITION OF "Odd ""one"."a.b" DEFAULT;
           GRANT USAGE ON SCHEMA "Odd ""one" TO {login}; GRANT INSERT ON "Odd ""one"."a.b" TO {login};"#,
    )
    .await;
    let name = r#""Odd ""one"."a.b""#;
    let target = open(&scene, &[name]);
    let schema = target.schema(name, &[]).await;
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![1, 2])), Arc::new(StringArray::from(vec![Some("x"), None]))];
    target.append(name, vec![RecordBatch::try_new(schema, columns).unwrap()]).await.unwrap();
    assert_eq!(scene.value(r#"SELECT count(*) FROM "Odd ""one".part"#).await, "2");
    target.wait_until_idle().await;
}

/// Also behind a pooler, where statements that a connection has prepared do not survive.
#[tokio::test]
async fn each_write_may_have_types_of_its_own() {
    let mut sql = String::new();
    for number in 0..4 {
        sql.push_str(&format!(
            "CREATE TYPE mood{number} AS ENUM ('a', 'b'); CREATE DOMAIN odd{number} AS mood{number};
             CREATE TABLE t{number} (m mood{number}, ms mood{number}[], o odd{number}); GRANT INSERT ON t{number} TO {{login}};"
        ));
    }
    let scene = TestDatabase::new(&sql).await;
    let target = open(&scene, &["t0", "t1", "t2", "t3"]);
    for table in ["t0", "t1", "t2", "t3", "t0"] {
        let rows = RecordBatch::try_from_iter_with_nullable([
            ("m", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef, true),
            ("o", Arc::new(StringArray::from(vec!["b", "a"])) as ArrayRef, true),
        ]);
        target.append(table, vec![rows.unwrap()]).await.unwrap();
        assert_eq!(target.schema(table, &[]).await.fields().len(), 3);
    }
    assert_eq!(scene.value("SELECT string_agg(m::text || o, ' ') FROM t0").await, "ab ba ab ba");
    target.wait_until_idle().await;
}

#[tokio::test]
async fn violations_name_constraint_column_and_row_and_store_nothing() {
    let scene = TestDatabase::new(&format!(
        "{NOTES} INSERT INTO notes VALUES (777, 'secret');
         CREATE TABLE parts (note_id bigint REFERENCES notes DEFERRABLE INITIALLY DEFERRED, size int NOT NULL);
         CREATE TABLE kept (id bigint); CREATE FUNCTION drop_row() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN IF NEW.id = 2 THEN RETURN NULL; END IF; RETURN NEW; END';
         CREATE TRIGGER drop_row BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION drop_row();
         GRANT INSERT ON parts, kept TO {{login}};"
    ))
    .await;
    let target = open(&scene, &["notes", "parts", "kept"]);
    let first = || notes([(1, None), (2, None)]);
    let pair = |id: i64, size: Option<i32>| {
        RecordBatch::try_from_iter_with_nullable([
            ("note_id", Arc::new(Int64Array::from(vec![id])) as ArrayRef, true),
            ("size", Arc::new(Int32Array::from(vec![size])) as ArrayRef, true),
        ])
        .unwrap()
    };
    let kept =
        RecordBatch::try_from_iter_with_nullable([("id", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef, true)]);
    let cases = [
        ("notes", vec![first(), notes([(3, None), (777, None)])]),
        ("notes", vec![first(), notes([(3, Some("bad"))])]),
        ("parts", vec![pair(777, Some(1)), pair(777, None)]),
        ("parts", vec![pair(5, Some(1))]),
        ("kept", vec![kept.unwrap()]),
    ];
    let mut refusals = Vec::new();
    for (table, rows) in cases {
        refusals.push(refusal_line(&refusal(target.append(table, rows).await)));
    }
    assert_snapshot!(refusals.join("\n"), @r#"
    invalid_arguments: row 3: duplicate key value violates unique constraint "notes_pkey" (column id)
    invalid_arguments: row 2: new row for relation "notes" violates check constraint "notes_note_check" (column note)
    invalid_arguments: row 1: null value in column "size" of relation "parts" violates not-null constraint
    invalid_arguments: insert or update on table "parts" violates foreign key constraint "parts_note_id_fkey" (column note_id)
    invalid_arguments: a trigger of "kept" stored 2 of 3 rows, so nothing was stored
    "#);
    let left = "SELECT (SELECT count(*) FROM notes) || ' ' || (SELECT count(*) FROM parts) || ' ' || (SELECT count(*) FROM kept)";
    assert_eq!(scene.value(left).await, "1 0 0");
    target.wait_until_idle().await;
}

#[tokio::test]
async fn replace_takes_the_place_of_all_rows_at_once() {
    let scene = TestDatabase::new(&format!("{NOTES} INSERT INTO notes VALUES (1, 'old'), (2, 'old');")).await;
    let target = open(&scene, &["notes"]);
    let rows = notes([(2, Some("new")), (3, Some("new"))]);
    let replace = || WriteRequest { mode: WriteMode::Replace, ..request("notes", &rows.schema(), None) };
    let mut writer = target.begin(replace()).await.unwrap();
    writer.write(0, rows.clone()).await.unwrap();
    assert_eq!(scene.value("SELECT string_agg(note, ' ') FROM notes").await, "old old");
    drop(writer);
    target.wait_until_idle().await;
    let mut writer = target.begin(replace()).await.unwrap();
    // Another writer waits for the lock, and is refused after the time limit for locks.
    let locked =
        scene.admin.batch_execute("SET lock_timeout = 1; INSERT INTO notes VALUES (9, 'x')").await.unwrap_err();
    assert_eq!(locked.code().unwrap().code(), "55P03");
    writer.write(0, rows.clone()).await.unwrap();
    assert_eq!(writer.commit().await.unwrap().rows, [2]);
    assert_eq!(scene.value("SELECT string_agg(id || note, ' ' ORDER BY id) FROM notes").await, "2new 3new");
    // Without rows, the table is empty afterwards.
    let writer = target.begin(replace()).await.unwrap();
    assert_eq!(writer.commit().await.unwrap().rows, [0]);
    assert_eq!(scene.value("SELECT count(*) FROM notes").await, "0");
    target.wait_until_idle().await;
}

#[tokio::test]
async fn columns_without_values_have_their_default() {
    let scene = TestDatabase::new(
        "CREATE TABLE t (id bigserial, code text NOT NULL DEFAULT 'none', mark int DEFAULT 7, note text);
         GRANT INSERT ON t TO {login}; GRANT USAGE ON SEQUENCE t_id_seq TO {login};",
    )
    .await;
    let target = open(&scene, &["t"]);
    let schema = target.schema("t", &["code", "mark", "note"]).await;
    let batch = |code: Option<&str>, mark: Option<i32>| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![code])),
            Arc::new(Int32Array::from(vec![mark])),
            Arc::new(StringArray::from(vec![Some("n")])),
        ];
        RecordBatch::try_new(schema.clone(), columns).unwrap()
    };
    target.append("t", vec![batch(None, None), batch(Some("a"), None), batch(None, None)]).await.unwrap();
    target.append("t", vec![batch(Some("b"), Some(1)), batch(Some("c"), None)]).await.unwrap();
    let rows = "SELECT string_agg(id || code || coalesce(mark::text, '-'), ' ' ORDER BY id) FROM t";
    assert_eq!(scene.value(rows).await, "1none7 2a7 3none7 4b1 5c-");
    let late = refusal(target.append("t", vec![batch(None, None), batch(None, Some(2))]).await);
    assert_eq!((late.kind(), late.message().contains("has a default")), (ErrorKind::InvalidArguments, true));
    assert_eq!(scene.value("SELECT count(*) FROM t").await, "5");
    target.wait_until_idle().await;
}

/// The time limits of the role do not end a body.
#[tokio::test]
async fn time_limits_of_statements_do_not_apply() {
    let scene = TestDatabase::new(
        "CREATE TABLE t (id int, timeout text DEFAULT current_setting('statement_timeout'),
             idle text DEFAULT current_setting('idle_in_transaction_session_timeout'));
         GRANT INSERT ON t TO {login}; ALTER ROLE {login} SET statement_timeout = '10s';",
    )
    .await;
    let target = open(&scene, &["t"]);
    let ids = Arc::new(Int32Array::from(vec![1])) as ArrayRef;
    let rows = RecordBatch::try_from_iter_with_nullable([("id", ids, true)]).unwrap();
    target.append("t", vec![rows]).await.unwrap();
    assert_eq!(scene.value("SELECT timeout || ' ' || idle FROM t").await, "0 330s");
    target.wait_until_idle().await;
}

#[tokio::test]
async fn million_rows_are_never_in_memory_together() {
    const BATCHES: i64 = 125;
    const ROWS: i64 = 8_000;
    let scene =
        TestDatabase::new("CREATE TABLE numbers (id bigint, label text); GRANT INSERT ON numbers TO {login};").await;
    let target = open(&scene, &["numbers"]);
    let schema = target.schema("numbers", &[]).await;
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
    // Two that wait, one that is written, and the test's own.
    assert!(alive_max <= 4, "{alive_max}");
    let sums = "SELECT count(*) || ' ' || sum(id) || ' ' || count(DISTINCT id) FROM numbers";
    assert_eq!(scene.value(sums).await, "1000000 499999500000 1000000");
    assert_eq!(labels.len(), 8_000);
    target.wait_until_idle().await;
}
