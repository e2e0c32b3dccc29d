//! Damage of whole files of the log.

use std::fs;

use tempfile::TempDir;
use tidegate_ingest::delta::StopFlag;
use tidegate_ingest::{IngestFolder, verify_folder};

use super::damaged_files::{change, crashed};
use super::fixture::{append, open, options, range, values};

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
