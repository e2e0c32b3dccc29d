//! Full memory, full log, a disk that fails.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;

use tempfile::TempDir;
use tidegate_core::ErrorKind;
use tidegate_ingest::{IngestOptions, WriteAheadLogOptions};

use super::fixture::{append, open_with, options, range, reopen, request, rows, schema, values, write};

fn little_memory() -> IngestOptions {
    IngestOptions { waiting_bytes_max: 64 << 10, ..options() }
}

#[tokio::test]
async fn writes_wait_for_memory_and_none_is_lost() {
    let path = TempDir::new().unwrap();
    let folder = open_with(path.path(), little_memory()).await;
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let folder = folder.clone();
            tokio::spawn(async move {
                append(&folder, "readings", number * 1000, 400).await;
                let waiting: u64 = folder.status().iter().map(|status| status.waiting_bytes).sum();
                assert!(waiting <= 64 << 10, "{waiting}");
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(values(&folder, "readings").len(), 40 * 400);
    assert!(folder.counters().flushes.load(Ordering::Relaxed) > 3);
}

#[tokio::test]
async fn when_rows_cannot_be_moved_writes_are_refused_and_later_nothing_is_missing() {
    let path = TempDir::new().unwrap();
    let folder = open_with(path.path(), little_memory()).await;
    // A file where the folder of the table belongs.
    fs::write(path.path().join("readings"), "in the way").unwrap();
    let mut stored = 0;
    let error = loop {
        match write(&folder, request("readings", schema()), vec![rows(stored * 400, 400)]).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("cannot be moved to their tables"), "{error}");
    assert!(stored > 0);
    let last_error = folder.status()[0].last_error.clone().unwrap();
    assert!(!last_error.contains(path.path().to_str().unwrap()), "{last_error}");
    assert_eq!(error.detail().unwrap(), format!("rows of table \"readings\" wait: {last_error}"));
    assert_eq!(values(&folder, "readings"), range(0, stored * 400));
    let folder = reopen(path.path(), folder, little_memory()).await;
    assert!(folder.flush("readings").await.is_err());
    // The table is closed, and the log keeps its rows.
    folder.close().await.unwrap();
    fs::remove_file(path.path().join("readings")).unwrap();
    let folder = open_with(path.path(), little_memory()).await;
    assert_eq!(values(&folder, "readings"), range(0, stored * 400));
    folder.flush("readings").await.unwrap();
    append(&folder, "readings", stored * 400, 400).await;
    assert_eq!(values(&folder, "readings"), range(0, (stored + 1) * 400));
    assert_eq!(folder.status()[0].last_error, None);
}

#[tokio::test]
async fn a_full_log_refuses_writes_until_rows_are_moved() {
    let path = TempDir::new().unwrap();
    let log = WriteAheadLogOptions { segment_bytes: 4096, bytes_max: 30_000 };
    let folder = open_with(path.path(), IngestOptions { log, ..options() }).await;
    let mut stored = 0;
    let error = loop {
        match write(&folder, request("readings", schema()), vec![rows(stored * 100, 100)]).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("nothing was stored"), "{error}");
    assert_eq!(error.detail().unwrap(), "rows of table \"readings\" wait: they are being moved");
    folder.flush("readings").await.unwrap();
    append(&folder, "readings", stored * 100, 100).await;
    assert_eq!(values(&folder, "readings"), range(0, (stored + 1) * 100));
}

/// A file system of 6 MiB in memory.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` if the tests may not mount file systems.
    fn mount() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(folder.path()).output();
        mount.is_ok_and(|output| output.status.success()).then(|| Self(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("plant")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_keeps_what_was_acknowledged() {
    // Without the right to mount, the test of the log with a disk that fails remains.
    let Some(disk) = SmallDisk::mount() else { return };
    let options = IngestOptions { inline_bytes_max: 200_000, ..options() };
    let mut folder = open_with(&disk.path(), options.clone()).await;
    for count in [2000, 20_000] {
        let filler = disk.0.path().join("filler");
        let table = format!("readings_{count}");
        let mut stored = 0;
        let error = loop {
            match write(&folder, request(&table, schema()), vec![rows(stored * count, count)]).await {
                Ok(_) => stored += 1,
                Err(error) => break error,
            }
            // The disk fills from elsewhere too.
            let more = vec![1; 100_000];
            let _ = fs::write(filler.with_extension(stored.to_string()), more);
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("nothing was stored"), "{error}");
        assert_eq!(values(&folder, &table), range(0, stored * count));
        folder = reopen(&disk.path(), folder, options.clone()).await;
        assert_eq!(values(&folder, &table), range(0, stored * count));
        for entry in fs::read_dir(disk.0.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::remove_file(path).unwrap();
            }
        }
        folder.flush(&table).await.unwrap();
        write(&folder, request(&table, schema()), vec![rows(stored * count, count)]).await.unwrap();
        assert_eq!(values(&folder, &table), range(0, (stored + 1) * count));
        folder.flush(&table).await.unwrap();
    }
    folder.close().await.unwrap();
}
