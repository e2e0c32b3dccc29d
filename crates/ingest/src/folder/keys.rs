//! Keys of writes, so that a repeated write stores nothing and returns the first receipt.
//!
//! The key of a write is in its record of the write-ahead log. Before that record is released, the key moves to a log of
//! its own, whose segments are released when all their keys are too old.
//!
//! After each record of keys comes an empty one, and a file beside the log has the number of the last record. So a damaged
//! record of keys is never taken for an incomplete end, and a log that was cut short is recognised. Until lost keys would be
//! too old, a write with a key that is not known may be a repeat, and is refused.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_core::private_file;
use tidegate_query::WriteReceipt;

use super::IngestError;
use super::checked_file::{self, FileContent};
use crate::write_ahead_log::{
    LostRecords, RecoveredRecord, WriteAheadLog, WriteAheadLogError, WriteAheadLogOptions, list_segments,
};

/// Bytes of a segment of the keys.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Bytes of all segments of the keys.
const BYTES_MAX: u64 = 1 << 30;
/// Keys in one record.
const RECORD_KEYS_MAX: usize = 10_000;
/// The payload of a record without keys.
const NO_KEYS: &[u8] = b"[]";
/// The name of the file beside the log.
const STATE_FILE: &str = "state";

/// A key with what its write stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredKey {
    pub(crate) key: Arc<str>,
    pub(crate) sequence: u64,
    pub(crate) rows: Vec<u64>,
    /// Milliseconds since 1970.
    pub(crate) time_ms: i64,
}

/// What is known about a key.
#[derive(Debug)]
pub(crate) enum KeyState {
    /// A write with it was stored.
    Stored(WriteReceipt),
    /// A write with it is running.
    Running,
    /// Nothing: the caller has it now, until [`KeyTable::finish`].
    New,
    /// Unknown, because keys are lost, and why they are.
    Lost(String),
}

/// Keys that cannot be read any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LostKeys {
    /// What is damaged, and what the owner can do.
    reason: String,
    /// The last record of the log that is lost.
    record: u64,
    /// No lost key was stored after this time, in milliseconds since 1970.
    time_ms: i64,
}

/// What the file beside the log of keys has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct KeyLogState {
    /// The last record of the log that is known to be on disk.
    last_record: u64,
    /// The loss that was found last. It stays until the next one, as its records stay for a while.
    lost: Option<LostKeys>,
}

/// The keys in memory.
#[derive(Debug)]
pub(crate) struct KeyTable {
    age_max_ms: i64,
    keys_max: usize,
    stored: HashMap<Arc<str>, StoredKey>,
    /// The stored keys, oldest first.
    order: VecDeque<(Arc<str>, u64)>,
    running: HashSet<Arc<str>>,
    /// Keys that are in the write-ahead log only, by sequence number.
    unsaved: VecDeque<StoredKey>,
    lost: Option<LostKeys>,
}

impl KeyTable {
    pub(crate) fn new(age_max: Duration, keys_max: usize) -> Self {
        Self {
            age_max_ms: i64::try_from(age_max.as_millis()).unwrap_or(i64::MAX),
            keys_max,
            stored: HashMap::new(),
            order: VecDeque::new(),
            running: HashSet::new(),
            unsaved: VecDeque::new(),
            lost: None,
        }
    }

    /// Why writes with unknown keys are refused, if they are.
    pub(crate) fn loss(&self) -> Option<&str> {
        let is_recent = |lost: &&LostKeys| now_ms() < lost.time_ms.saturating_add(self.age_max_ms);
        self.lost.as_ref().filter(is_recent).map(|lost| lost.reason.as_str())
    }

    /// Looks a key up, and notes that a write with it is running if it is new.
    pub(crate) fn start(&mut self, key: &Arc<str>) -> KeyState {
        self.forget_old(now_ms());
        if let Some(stored) = self.stored.get(key) {
            return KeyState::Stored(WriteReceipt { sequence: stored.sequence, rows: stored.rows.clone() });
        }
        if let Some(reason) = self.loss() {
            return KeyState::Lost(reason.to_owned());
        }
        match self.running.insert(key.clone()) {
            true => KeyState::New,
            false => KeyState::Running,
        }
    }

    /// The write with this key is over.
    pub(crate) fn finish(&mut self, key: &str) {
        self.running.remove(key);
    }

    /// Remembers the key of a write that is in the write-ahead log.
    pub(crate) fn store(&mut self, key: StoredKey) {
        self.unsaved.push_back(key.clone());
        self.restore(key);
    }

    /// Remembers a key that is in the log of keys.
    fn restore(&mut self, key: StoredKey) {
        self.order.push_back((key.key.clone(), key.sequence));
        self.stored.insert(key.key.clone(), key);
        self.forget_old(now_ms());
    }

    fn forget_old(&mut self, now_ms: i64) {
        while let Some((key, sequence)) = self.order.front() {
            // A key that was stored again later has a second entry.
            let current = self.stored.get(key).filter(|stored| stored.sequence == *sequence);
            let is_old = current.is_some_and(|stored| now_ms.saturating_sub(stored.time_ms) >= self.age_max_ms);
            if current.is_some() && !is_old && self.stored.len() <= self.keys_max {
                return;
            }
            if current.is_some() {
                self.stored.remove(key);
            }
            self.order.pop_front();
        }
    }

    /// Takes the keys that must be saved before records up to `up_to` are released.
    fn take_unsaved(&mut self, up_to: u64) -> Vec<StoredKey> {
        let count = self.unsaved.iter().take_while(|key| key.sequence <= up_to).count();
        self.unsaved.drain(..count.min(RECORD_KEYS_MAX)).collect()
    }

    fn put_back_unsaved(&mut self, keys: Vec<StoredKey>) {
        keys.into_iter().rev().for_each(|key| self.unsaved.push_front(key));
    }
}

/// The log of keys.
#[derive(Debug)]
pub(crate) struct KeyLog {
    log: WriteAheadLog,
    /// The records with the time of their newest key.
    records: VecDeque<(u64, i64)>,
    age_max_ms: i64,
    state_file: PathBuf,
    state: KeyLogState,
    /// Whether the file has an earlier state.
    is_file_stale: bool,
}

/// A time after which no lost key was stored: that of its file, or now if it was in another one.
fn last_written_ms(lost: &LostRecords) -> i64 {
    if lost.payloads.is_empty() {
        return now_ms();
    }
    let written = std::fs::metadata(&lost.file).and_then(|file| file.modified()).ok();
    let since = written.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).map_or_else(now_ms, |time| time.min(now_ms()))
}

impl LostKeys {
    /// `damage`: what is damaged in `folder`, without the folder of the database.
    fn new(folder: &Path, damage: &str, record: u64, time_ms: i64) -> Self {
        let folder = below_root(folder, folder);
        let reason = format!(
            "keys of writes are lost: {damage}. Until they would expire, writes with other keys than those that remain are \
             refused, because their rows may be stored already. To forget all keys now, stop the server, delete the folder \
             {} in the folder of the database, and start the server",
            folder.display()
        );
        Self { reason, record, time_ms }
    }

    fn of_records(folder: &Path, lost: &LostRecords, time_ms: i64) -> Self {
        let LostRecords { file, offset, problem, sequences, .. } = lost;
        let file = below_root(folder, file).display();
        Self::new(folder, &format!("{file} is damaged at byte {offset} ({problem})"), *sequences.end(), time_ms)
    }
}

/// A path in the log of keys `folder`, as callers read it.
fn below_root<'a>(folder: &Path, path: &'a Path) -> &'a Path {
    let root = folder.parent().and_then(Path::parent).unwrap_or(folder);
    path.strip_prefix(root).unwrap_or(path)
}

impl KeyLogState {
    fn read(path: &Path) -> Result<Self, IngestError> {
        let known = match checked_file::read(path)? {
            FileContent::Missing => return Ok(Self::default()),
            FileContent::Text(text) => serde_json::from_str(&text).ok(),
            FileContent::Damaged => None,
        };
        if known.is_none() {
            let file = path.display();
            tracing::warn!(%file, "a file is damaged, so that it is unknown whether the newest keys of writes are lost");
        }
        Ok(known.unwrap_or_default())
    }

    /// Without the file, a log that is cut short is not recognised, and a loss is taken for a new one after a restart.
    fn write(&self, path: &Path) {
        // Strings and numbers always have a JSON form.
        let text = serde_json::to_string(self).unwrap_or_default();
        if let Err(error) = checked_file::write(path, &text) {
            tracing::warn!(file = %path.display(), %error, "the state of the log of keys could not be written");
        }
    }
}

impl KeyLog {
    /// Opens the log of keys in `folder`, and adds its keys to `keys`.
    pub(crate) fn open(folder: &Path, keys: &mut KeyTable) -> Result<Self, IngestError> {
        private_file::create_folder(folder).map_err(IngestError::io("create", folder))?;
        let state_file = folder.join(STATE_FILE);
        let mut state = KeyLogState::read(&state_file)?;
        if state.last_record > 0 && list_segments(folder)?.is_empty() {
            let damage = format!("the segments of the log in {} are missing", below_root(folder, folder).display());
            state.lost = Some(LostKeys::new(folder, &damage, state.last_record, now_ms()));
            // Written before there is a segment again, which looks like that of a log whose keys were all too old.
            state.write(&state_file);
        }
        let (mut records, mut found) = (VecDeque::new(), None::<LostKeys>);
        let options = WriteAheadLogOptions { segment_bytes: SEGMENT_BYTES, bytes_max: BYTES_MAX };
        let log = WriteAheadLog::open_damaged(folder, options, state.last_record, |record| match record {
            RecoveredRecord::Whole { sequence, payload } => {
                let saved: Vec<StoredKey> =
                    serde_json::from_slice(&payload).map_err(|error| WriteAheadLogError::replay(sequence, error))?;
                records.push_back((sequence, newest_time(&saved)));
                saved.into_iter().for_each(|key| keys.restore(key));
                Ok(())
            }
            RecoveredRecord::Lost(lost) => {
                // It may have been found by an earlier start.
                let known = state.lost.as_ref().filter(|known| known.record >= *lost.sequences.end());
                let lost_ms = known.map_or(i64::MAX, |known| known.time_ms).min(last_written_ms(&lost));
                records.push_back((*lost.sequences.end(), lost_ms));
                let has_none = |payload: &Bytes| payload.len() == NO_KEYS.len();
                if lost.payloads.is_empty() || !lost.payloads.iter().all(has_none) {
                    let time_ms = found.as_ref().map_or(lost_ms, |found| found.time_ms.max(lost_ms));
                    found = Some(LostKeys::of_records(folder, &lost, time_ms));
                }
                Ok(())
            }
        })?;
        let is_newest = |found: &LostKeys| state.lost.as_ref().is_none_or(|known| found.record >= known.record);
        if let Some(found) = found.filter(is_newest)
            && state.lost.as_ref() != Some(&found)
        {
            state.lost = Some(found);
            state.write(&state_file);
        }
        keys.lost = state.lost.clone();
        Ok(Self { log, records, age_max_ms: keys.age_max_ms, state_file, state, is_file_stale: false })
    }

    /// Saves all keys of records up to `up_to`, and releases the segments whose keys are all too old. `keys` gives access
    /// to the table, which must not be locked while the log is written.
    pub(crate) async fn save(&mut self, up_to: u64, keys: impl KeyAccess) -> Result<(), WriteAheadLogError> {
        loop {
            let unsaved = keys.with_keys(|keys| keys.take_unsaved(up_to));
            if unsaved.is_empty() {
                break;
            }
            // Strings and numbers always have a JSON form.
            let payload = serde_json::to_vec(&unsaved).unwrap_or_default();
            let saving = self.log.append(vec![Bytes::from(payload)]);
            // It shares the sync of the record before it.
            let marking_end = self.log.append(vec![Bytes::from_static(NO_KEYS)]);
            match tokio::join!(saving, marking_end) {
                (Ok(saved), Ok(end)) => {
                    self.records.extend([saved, end].map(|record| (record, newest_time(&unsaved))));
                    self.state.last_record = end;
                    self.is_file_stale = true;
                }
                (Err(error), _) | (_, Err(error)) => {
                    keys.with_keys(|keys| keys.put_back_unsaved(unsaved));
                    return Err(error);
                }
            }
        }
        if self.is_file_stale {
            let (state, file) = (self.state.clone(), self.state_file.clone());
            let writing = tokio::task::spawn_blocking(move || state.write(&file));
            writing.await.map_err(|_| WriteAheadLogError::Closed)?;
            self.is_file_stale = false;
        }
        self.release_old().await
    }

    async fn release_old(&mut self) -> Result<(), WriteAheadLogError> {
        let oldest_kept = now_ms().saturating_sub(self.age_max_ms);
        let mut up_to = None;
        while let Some((sequence, newest)) = self.records.front().copied()
            && newest < oldest_kept
        {
            up_to = Some(sequence);
            self.records.pop_front();
        }
        match up_to {
            Some(up_to) => self.log.release(up_to).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn close(&self) {
        self.log.close().await;
    }
}

/// Locks the table of keys for a moment.
pub(crate) trait KeyAccess {
    /// Runs `action` on the table.
    fn with_keys<T>(&self, action: impl FnOnce(&mut KeyTable) -> T) -> T;
}

fn newest_time(keys: &[StoredKey]) -> i64 {
    keys.iter().map(|key| key.time_ms).max().unwrap_or_default()
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
