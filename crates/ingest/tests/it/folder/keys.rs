//! Repeated writes, also after damage.

use std::fs::{self, File};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tidegate_core::ErrorKind;
use tidegate_ingest::{IngestFolder, IngestOptions};
use tidegate_query::{WriteRequest, WriteStart, WriteTarget};

use super::damaged_files::{change, crashed, records, segment};
use super::fixture::{append, open, open_with, options, range, reopen, request, rows, schema, values, write, writer};

fn with_key(key: &str) -> WriteRequest {
    WriteRequest { key: Some(key.to_owned()), ..request("readings", schema()) }
}

#[tokio::test]
async fn a_key_stores_once_across_flushes_and_restarts() {
    let path = TempDir::new().unwrap();
    let mut folder = open(path.path()).await;
    let first = write(&folder, with_key("a"), vec![rows(0, 10)]).await.unwrap();
    for step in 0..4 {
        match step {
            0 => folder = reopen(path.path(), folder, options()).await,
            1 => folder.flush("readings").await.unwrap(),
            2 => folder = reopen(path.path(), folder, options()).await,
            _ => {
                folder.close().await.unwrap();
                folder = open(path.path()).await;
            }
        }
        match folder.begin(with_key("a")).await.unwrap() {
            WriteStart::Repeated(receipt) => assert_eq!(receipt, first),
            WriteStart::Writer(_) => panic!("step {step}: the key is forgotten"),
        }
        assert_eq!(values(&folder, "readings"), range(0, 10));
    }
    write(&folder, with_key("b"), vec![rows(10, 5)]).await.unwrap();
    assert_eq!(values(&folder, "readings"), range(0, 15));
}

#[tokio::test]
async fn a_running_key_is_a_conflict_and_an_abandoned_one_is_free() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    let running = writer(&folder, with_key("a")).await;
    let error = folder.begin(with_key("a")).await.unwrap_err();
    assert!(error.to_string().contains("is running"), "{error}");
    drop(running);
    write(&folder, with_key("a"), vec![rows(0, 3)]).await.unwrap();
    assert_eq!(values(&folder, "readings"), range(0, 3));
    // A write that fails at its beginning does not keep its key.
    let wrong = WriteRequest { key: Some("b".to_owned()), ..request("../x", schema()) };
    assert!(folder.begin(wrong).await.is_err());
    write(&folder, with_key("b"), vec![rows(3, 3)]).await.unwrap();
    assert!(folder.begin(with_key("")).await.is_err());
}

#[tokio::test]
async fn keys_are_forgotten_by_age_and_number() {
    let path = TempDir::new().unwrap();
    let few = IngestOptions { keys_max: 2, ..options() };
    let folder = open_with(path.path(), few).await;
    for key in ["a", "b", "c"] {
        write(&folder, with_key(key), vec![rows(0, 1)]).await.unwrap();
    }
    assert!(matches!(folder.begin(with_key("a")).await.unwrap(), WriteStart::Writer(_)));
    assert!(matches!(folder.begin(with_key("b")).await.unwrap(), WriteStart::Repeated(_)));
    folder.close().await.unwrap();
    let folder = open_with(path.path(), IngestOptions { key_age_max: Duration::ZERO, ..options() }).await;
    assert!(matches!(folder.begin(with_key("c")).await.unwrap(), WriteStart::Writer(_)));
    append(&folder, "readings", 1, 1).await;
    folder.close().await.unwrap();
}

async fn is_repeat(folder: &Arc<IngestFolder>, key: &str) -> bool {
    matches!(folder.begin(with_key(key)).await.unwrap(), WriteStart::Repeated(_))
}

#[tokio::test]
async fn after_a_damaged_record_of_keys_unknown_keys_are_refused() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    for (position, key) in (0..).zip(["first", "second", "third"]) {
        write(&folder, with_key(key), vec![rows(position, 1)]).await.unwrap();
        folder.flush("readings").await.unwrap();
    }
    folder.close().await.unwrap();
    let keys = segment(path.path(), "keys");
    let saved = records(&keys);
    // After each record of keys comes an empty one, which protects the last one, too.
    assert_eq!(saved.len(), 6);
    let damage_and_open = async |record: usize| {
        let path = crashed(path.path());
        change(&segment(path.path(), "keys"), saved[record].end - 1);
        let folder = open(path.path()).await;
        (path, folder)
    };
    for (record, lost, known) in [(2, "second", ["first", "third"]), (4, "third", ["first", "second"])] {
        let (path, folder) = damage_and_open(record).await;
        for key in known {
            assert!(is_repeat(&folder, key).await, "{key}");
        }
        for key in [lost, "other"] {
            let error = folder.begin(with_key(key)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{key}: {error}");
            assert!(error.message().contains("delete the folder .tidegate/keys"), "{key}: {error}");
        }
        append(&folder, "readings", 3, 1).await;
        assert_eq!(values(&folder, "readings"), range(0, 4));
        assert!(folder.damage()[0].contains("keys of writes are lost: .tidegate/keys/"), "{:?}", folder.damage());
        assert!(folder.status()[0].last_error.is_some());
        folder.close().await.unwrap();
        fs::remove_dir_all(path.path().join(".tidegate/keys")).unwrap();
        assert!(!is_repeat(&open(path.path()).await, lost).await);
    }
    // A record without keys.
    let (_path, folder) = damage_and_open(3).await;
    assert_eq!(folder.damage(), [""; 0]);
    assert!(is_repeat(&folder, "second").await && !is_repeat(&folder, "other").await);
}

#[tokio::test]
async fn a_log_of_keys_that_was_cut_short_is_recognised() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    for (position, key) in (0..).zip(["first", "second", "third"]) {
        write(&folder, with_key(key), vec![rows(position, 1)]).await.unwrap();
        folder.flush("readings").await.unwrap();
    }
    folder.close().await.unwrap();
    let starts: Vec<usize> = records(&segment(path.path(), "keys")).iter().map(|record| record.start).collect();
    let known: [&[&str]; 4] = [&[], &["first"], &["first", "second"], &["first", "second", "third"]];
    // Without the file, without a record, and within or after one. After each record of keys comes one without keys.
    for (bytes, known) in [
        (None, known[0]),
        (Some(0), known[0]),
        (Some(starts[0]), known[0]),
        (Some(starts[1]), known[1]),
        (Some(starts[4]), known[2]),
        (Some(starts[4] + 30), known[2]),
        (Some(starts[5] + 1), known[3]),
    ] {
        let path = crashed(path.path());
        let keys = segment(path.path(), "keys");
        match bytes {
            Some(bytes) => File::options().write(true).open(&keys).unwrap().set_len(bytes as u64).unwrap(),
            None => fs::remove_file(&keys).unwrap(),
        }
        for round in 0..2 {
            let folder = open(path.path()).await;
            let damage = folder.damage();
            assert!(damage[0].starts_with("keys of writes are lost: "), "{bytes:?}: {damage:?}");
            assert!(damage[0].contains(".tidegate/keys"), "{bytes:?}: {damage:?}");
            for key in known {
                assert!(is_repeat(&folder, key).await, "{bytes:?}: {key}");
            }
            let error = folder.begin(with_key("other")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{bytes:?}: {error}");
            append(&folder, "readings", 3 + round, 1).await;
            folder.close().await.unwrap();
        }
    }
    let folder = open(path.path()).await;
    assert_eq!(folder.damage(), [""; 0]);
    assert!(is_repeat(&folder, "third").await && !is_repeat(&folder, "other").await);
}

#[tokio::test]
async fn lost_keys_are_refused_until_the_last_of_them_would_be_forgotten() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    write(&folder, with_key("lost"), vec![rows(0, 1)]).await.unwrap();
    folder.flush("readings").await.unwrap();
    folder.close().await.unwrap();
    let keys = segment(path.path(), "keys");
    change(&keys, records(&keys)[0].end - 1);
    // Keys are remembered for 24 hours. The time of the file is that of the last one.
    for (hours, is_refused) in [(23, true), (25, false)] {
        let changed = SystemTime::now() - Duration::from_secs(hours * 60 * 60);
        File::options().write(true).open(&keys).unwrap().set_modified(changed).unwrap();
        let folder = open(path.path()).await;
        assert_eq!(folder.damage().is_empty(), !is_refused, "{hours}: {:?}", folder.damage());
        assert_eq!(folder.begin(with_key("lost")).await.is_err(), is_refused, "{hours}");
        folder.close().await.unwrap();
    }
}

#[tokio::test]
async fn the_key_of_a_damaged_record_is_known_if_its_rows_are_in_data_files() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    // The log keeps all records, because the first one is not moved.
    append(&folder, "waiting", 0, 1).await;
    let moved = write(&folder, with_key("moved"), vec![rows(0, 3)]).await.unwrap();
    folder.flush("readings").await.unwrap();
    write(&folder, with_key("in the log"), vec![rows(3, 2)]).await.unwrap();
    append(&folder, "waiting", 1, 1).await;
    let whole = crashed(path.path());
    let damage_and_open = async |record: usize| {
        let path = crashed(whole.path());
        let log = segment(path.path(), "log");
        change(&log, records(&log)[record].end - 1);
        let folder = open(path.path()).await;
        match folder.begin(with_key("moved")).await.unwrap() {
            WriteStart::Repeated(receipt) => assert_eq!(receipt, moved),
            WriteStart::Writer(_) => panic!("the key is forgotten"),
        }
        (path, folder)
    };
    let (_path, folder) = damage_and_open(1).await;
    assert!(folder.closed_tables().is_empty());
    assert_eq!(values(&folder, "readings"), range(0, 5));

    let (path, folder) = damage_and_open(2).await;
    assert!(folder.closed_tables().contains_key("readings"));
    folder.close().await.unwrap();
    fs::remove_file(path.path().join(".tidegate/damaged/readings.json")).unwrap();
    let folder = open(path.path()).await;
    assert!(!is_repeat(&folder, "in the log").await, "its rows are lost, so a repeat stores them");
    assert_eq!(values(&folder, "readings"), range(0, 3));
}
