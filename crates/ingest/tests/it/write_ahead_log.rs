//! What a log returns after it was closed, cut, damaged or released.

use std::convert::Infallible;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_ingest::{WriteAheadLog, WriteAheadLogError, WriteAheadLogOptions};

type Records = Vec<(u64, Bytes)>;

/// The bytes of the header of a segment, of that of a record, and of the mark behind records that share a sync.
const HEADER_BYTES: usize = 32;
const RECORD_HEADER_BYTES: usize = 24;
const MARK_BYTES: usize = 24;

fn open_with(folder: &Path, options: WriteAheadLogOptions) -> Result<(WriteAheadLog, Records), WriteAheadLogError> {
    let mut records = Vec::new();
    let log = WriteAheadLog::open(folder, options, |sequence, record| {
        records.push((sequence, record));
        Ok::<(), Infallible>(())
    })?;
    Ok((log, records))
}

fn open(folder: &Path) -> Result<(WriteAheadLog, Records), WriteAheadLogError> {
    open_with(folder, WriteAheadLogOptions::default())
}

fn small_segments() -> WriteAheadLogOptions {
    WriteAheadLogOptions { segment_bytes: 200, ..WriteAheadLogOptions::default() }
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
    segments.sort();
    segments
}

async fn append(log: &WriteAheadLog, text: &str) -> u64 {
    log.append(vec![Bytes::copy_from_slice(text.as_bytes())]).await.unwrap()
}

async fn log_of(folder: &Path, options: WriteAheadLogOptions, records: &[String]) {
    let (log, _) = open_with(folder, options).unwrap();
    for record in records {
        append(&log, record).await;
    }
    log.close().await;
}

#[tokio::test]
async fn records_are_replayed_in_order_and_the_counter_goes_on() {
    let folder = TempDir::new().unwrap();
    let (log, records) = open(folder.path()).unwrap();
    assert!(records.is_empty());
    assert_eq!(log.oldest_sequence(), None);
    assert_eq!(append(&log, "one").await, 1);
    assert_eq!(log.append(vec![Bytes::from_static(b"t"), Bytes::new(), Bytes::from_static(b"wo")]).await.unwrap(), 2);
    assert_eq!(log.append(Vec::new()).await.unwrap(), 3);
    assert_eq!(log.oldest_sequence(), Some(1));
    log.close().await;
    assert!(matches!(log.append(Vec::new()).await, Err(WriteAheadLogError::Closed)));
    let (log, records) = open(folder.path()).unwrap();
    assert_eq!(records, [(1, Bytes::from("one")), (2, Bytes::from("two")), (3, Bytes::new())]);
    assert_eq!(log.last_sequence(), 3);
    assert_eq!(append(&log, "four").await, 4);
}

#[tokio::test]
async fn concurrent_records_are_acknowledged_in_the_order_of_their_actions() {
    let folder = TempDir::new().unwrap();
    let (log, _) =
        open_with(folder.path(), WriteAheadLogOptions { segment_bytes: 2000, ..WriteAheadLogOptions::default() })
            .unwrap();
    let log = Arc::new(log);
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let (log, order) = (log.clone(), order.clone());
            tokio::spawn(async move {
                let order_then = order.clone();
                let payload = vec![Bytes::from(format!("record {number}"))];
                let action = move |sequence| order_then.lock().unwrap().push(sequence);
                let sequence = log.append_with(payload, action).await.unwrap();
                assert!(order.lock().unwrap().contains(&sequence));
                (sequence, format!("record {number}"))
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for task in tasks {
        let (sequence, text) = task.await.unwrap();
        acknowledged.push((sequence, Bytes::from(text)));
    }
    acknowledged.sort();
    assert_eq!(*order.lock().unwrap(), (1..=200).collect::<Vec<u64>>());
    log.close().await;
    let (_, records) = open(folder.path()).unwrap();
    assert_eq!(records, acknowledged);
}

#[tokio::test]
async fn released_segments_are_deleted_and_the_counter_survives_an_empty_log() {
    let folder = TempDir::new().unwrap();
    let records: Vec<String> = (1..=20).map(|number| format!("record {number:030}")).collect();
    log_of(folder.path(), small_segments(), &records).await;
    assert!(segments(folder.path()).len() > 5);
    let (log, replayed) = open_with(folder.path(), small_segments()).unwrap();
    assert_eq!(replayed.len(), 20);
    let bytes = log.bytes();
    assert_eq!(bytes, segments(folder.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>());
    log.release(10).await.unwrap();
    assert!(log.bytes() < bytes);
    let oldest = log.oldest_sequence().unwrap();
    assert!((2..=11).contains(&oldest), "{oldest}");
    log.release(20).await.unwrap();
    assert_eq!(log.oldest_sequence(), None);
    assert_eq!(segments(folder.path()).len(), 1);
    log.close().await;
    let (log, replayed) = open(folder.path()).unwrap();
    assert!(replayed.is_empty());
    assert_eq!(append(&log, "next").await, 21);
}

#[tokio::test]
async fn a_second_opening_is_refused() {
    let folder = TempDir::new().unwrap();
    let (log, _) = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(WriteAheadLogError::Locked { .. })));
    log.close().await;
    assert!(open(folder.path()).is_ok());
}

#[tokio::test]
async fn a_log_above_its_bound_refuses_records_until_some_are_released() {
    let folder = TempDir::new().unwrap();
    let options = WriteAheadLogOptions { bytes_max: 300, ..small_segments() };
    let (log, _) = open_with(folder.path(), options).unwrap();
    let large = "x".repeat(150);
    append(&log, &large).await;
    let refused = log.append(vec![Bytes::from(large.clone())]).await;
    assert!(matches!(refused, Err(WriteAheadLogError::Full { bytes_max: 300, .. })), "{refused:?}");
    log.release(1).await.unwrap();
    assert_eq!(append(&log, &large).await, 2);
}

/// A log of two segments whose last one is `end`, and the records of the first.
struct CutLog {
    folder: TempDir,
    last: PathBuf,
    end: Vec<u8>,
    before: usize,
    all: Records,
}

async fn cut_log(records: &[String]) -> CutLog {
    let folder = TempDir::new().unwrap();
    log_of(folder.path(), small_segments(), &["first".repeat(40), "second".repeat(30)]).await;
    log_of(folder.path(), WriteAheadLogOptions::default(), records).await;
    let (_, all) = open(folder.path()).unwrap();
    let last = segments(folder.path()).pop().unwrap();
    let first: u64 = last.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    CutLog { last: last.clone(), end: fs::read(last).unwrap(), before: first as usize - 1, folder, all }
}

impl CutLog {
    /// Where the records of the last segment begin and end. A mark follows each.
    fn records(&self) -> Vec<Range<usize>> {
        let mut start = HEADER_BYTES;
        let of_last = self.all[self.before..].iter().map(|(_, record)| {
            let record = start..start + RECORD_HEADER_BYTES + record.len();
            start = record.end + MARK_BYTES;
            record
        });
        of_last.collect()
    }

    /// How many records are complete if the last segment has only its first `bytes`.
    fn complete(&self, bytes: usize) -> usize {
        self.before + self.records().iter().take_while(|record| record.end <= bytes).count()
    }

    /// The last segment ends after `bytes`, or goes on with zeros or other bytes there.
    fn check_cut_at(&self, bytes: usize) {
        let (cut, complete) = (&self.end[..bytes], self.complete(bytes));
        self.check(cut, complete);
        if bytes < HEADER_BYTES {
            return;
        }
        let zeros = [cut, &[0; 100]].concat();
        // The rest of a record may be zeros too, and then it is complete.
        let equal = zeros.iter().zip(&self.end).take_while(|(cut, whole)| cut == whole).count();
        self.check(&zeros, self.complete(equal));
        let garbage: Vec<u8> = (0..90).map(|number: u8| number.wrapping_mul(37).wrapping_add(11)).collect();
        self.check(&[cut, &garbage[..]].concat(), complete);
    }

    /// Opens the log with this content of the last segment, twice, as the first opening changes the file.
    fn check(&self, content: &[u8], complete: usize) {
        fs::write(&self.last, content).unwrap();
        for _ in 0..2 {
            let (_, records) = open_until_unlocked(self.folder.path()).unwrap();
            assert_eq!(records, self.all[..complete], "{} bytes", content.len());
        }
    }
}

/// The lock of a dropped log is released a moment later, when its thread ends.
fn open_until_unlocked(folder: &Path) -> Result<(WriteAheadLog, Records), WriteAheadLogError> {
    loop {
        match open(folder) {
            Err(WriteAheadLogError::Locked { .. }) => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

/// With several logs at once, because each check waits for the disk.
#[tokio::test]
async fn a_log_that_was_cut_at_any_byte_has_exactly_the_complete_records() {
    const PARTS: usize = 8;
    let records: Vec<String> = (0..12).map(|number| "ab".repeat(number)).collect();
    let mut logs = Vec::new();
    for _ in 0..PARTS {
        logs.push(cut_log(&records).await);
    }
    std::thread::scope(|scope| {
        for (part, log) in logs.iter().enumerate() {
            scope.spawn(move || (part..=log.end.len()).step_by(PARTS).for_each(|bytes| log.check_cut_at(bytes)));
        }
    });
}

#[tokio::test]
async fn a_record_after_a_cut_is_found_again() {
    let records = ["one".to_owned(), "two".to_owned()];
    let log = cut_log(&records).await;
    fs::write(&log.last, &log.end[..log.end.len() - MARK_BYTES - 1]).unwrap();
    let (opened, before) = open_until_unlocked(log.folder.path()).unwrap();
    assert_eq!(append(&opened, "three").await, before.len() as u64 + 1);
    opened.close().await;
    let (_, after) = open(log.folder.path()).unwrap();
    assert_eq!(after.last().unwrap().1, "three");
    assert_eq!(after.len(), before.len() + 1);
}

#[tokio::test]
async fn damage_of_an_acknowledged_record_is_an_error_with_file_and_offset() {
    let records: Vec<String> = (0..4).map(|number| format!("record {number}")).collect();
    let log = cut_log(&records).await;
    let places = log.records();
    for position in HEADER_BYTES..log.end.len() {
        let mut content = log.end.clone();
        content[position] ^= 0x40;
        fs::write(&log.last, &content).unwrap();
        let is_in_record = places.iter().any(|record| record.contains(&position));
        match open_until_unlocked(log.folder.path()) {
            Err(WriteAheadLogError::Damaged { file, offset, .. }) if is_in_record => {
                assert_eq!(file, log.last);
                assert_eq!(log.complete(offset as usize), log.complete(position), "{position}");
                assert!(offset as usize <= position);
                assert_eq!(fs::read(&log.last).unwrap(), content, "a damaged file is left as it is");
            }
            Ok((_, found)) if !is_in_record => assert_eq!(found, log.all, "{position}: a damaged mark costs nothing"),
            other => panic!("{position}: {other:?}"),
        }
    }
}

/// The record of a crash of the system before the sync may have its whole length.
#[tokio::test]
async fn a_changed_end_without_a_mark_is_cut_off() {
    let records: Vec<String> = (0..4).map(|number| format!("record {number}")).collect();
    let log = cut_log(&records).await;
    let last = log.records().pop().unwrap();
    for position in last.clone() {
        let mut content = log.end[..last.end].to_vec();
        content[position] ^= 0x40;
        log.check(&content, log.complete(last.start));
    }
}

#[tokio::test]
async fn damage_in_an_earlier_segment_and_a_missing_segment_are_errors() {
    let folder = TempDir::new().unwrap();
    let records: Vec<String> = (0..3).map(|number| format!("{number}").repeat(190)).collect();
    log_of(folder.path(), small_segments(), &records).await;
    let files = segments(folder.path());
    assert_eq!(files.len(), 3);
    let content = fs::read(&files[1]).unwrap();
    let without_mark = content.len() - MARK_BYTES;
    for changed in [&content[..without_mark - 1], &content[..40], &content[..32], &content[..10], &[]] {
        fs::write(&files[1], changed).unwrap();
        assert!(
            matches!(open_until_unlocked(folder.path()), Err(WriteAheadLogError::Damaged { .. })),
            "{}",
            changed.len()
        );
    }
    fs::remove_file(&files[1]).unwrap();
    let error = open_until_unlocked(folder.path()).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

#[tokio::test]
async fn a_newer_version_and_a_refused_record_are_errors() {
    let folder = TempDir::new().unwrap();
    log_of(folder.path(), WriteAheadLogOptions::default(), &["one".to_owned()]).await;
    let refused =
        WriteAheadLog::open(folder.path(), WriteAheadLogOptions::default(), |_, _| Err(std::io::Error::other("no")));
    assert!(matches!(refused, Err(WriteAheadLogError::Replay { sequence: 1, .. })), "{refused:?}");
    let file = segments(folder.path()).pop().unwrap();
    let mut content = fs::read(&file).unwrap();
    content[8] = 2;
    let checksum = crc32fast::hash(&content[..28]);
    content[28..32].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&file, content).unwrap();
    assert!(matches!(open(folder.path()), Err(WriteAheadLogError::Version { version: 2, supported: 1, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Any records, in segments of any size, cut at any byte of the last segment.
    #[test]
    fn any_records_survive_a_cut(
        records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..30),
        segment_bytes in 40_u64..2000,
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = TempDir::new().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let records: Vec<Bytes> = records.into_iter().map(Bytes::from).collect();
        runtime.block_on(async {
            let options = WriteAheadLogOptions { segment_bytes, ..WriteAheadLogOptions::default() };
            let (log, _) = open_with(folder.path(), options).unwrap();
            for record in &records {
                log.append(vec![record.clone()]).await.unwrap();
            }
            log.close().await;
        });
        let last = segments(folder.path()).pop().unwrap();
        let content = fs::read(&last).unwrap();
        let bytes = cut.index(content.len() + 1);
        fs::write(&last, &content[..bytes]).unwrap();
        let first: usize = last.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        let mut next = HEADER_BYTES;
        let is_complete = |record: &&Bytes| {
            let end = next + RECORD_HEADER_BYTES + record.len();
            next = end + MARK_BYTES;
            end <= bytes
        };
        let complete = first - 1 + records[first - 1..].iter().take_while(is_complete).count();
        let (_, replayed) = open(folder.path()).unwrap();
        let replayed: Vec<Bytes> = replayed.into_iter().map(|(_, record)| record).collect();
        prop_assert_eq!(&replayed[..], &records[..complete]);
    }
}
