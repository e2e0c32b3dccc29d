//! Damage of whole files of the log.

use std::fs;

use tempfile::TempDir;
use tidegate_ingest::delta::StopFlag;
use tidegate_ingest::{IngestFolder, IngestOptions, WriteAheadLogOptions, verify_folder};

use super::damaged_files::{change, crashed, segment};
use super::fixture::{append, open, open_with, options, range, values};

/// An id of version 0.1.0, which has no checksum.
const OLD_ID: &str = "tidegate-7735d8fd-1d0d-4a16-84d5-37627292b2b6";

/// A crashed folder with the rows 0 to 10 in data files, and the rows 10 to 15 only in the log.
async fn with_id(id: Option<&str>) -> TempDir {
    let path = TempDir::new().unwrap();
    if let Some(id) = id {
        let log = path.path().join(".tidegate/log");
        fs::create_dir_all(&log).unwrap();
        fs::write(log.join("id"), id).unwrap();
    }
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    folder.flush("readings").await.unwrap();
    append(&folder, "readings", 10, 5).await;
    crashed(path.path())
}

/// Three records in a segment each. The rows of the second, which are those of `events`, are in a data file, too.
async fn three_segments() -> TempDir {
    let path = TempDir::new().unwrap();
    let log = WriteAheadLogOptions { segment_bytes: 200, ..WriteAheadLogOptions::default() };
    let folder = open_with(path.path(), IngestOptions { log, ..options() }).await;
    append(&folder, "readings", 0, 10).await;
    append(&folder, "events", 0, 5).await;
    append(&folder, "readings", 10, 5).await;
    folder.flush("events").await.unwrap();
    crashed(path.path())
}

fn closed(folder: &IngestFolder) -> Vec<String> {
    folder.closed_tables().into_keys().collect()
}

#[tokio::test]
async fn a_folder_in_the_place_of_a_segment_costs_the_tables_that_it_may_have_had() {
    let whole = three_segments().await;
    for (number, costs, remaining) in [
        (1, vec!["readings"], range(10, 15)),
        (2, vec!["readings"], range(0, 15)),
        (3, vec!["events", "readings"], range(0, 10)),
    ] {
        let path = crashed(whole.path());
        let segment = path.path().join(format!(".tidegate/log/{number:020}.log"));
        fs::remove_file(&segment).unwrap();
        fs::create_dir_all(segment.join("inner")).unwrap();
        for _ in 0..2 {
            let folder = open(path.path()).await;
            assert_eq!(closed(&folder), costs, "{number}");
            let reason = &folder.closed_tables()["readings"];
            assert!(reason.contains("a folder is in the place of the file"), "{number}: {reason}");
            assert_eq!(folder.damage().len(), 1, "{number}: it may have created a table");
            if !costs.contains(&"events") {
                append(&folder, "events", 5, 1).await;
            }
            folder.close().await.unwrap();
        }
        assert!(segment.with_extension("aside").join("inner").exists(), "{number}: it is put aside");
        fs::remove_dir_all(path.path().join(".tidegate/damaged")).unwrap();
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), [""; 0], "{number}");
        assert_eq!(values(&folder, "readings"), remaining, "{number}");
        append(&folder, "readings", 100, 1).await;
        append(&folder, "new", 0, 1).await;
    }
}

#[tokio::test]
async fn a_log_without_segments_has_lost_its_rows() {
    let path = with_id(None).await;
    fs::remove_file(segment(path.path(), "log")).unwrap();
    let verified = verify_folder(path.path(), None, &StopFlag::default()).unwrap();
    assert!(verified[0].1.problems.iter().any(|(_, problem)| problem == "its segments are missing"), "{verified:?}");
    for _ in 0..2 {
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), ["readings"]);
        let reason = &folder.closed_tables()["readings"];
        assert!(reason.starts_with("the segments of the log in .tidegate/log are missing; "), "{reason}");
        assert!(folder.damage()[0].starts_with("no table can be created: "), "{:?}", folder.damage());
        folder.close().await.unwrap();
    }
    fs::remove_dir_all(path.path().join(".tidegate/damaged")).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(closed(&folder), [""; 0]);
    append(&folder, "readings", 10, 1).await;
    let path = crashed(path.path());
    assert_eq!(values(&*open(path.path()).await, "readings"), range(0, 11));

    // A crash before the first segment.
    let path = TempDir::new().unwrap();
    fs::create_dir_all(path.path().join(".tidegate/log")).unwrap();
    fs::write(path.path().join(".tidegate/log/id"), OLD_ID).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(folder.damage(), [""; 0]);
    append(&folder, "readings", 0, 1).await;
}

/// With another id, the rows that are in data files already would be stored again.
#[tokio::test]
async fn the_id_of_the_log_survives_damage_of_one_of_its_files() {
    for old in [None, Some(OLD_ID)] {
        let whole = with_id(old).await;
        let log = whole.path().join(".tidegate/log");
        let id = fs::read_to_string(log.join("id")).unwrap();
        assert!(old.is_none_or(|old| id == old), "earlier versions can read it: {id}");
        for (damaged, other) in [("id", "id.copy"), ("id.copy", "id")] {
            let content = fs::read_to_string(log.join(damaged)).unwrap();
            let changed = (0..content.len()).step_by(13).map(|position| {
                let mut bytes = content.clone().into_bytes();
                bytes[position] ^= 0x10;
                bytes
            });
            let digit = content.find(|digit: char| digit.is_ascii_digit()).unwrap();
            let other_digit = [&content[..digit], "a", &content[digit + 1..]].concat().into_bytes();
            for bytes in changed.chain([other_digit, Vec::new(), b"another file".to_vec()]) {
                let path = crashed(whole.path());
                let file = |name: &str| path.path().join(".tidegate/log").join(name);
                let context = format!("{damaged}: {}", String::from_utf8_lossy(&bytes));
                fs::write(file(damaged), bytes).unwrap();
                let verified = verify_folder(path.path(), None, &StopFlag::default()).unwrap();
                assert_eq!((verified[0].1.file_rows, verified[0].1.log_rows), (10, 5), "{context}");
                let folder = open(path.path()).await;
                assert_eq!(values(&folder, "readings"), range(0, 15), "{context}");
                folder.close().await.unwrap();
                assert_eq!(fs::read_to_string(file(damaged)).unwrap(), content);
                fs::remove_file(file(other)).unwrap();
                let folder = open(path.path()).await;
                assert_eq!(values(&folder, "readings"), range(0, 15), "{context}");
                folder.close().await.unwrap();
            }
        }
        let path = crashed(whole.path());
        for name in ["id", "id.copy"] {
            change(&path.path().join(".tidegate/log").join(name), 0);
        }
        let refused = IngestFolder::open("plant", path.path().to_owned(), options()).await;
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(".tidegate/log/id: it is damaged, and id.copy is damaged"), "{error}");
    }
}
