use tidegate_core::ErrorKind;
use tidegate_query::{WriteStart, WriteTarget as _};

use super::{notes, open, refusal, request};
use crate::test_database::TestDatabase;

const NOTES: &str = "
    CREATE TABLE notes (id bigint PRIMARY KEY, note text);
    GRANT INSERT, SELECT ON notes TO {login};";
const MAY_CREATE: &str = "GRANT CREATE ON DATABASE {db} TO {login};";

#[tokio::test]
async fn repeated_key_stores_nothing_and_returns_the_receipt() {
    let scene = TestDatabase::new(&format!("{NOTES}{MAY_CREATE}")).await;
    let target = open(&scene, &["notes"]);
    let rows = notes([(1, Some("one")), (2, None)]);
    let mut writer = target.begin(request("notes", &rows.schema(), Some("ann/1"))).await.unwrap();
    writer.write(0, rows.clone()).await.unwrap();
    let receipt = writer.commit().await.unwrap();
    // Another node, which has forgotten everything.
    for target in [&target, &open(&scene, &["notes"])] {
        match target.ingest.begin(request("notes", &rows.schema(), Some("ann/1"))).await.unwrap() {
            WriteStart::Repeated(repeated) => assert_eq!(repeated, receipt),
            WriteStart::Writer(_) => panic!("the key was forgotten"),
        }
    }
    assert_eq!(scene.value("SELECT count(*) FROM notes").await, "2");
    assert_eq!(scene.value("SELECT key FROM tidegate.ingest_keys WHERE key LIKE '%ann%'").await, "null");
    // After a day, the key is free again, and the old ones are removed.
    scene.run("UPDATE tidegate.ingest_keys SET at = at - interval '24 hours'").await;
    for key in ["ann/1", "ann/2"] {
        let rows = notes([(if key == "ann/1" { 3 } else { 4 }, None)]);
        let mut writer = target.begin(request("notes", &rows.schema(), Some(key))).await.unwrap();
        writer.write(0, rows).await.unwrap();
        assert!(writer.commit().await.unwrap().sequence > receipt.sequence);
        scene.run("UPDATE tidegate.ingest_keys SET at = at - interval '24 hours'").await;
    }
    assert_eq!(scene.value("SELECT count(*) FROM tidegate.ingest_keys").await, "1");
    target.wait_until_idle().await;
}

#[tokio::test]
async fn key_of_a_running_write_is_refused_and_an_abandoned_one_is_free() {
    let scene = TestDatabase::new(&format!("{NOTES}{MAY_CREATE}")).await;
    let target = open(&scene, &["notes"]);
    let rows = notes([(1, None)]);
    let mut writer = target.begin(request("notes", &rows.schema(), Some("k"))).await.unwrap();
    writer.write(0, rows.clone()).await.unwrap();
    let refused = refusal(target.ingest.begin(request("notes", &rows.schema(), Some("k"))).await);
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::Conflict, "a write with the same key is running"));
    drop(target.begin(request("notes", &rows.schema(), Some("other"))).await.unwrap());
    drop(writer);
    target.wait_until_idle().await;
    assert_eq!(scene.value("SELECT count(*) FROM notes").await, "0");
    crate::test_database::wait_until("the end of the transaction", || async { scene.active().await == "0" }).await;
    let mut writer = target.begin(request("notes", &rows.schema(), Some("k"))).await.unwrap();
    writer.write(0, rows).await.unwrap();
    assert_eq!(writer.commit().await.unwrap().rows, [1]);
}

#[tokio::test]
async fn twenty_writers_with_one_key_store_its_rows_once() {
    let scene = TestDatabase::new(&format!("{NOTES}{MAY_CREATE}")).await;
    let target = open(&scene, &["notes"]);
    let rows = notes([(1, None), (2, None)]);
    let write = || async {
        match target.ingest.begin(request("notes", &rows.schema(), Some("k"))).await {
            Ok(WriteStart::Writer(mut writer)) => {
                writer.write(0, rows.clone()).await.unwrap();
                Some(writer.commit().await.unwrap())
            }
            Ok(WriteStart::Repeated(receipt)) => Some(receipt),
            Err(error) => {
                assert_eq!(error.message(), "a write with the same key is running");
                None
            }
        }
    };
    let outcomes = futures::future::join_all((0..20).map(|_| write())).await;
    let receipts: Vec<_> = outcomes.into_iter().flatten().collect();
    assert!(!receipts.is_empty() && receipts.iter().all(|receipt| *receipt == receipts[0]));
    assert_eq!(scene.value("SELECT count(*) FROM notes").await, "2");
}

#[tokio::test]
async fn key_without_a_table_is_refused_with_the_way_to_create_it() {
    let scene = TestDatabase::new(NOTES).await;
    let target = open(&scene, &["notes"]);
    let rows = notes([(1, None)]);
    let refused = refusal(target.ingest.begin(request("notes", &rows.schema(), Some("k"))).await);
    assert_eq!(refused.kind(), ErrorKind::InvalidArguments);
    let hint = refused.hint().unwrap();
    let (_, sql) = hint.split_once(":\n").unwrap();
    let (sql, _) = sql.split_once(" Or send").unwrap();
    scene.run(sql).await;
    let mut writer = target.begin(request("notes", &rows.schema(), Some("k"))).await.unwrap();
    writer.write(0, rows).await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(scene.value("SELECT count(*) FROM tidegate.ingest_keys").await, "1");
    target.wait_until_idle().await;
}
