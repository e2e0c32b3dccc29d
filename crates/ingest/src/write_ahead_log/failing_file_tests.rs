//! A disk that fails: what was acknowledged stays, and what failed leaves nothing.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;

use super::segment::{LogFile, open_log_file};
use super::{WriteAheadLog, WriteAheadLogError, WriteAheadLogOptions};

/// The disk of a test.
#[derive(Debug)]
struct Disk {
    /// Bytes that can still be written.
    space: AtomicU64,
    sync_fails: AtomicBool,
}

struct DiskFile {
    file: Box<dyn LogFile>,
    disk: Arc<Disk>,
}

impl LogFile for DiskFile {
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let space = self.disk.space.load(Ordering::SeqCst) as usize;
        if space == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // One part at a time, and never more than fits: a full disk writes a part of a record.
        let part = parts.iter().find(|part| !part.is_empty()).expect("there is a part");
        let written = self.file.write_vectored(&[IoSlice::new(&part[..part.len().min(space)])])?;
        self.disk.space.fetch_sub(written as u64, Ordering::SeqCst);
        Ok(written)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.disk.sync_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        self.file.sync()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }
}

fn open(folder: &Path, disk: &Arc<Disk>) -> (WriteAheadLog, Vec<Bytes>) {
    try_open(folder, disk).expect("it opens")
}

fn try_open(folder: &Path, disk: &Arc<Disk>) -> Result<(WriteAheadLog, Vec<Bytes>), WriteAheadLogError> {
    let mut records = Vec::new();
    let disk = disk.clone();
    let open_file = move |path: &Path| {
        let file = open_log_file(path)?;
        Ok(Box::new(DiskFile { file, disk: disk.clone() }) as Box<dyn LogFile>)
    };
    let replay = |_, record| {
        records.push(record);
        Ok::<(), Infallible>(())
    };
    let log = WriteAheadLog::open_with(folder, WriteAheadLogOptions::default(), Box::new(open_file), replay)?;
    Ok((log, records))
}

#[tokio::test]
async fn a_full_disk_refuses_a_record_whole_and_the_log_remains_usable() {
    let folder = tempfile::tempdir().expect("a folder");
    // The record fits up to each byte but the last.
    for space in 0..40 {
        let path = folder.path().join(space.to_string());
        let disk = Arc::new(Disk { space: 1000.into(), sync_fails: false.into() });
        let (log, _) = open(&path, &disk);
        assert_eq!(log.append(vec![Bytes::from_static(b"first")]).await.expect("there is space"), 1);
        disk.space.store(space, Ordering::SeqCst);
        let refused = log.append(vec![Bytes::from_static(b"does not"), Bytes::from_static(b" fit in")]).await;
        if space < 39 {
            assert!(matches!(refused, Err(WriteAheadLogError::NoSpace { .. })), "{space}: {refused:?}");
        }
        disk.space.store(1000, Ordering::SeqCst);
        let expected_sequence = if space < 39 { 2 } else { 3 };
        assert_eq!(log.append(vec![Bytes::from_static(b"later")]).await.expect("space"), expected_sequence);
        log.close().await;
        let (log, records) = open(&path, &disk);
        assert_eq!(records.first().expect("a record"), "first");
        assert_eq!(records.last().expect("a record"), "later");
        assert_eq!(records.len() as u64, expected_sequence);
        log.close().await;
    }
}

#[tokio::test]
async fn after_a_failed_sync_the_log_refuses_everything_until_it_is_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(Disk { space: 1000.into(), sync_fails: true.into() });
    let (log, _) = open(folder.path(), &disk);
    let failed = log.append(vec![Bytes::from_static(b"a")]).await;
    assert!(matches!(failed, Err(WriteAheadLogError::Failed { .. })), "{failed:?}");
    disk.sync_fails.store(false, Ordering::SeqCst);
    let refused = log.append(vec![Bytes::from_static(b"b")]).await;
    assert!(matches!(refused, Err(WriteAheadLogError::Failed { .. })), "{refused:?}");
    assert!(matches!(log.release(1).await, Err(WriteAheadLogError::Failed { .. })));
    log.close().await;
    let (log, records) = open(folder.path(), &disk);
    // What the failed record became is unknown, but the refused one is not there.
    assert!(records.iter().all(|record| record == "a"));
    assert_eq!(log.append(vec![Bytes::from_static(b"c")]).await.expect("it works again"), records.len() as u64 + 1);
    log.close().await;
}

/// A process that is killed before its sync leaves them to the system.
#[tokio::test]
async fn records_are_on_disk_before_a_log_is_open_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(Disk { space: 1000.into(), sync_fails: false.into() });
    let (log, _) = open(folder.path(), &disk);
    assert_eq!(log.append(vec![Bytes::from_static(b"a")]).await.expect("there is space"), 1);
    log.close().await;
    disk.sync_fails.store(true, Ordering::SeqCst);
    let failed = try_open(folder.path(), &disk);
    assert!(matches!(failed, Err(WriteAheadLogError::Io { .. })), "{:?}", failed.err());
    disk.sync_fails.store(false, Ordering::SeqCst);
    assert_eq!(open(folder.path(), &disk).1, ["a"]);
}
