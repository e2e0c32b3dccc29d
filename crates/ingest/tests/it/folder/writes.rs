//! Rows are visible at once, and exactly once after moves and restarts.

use std::sync::Arc;

use tempfile::TempDir;
use tidegate_ingest::delta::DeltaTable;
use tidegate_ingest::{IngestFolder, IngestOptions};
use tidegate_query::{TableWrite, WriteMode, WriteRequest, WriteTarget};

use super::fixture::{
    POLL, append, open, open_with, options, range, reopen, replace, request, rows, schema, values, values_of, write,
    writer,
};

#[tokio::test]
async fn rows_are_visible_when_they_are_acknowledged_and_only_then() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    assert!(folder.view("readings").is_none());
    let mut changes = folder.subscribe();
    let before = folder.version();
    let mut writer = writer(&folder, request("readings", schema())).await;
    writer.write(0, rows(0, 10)).await.unwrap();
    assert!(folder.view("readings").is_none());
    let receipt = writer.commit().await.unwrap();
    assert_eq!((receipt.sequence, receipt.rows), (1, vec![10]));
    assert_ne!(folder.version(), before);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    assert_eq!(values(&folder, "readings"), range(0, 10));
    assert_eq!(folder.tables(), ["readings"]);
    append(&folder, "readings", 10, 5).await;
    assert_eq!(values(&folder, "readings"), range(0, 15));
    folder.close().await.unwrap();
}

#[tokio::test]
async fn rows_are_there_once_before_and_after_a_flush_and_a_restart() {
    let path = TempDir::new().unwrap();
    let mut folder = open(path.path()).await;
    for round in 0..4 {
        append(&folder, "readings", round * 100, 50).await;
        assert_eq!(values(&folder, "readings").len() as i64, round * 100 + 50);
        if round % 2 == 0 {
            folder.flush("readings").await.unwrap();
            assert!(folder.view("readings").unwrap().batches().is_empty());
            assert_eq!(folder.status()[0].waiting_rows, 0);
        }
        append(&folder, "readings", round * 100 + 50, 50).await;
        folder = reopen(path.path(), folder, options()).await;
        assert_eq!(values(&folder, "readings"), range(0, (round + 1) * 100));
    }
    folder.close().await.unwrap();
    let folder = open(path.path()).await;
    assert!(folder.view("readings").unwrap().batches().is_empty(), "closing moves all rows");
    assert_eq!(values(&folder, "readings"), range(0, 400));
    assert_eq!(append(&folder, "readings", 400, 1).await.sequence, 9, "sequence numbers go on");
}

#[tokio::test]
async fn a_large_write_is_in_data_files_and_visible_at_once() {
    let path = TempDir::new().unwrap();
    let small = IngestOptions { inline_bytes_max: 10_000, ..options() };
    let folder = open_with(path.path(), small.clone()).await;
    append(&folder, "readings", 0, 10).await;
    let batches = (0..20).map(|number| rows(10 + number * 500, 500)).collect();
    let receipt = write(&folder, request("readings", schema()), batches).await.unwrap();
    assert_eq!(receipt.rows, [10_000]);
    let view = folder.view("readings").unwrap();
    assert_eq!(view.files().iter().map(|file| file.rows).sum::<u64>(), 10_000);
    assert_eq!(values_of(&view), range(0, 10_010));
    let folder = reopen(path.path(), folder, small.clone()).await;
    assert_eq!(values(&folder, "readings"), range(0, 10_010));
    folder.flush("readings").await.unwrap();
    assert_eq!(values(&folder, "readings"), range(0, 10_010));
    let folder = reopen(path.path(), folder, small).await;
    assert_eq!(values(&folder, "readings"), range(0, 10_010));
    assert!(folder.verify("readings").await.unwrap().is_intact());
}

/// Their rows have pages of memory of their own, which a view keeps after the move.
#[tokio::test]
async fn writes_of_many_rows_stay_in_views_after_they_were_moved() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    let count = 40_000;
    append(&folder, "readings", 0, count).await;
    append(&folder, "readings", count, count).await;
    let view = folder.view("readings").unwrap();
    assert!(view.files().is_empty(), "they are in the log");
    folder.flush("readings").await.unwrap();
    append(&folder, "readings", 2 * count, count).await;
    assert_eq!(values_of(&view), range(0, 2 * count));
    let folder = reopen(path.path(), folder, options()).await;
    assert_eq!(values(&folder, "readings"), range(0, 3 * count));
}

#[tokio::test]
async fn an_abandoned_write_leaves_nothing() {
    let path = TempDir::new().unwrap();
    let small = IngestOptions { inline_bytes_max: 1000, ..options() };
    let folder = open_with(path.path(), small).await;
    for batches in [1, 10] {
        let mut writer = writer(&folder, request("readings", schema())).await;
        for number in 0..batches {
            writer.write(0, rows(number * 100, 100)).await.unwrap();
        }
        drop(writer);
    }
    assert!(folder.view("readings").is_none());
    assert!(folder.tables().is_empty());
    let files = std::fs::read_dir(path.path().join("readings")).map_or(0, Iterator::count);
    assert_eq!(files, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_writers_lose_and_double_nothing_while_rows_are_moved() {
    let path = TempDir::new().unwrap();
    let often = IngestOptions { flush_rows: 700, inline_bytes_max: 4000, ..options() };
    let folder = open_with(path.path(), often.clone()).await;
    let tasks: Vec<_> = (0..20)
        .map(|writer| {
            let folder = folder.clone();
            tokio::spawn(async move {
                for number in 0..25 {
                    // Some writes are large enough for data files.
                    let count = if number % 10 == 9 { 200 } else { 20 };
                    let request = request(&format!("readings_{}", writer % 3), schema());
                    write(&folder, request, vec![rows((writer * 25 + number) * 1000, count)]).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let expected = |table: i64| {
        let of_table = (0..20).filter(move |writer| writer % 3 == table);
        let writes = of_table.flat_map(|writer| (0..25).map(move |number| (writer * 25 + number, number)));
        writes.flat_map(|(write, number)| range(write * 1000, write * 1000 + if number % 10 == 9 { 200 } else { 20 }))
    };
    for round in 0..2 {
        for table in 0..3 {
            let values = values(&folder, &format!("readings_{table}"));
            assert_eq!(values, expected(table).collect::<Vec<_>>(), "{round}");
        }
        folder.flush("readings_1").await.unwrap();
    }
    let folder = reopen(path.path(), folder, often).await;
    for table in 0..3 {
        assert_eq!(values(&folder, &format!("readings_{table}")), expected(table).collect::<Vec<_>>());
    }
    folder.close().await.unwrap();
}

#[tokio::test]
async fn a_replacement_hides_all_rows_before_it_and_old_views_keep_them() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    folder.flush("readings").await.unwrap();
    append(&folder, "readings", 10, 10).await;
    let before = folder.view("readings").unwrap();
    replace(&folder, "readings", 100, 5).await;
    append(&folder, "readings", 105, 5).await;
    assert_eq!(values(&folder, "readings"), range(100, 110));
    assert_eq!(values_of(&before), range(0, 20));
    let folder = reopen(path.path(), folder, options()).await;
    assert_eq!(values(&folder, "readings"), range(100, 110));
    folder.flush("readings").await.unwrap();
    assert_eq!(values(&folder, "readings"), range(100, 110));
    assert_eq!(values_of(&before), range(0, 20));
    let folder = reopen(path.path(), folder, options()).await;
    assert_eq!(values(&folder, "readings"), range(100, 110));
    let empty = WriteRequest { mode: WriteMode::Replace, ..request("readings", schema()) };
    assert_eq!(write(&folder, empty, Vec::new()).await.unwrap().rows, [0]);
    assert_eq!(values(&folder, "readings"), [0_i64; 0]);
    folder.close().await.unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "readings"), [0_i64; 0]);
}

#[tokio::test]
async fn the_rows_of_all_tables_of_a_write_appear_together() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    let tables = ["readings", "copies"].map(|table| TableWrite { table: table.to_owned(), schema: schema() });
    let request = || WriteRequest { tables: tables.to_vec(), mode: WriteMode::Append, key: None };
    let reader = {
        let folder = folder.clone();
        tokio::spawn(async move {
            loop {
                let views = folder.views();
                let counts: Vec<u64> = views.iter().map(|view| view.rows()).collect();
                assert!(counts.is_empty() || (counts.len() == 2 && counts[0] == counts[1]), "{counts:?}");
                if counts.first() == Some(&300) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        })
    };
    for number in 0..30 {
        let mut writer = writer(&folder, request()).await;
        writer.write(0, rows(number * 10, 10)).await.unwrap();
        writer.write(1, rows(number * 10, 10)).await.unwrap();
        assert_eq!(writer.commit().await.unwrap().rows, [10, 10]);
        if number == 15 {
            folder.flush("copies").await.unwrap();
        }
    }
    reader.await.unwrap();
    let folder = reopen(path.path(), folder, options()).await;
    assert_eq!(values(&folder, "readings"), range(0, 300));
    assert_eq!(values(&folder, "copies"), range(0, 300));
}

#[tokio::test]
async fn rows_are_moved_when_they_are_many_and_the_log_shrinks() {
    let path = TempDir::new().unwrap();
    let folder = open_with(path.path(), IngestOptions { flush_rows: 100, ..options() }).await;
    let mut number = 0;
    while folder.status().first().is_none_or(|status| status.flushes < 3) {
        append(&folder, "readings", number * 60, 60).await;
        number += 1;
        tokio::task::yield_now().await;
    }
    assert_eq!(values(&folder, "readings"), range(0, number * 60));
    folder.flush("readings").await.unwrap();
    assert!(folder.log_bytes() < 100, "{}", folder.log_bytes());
}

#[tokio::test]
async fn rows_are_moved_when_they_are_old() {
    let path = TempDir::new().unwrap();
    let age = std::time::Duration::from_millis(1);
    let folder = open_with(path.path(), IngestOptions { flush_age: age, ..options() }).await;
    append(&folder, "readings", 0, 10).await;
    while folder.status()[0].flushes == 0 {
        tokio::time::sleep(POLL).await;
    }
    assert_eq!(values(&folder, "readings"), range(0, 10));
    let again = Arc::clone(&folder);
    append(&again, "readings", 10, 10).await;
    while folder.status()[0].flushes < 2 {
        tokio::time::sleep(POLL).await;
    }
    assert_eq!(values(&folder, "readings"), range(0, 20));
}

#[tokio::test]
async fn a_status_has_the_last_write_and_the_last_one_in_files() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    let sequences = |folder: &IngestFolder, table: &str| {
        let status = folder.status().into_iter().find(|status| status.table == table).unwrap();
        (status.sequence, status.flushed_sequence)
    };
    let first = append(&folder, "readings", 0, 10).await.sequence;
    let other = append(&folder, "others", 0, 10).await.sequence;
    assert_eq!(sequences(&folder, "readings"), (first, 0));
    folder.flush("readings").await.unwrap();
    assert_eq!((sequences(&folder, "readings"), sequences(&folder, "others")), ((first, first), (other, 0)));
    let last = append(&folder, "readings", 10, 10).await.sequence;
    assert_eq!(sequences(&folder, "readings"), (last, first));
    let folder = reopen(path.path(), folder, options()).await;
    assert_eq!(sequences(&folder, "readings"), (last, first), "the table and the log have the numbers");
    // The table has the number for other programs, beside the id of the log.
    folder.flush("readings").await.unwrap();
    let id = std::fs::read_to_string(path.path().join(".tidegate/log/id")).unwrap();
    let table = DeltaTable::open(&path.path().join("readings")).unwrap().unwrap();
    assert_eq!(table.transaction_version(id.trim()), Some(last.cast_signed()));
}
