//! Names, dropped tables, the lock of the folder.

use tempfile::TempDir;
use tidegate_core::ErrorKind;
use tidegate_ingest::{IngestError, IngestFolder, IngestOptions, TableDeclaration};
use tidegate_query::{TableWrite, WriteMode, WriteRequest, WriteTarget, rejected_rows_schema};

use super::fixture::{
    append, open, open_with, options, range, reopen, request, rows, schema, values, values_of, writer,
};

#[tokio::test]
async fn a_second_opening_names_the_holder() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    let error = IngestFolder::open("plant", path.path().to_owned(), options()).await.unwrap_err();
    assert!(matches!(error, IngestError::Locked { .. }));
    assert!(error.to_string().contains(&format!("process {} on ", std::process::id())), "{error}");
    folder.close().await.unwrap();
    open(path.path()).await;
}

/// Commands that only read, such as `tidegate ingest verify`, are soon done.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn opening_waits_for_those_who_read() {
    use super::fixture::POLL;
    let path = TempDir::new().unwrap();
    open(path.path()).await.close().await.unwrap();
    let lock = std::fs::canonicalize(path.path().join(".tidegate/lock")).unwrap();
    let reader = std::fs::File::open(&lock).unwrap();
    reader.lock_shared().unwrap();
    let is_lock = |entry: &std::io::Result<std::fs::DirEntry>| {
        entry.as_ref().is_ok_and(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == lock))
    };
    let is_tried = || std::fs::read_dir("/proc/self/fd").unwrap().filter(is_lock).count() > 1;
    let opening = tokio::spawn(IngestFolder::open("plant", path.path().to_owned(), options()));
    while !is_tried() && !opening.is_finished() {
        tokio::time::sleep(POLL).await;
    }
    drop(reader);
    opening.await.unwrap().unwrap().close().await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_what_is_created() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("data/plant");
    let folder = open_with(&path, IngestOptions { inline_bytes_max: 2000, ..options() }).await;
    append(&folder, "readings", 0, 500).await;
    append(&folder, "readings", 500, 5).await;
    folder.flush("readings").await.unwrap();
    folder.close().await.unwrap();
    let (mut folders, mut files) = (vec![parent.path().join("data")], 0);
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(files > 5, "{files}");
    // What the owner has opened to others stays open.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    open(&path).await.close().await.unwrap();
    assert_eq!(mode(&path), 0o755);
}

#[tokio::test]
async fn names_that_are_no_tables_are_refused() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 1).await;
    for name in ["..", "a/b", "", "a b", "Readings", ".tidegate", &"n".repeat(200)] {
        assert!(folder.begin(request(name, schema())).await.is_err(), "{name}");
        assert!(folder.table(name).await.is_err(), "{name}");
    }
    let error = folder.table("Readings").await.unwrap_err();
    assert_eq!((error.kind(), error.choices()), (ErrorKind::NotFound, &["readings".to_owned()][..]));
    folder.close().await.unwrap();
    let folder = open_with(path.path(), IngestOptions { create_tables: false, ..options() }).await;
    let error = folder.table("reading").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("readings"), "{error}");
    append(&folder, "readings", 1, 1).await;
    assert_eq!(values(&folder, "readings"), range(0, 2));
    folder.close().await.unwrap();
    let error = folder.begin(request("readings", schema())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn no_table_has_the_name_of_a_folder_in_a_delta_table() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    for name in ["_delta_log", "_DELTA_log", "_samples", "_delta_log__rejects"] {
        let error = folder.begin(request(name, schema())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{name}");
        assert!(error.message().contains("choose another one, such as"), "{error}");
        assert!(folder.table(name).await.is_err(), "{name}");
    }
    append(&folder, "_x", 0, 1).await;
    folder.close().await.unwrap();
    let tables = [("_delta_log".to_owned(), TableDeclaration::default())].into();
    let error = IngestFolder::open("plant", path.path().to_owned(), IngestOptions { tables, ..options() }).await;
    assert!(matches!(error.unwrap_err(), IngestError::Declaration { .. }));
}

/// Those of earlier versions, or from a backup.
#[cfg(unix)]
#[tokio::test]
async fn folders_that_other_users_can_open_are_noted() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("plant");
    let notes_with = async |name: &str, mode: u32| {
        set_permissions(path.join(name), Permissions::from_mode(mode)).unwrap();
        let folder = open(&path).await;
        let notes = folder.notes();
        folder.close().await.unwrap();
        notes
    };
    let folder = open(&path).await;
    append(&folder, "readings", 0, 1).await;
    append(&folder, "events", 0, 1).await;
    folder.close().await.unwrap();
    assert_eq!(notes_with("", 0o755).await, [""; 0], "all in it is private");
    for (name, named) in [("events", "events: "), (".tidegate", ".tidegate, events: ")] {
        let notes = notes_with(name, 0o750).await;
        assert_eq!(notes.len(), 1, "{notes:?}");
        let expected = format!("other users can open the folder of the database and, in it, {named}");
        assert!(notes[0].starts_with(&expected) && notes[0].contains("chmod -R go="), "{notes:?}");
    }
    assert_eq!(notes_with("", 0o700).await, [""; 0]);
}

#[tokio::test]
async fn rejected_rows_have_a_table_of_their_own_that_is_not_listed() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    let tables = vec![
        TableWrite { table: "readings".to_owned(), schema: schema() },
        TableWrite { table: "readings__rejects".to_owned(), schema: rejected_rows_schema([]) },
    ];
    let mut writer = writer(&folder, WriteRequest { tables, mode: WriteMode::Replace, key: None }).await;
    writer.write(0, rows(0, 2)).await.unwrap();
    assert_eq!(writer.commit().await.unwrap().rows, [2, 0]);
    assert_eq!(folder.tables(), ["readings"]);
    assert_eq!(folder.view("readings__rejects").unwrap().schema(), &rejected_rows_schema([]));
    assert_eq!(folder.views().len(), 2);
}

#[tokio::test]
async fn a_dropped_table_is_gone_at_once_and_its_files_with_the_last_view() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    folder.flush("readings").await.unwrap();
    append(&folder, "readings", 10, 10).await;
    let view = folder.view("readings").unwrap();
    folder.drop_table("readings").await.unwrap();
    assert!(folder.view("readings").is_none());
    assert!(folder.tables().is_empty());
    assert_eq!(folder.drop_table("readings").await.unwrap_err().kind(), ErrorKind::NotFound);
    let error = folder.begin(request("readings", schema())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(values_of(&view), range(0, 20));
    drop(view);
    folder.maintain().await;
    assert!(!path.path().join("readings").exists());
    append(&folder, "readings", 100, 5).await;
    let folder = reopen(path.path(), folder, options()).await;
    assert_eq!(values(&folder, "readings"), range(100, 105));
    folder.flush("readings").await.unwrap();
    let folder = reopen(path.path(), folder, options()).await;
    assert_eq!(values(&folder, "readings"), range(100, 105));
}

#[tokio::test]
async fn a_table_that_is_dropped_and_created_again_survives_each_restart() {
    let path = TempDir::new().unwrap();
    let mut folder = open_with(path.path(), IngestOptions { inline_bytes_max: 2000, ..options() }).await;
    for round in 0..6 {
        append(&folder, "other", round, 1).await;
        // Small and large writes, moved and not moved, before and after the removal.
        append(&folder, "readings", 0, if round % 2 == 0 { 5 } else { 500 }).await;
        if round % 3 == 0 {
            folder.flush("readings").await.unwrap();
        }
        folder.drop_table("readings").await.unwrap();
        let count = if round % 2 == 1 { 5 } else { 500 };
        append(&folder, "readings", 1000, count).await;
        if round % 3 == 1 {
            folder.flush("readings").await.unwrap();
        }
        folder = reopen(path.path(), folder, IngestOptions { inline_bytes_max: 2000, ..options() }).await;
        assert_eq!(values(&folder, "readings"), range(1000, 1000 + count), "{round}");
        assert_eq!(values(&folder, "other"), range(0, round + 1));
        folder.drop_table("readings").await.unwrap();
    }
    let folder = reopen(path.path(), folder, options()).await;
    assert!(folder.view("readings").is_none());
    assert!(!path.path().join("readings").exists());
}

#[tokio::test]
async fn a_write_to_a_table_that_is_dropped_meanwhile_fails() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 1).await;
    let mut writer = writer(&folder, request("readings", schema())).await;
    writer.write(0, rows(1, 1)).await.unwrap();
    folder.drop_table("readings").await.unwrap();
    let error = writer.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("was dropped"), "{error}");
    assert!(folder.view("readings").is_none());
}
