//! A log of byte records on disk: a record is acknowledged when it is synced.
//!
//! One thread writes the log. Records that arrive while it syncs share the next sync (group commit). Each record has a
//! sequence number, counted from 1 without gaps; the counter survives restarts, even of an empty log.
//!
//! The log is a folder of segment files. A segment begins with a header (`segment.rs`) and is deleted as a whole, when all
//! of its records are released. The last segment always exists, as its header holds the sequence counter.
//!
//! After each sync, a mark is appended, which says that the records before it were acknowledged. So damage of the last one
//! is not taken for the incomplete end that a crash leaves. The mark itself is synced with the next records: a crash of the
//! system may lose it, but not one of the process.

mod error;
mod recovery;
mod segment;

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_core::private_file;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

pub use error::WriteAheadLogError;
pub(crate) use recovery::{LogChecker, LostRecords, RecoveredRecord, list_segments, read_log};
pub(crate) use segment::segment_path;

use recovery::{RecoveredLog, Segment};
use segment::{
    LogFile, MARK_BYTES, RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, create_segment, encode_mark,
    encode_record_header, open_log_file, remove_segment, sync_folder, write_all,
};

/// Commands that wait for the writer thread.
const COMMANDS_WAITING_MAX: usize = 4096;
/// Bytes of payload that wait for the writer thread.
const QUEUE_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// The bytes of one record.
const RECORD_BYTES_MAX: u64 = 1 << 30;
/// The name of the file whose lock says that a process has the log open.
const LOCK_FILE: &str = "lock";

/// The bounds of a log.
#[derive(Debug, Clone, Copy)]
pub struct WriteAheadLogOptions {
    /// The bytes after which a new segment begins. A larger record has a segment of its own.
    pub segment_bytes: u64,
    /// The bytes of the whole log. A record that would exceed them is refused with [`WriteAheadLogError::Full`].
    pub bytes_max: u64,
}

impl Default for WriteAheadLogOptions {
    /// Segments of 16 MiB, at most 1 GiB together.
    fn default() -> Self {
        Self { segment_bytes: 16 << 20, bytes_max: 1 << 30 }
    }
}

/// An open log. Dropping it ends the writer thread after the records that wait; [`WriteAheadLog::close`] waits for that.
#[derive(Debug)]
pub struct WriteAheadLog {
    folder: PathBuf,
    commands: mpsc::Sender<Command>,
    queue_bytes: Arc<Semaphore>,
    status: Arc<LogStatus>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the writer thread publishes about the log.
#[derive(Debug, Default)]
struct LogStatus {
    bytes: AtomicU64,
    /// 0 if the log has no records.
    oldest_sequence: AtomicU64,
    next_sequence: AtomicU64,
    has_failed: AtomicBool,
}

/// Runs on the writer thread when the record with this sequence number is synced, in the order of the numbers.
type SyncedAction = Box<dyn FnOnce(u64) + Send>;

enum Command {
    Append(Append),
    Release { up_to: u64, answer: oneshot::Sender<Result<(), WriteAheadLogError>> },
    Close,
}

struct Append {
    payload: Vec<Bytes>,
    bytes: u64,
    on_synced: Option<SyncedAction>,
    answer: oneshot::Sender<Result<u64, WriteAheadLogError>>,
    _queue_bytes: OwnedSemaphorePermit,
}

impl WriteAheadLog {
    /// Opens the log in `folder`, which is created if it does not exist, and passes each record with its sequence number
    /// to `replay`, oldest first. An incomplete end of the last segment that was not acknowledged is cut off.
    ///
    /// Blocks the thread while it reads the log.
    ///
    /// # Errors
    /// [`WriteAheadLogError::Locked`] if another process has the log open; [`WriteAheadLogError::Damaged`] for a record
    /// that was changed after it was written; [`WriteAheadLogError::Replay`] with the error of `replay`;
    /// [`WriteAheadLogError::Io`].
    pub fn open<E>(
        folder: &Path,
        options: WriteAheadLogOptions,
        replay: impl FnMut(u64, Bytes) -> Result<(), E>,
    ) -> Result<Self, WriteAheadLogError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Self::open_with(folder, options, Box::new(open_log_file), replay)
    }

    /// As [`WriteAheadLog::open`]; `open_file` opens a segment for appending.
    fn open_with<E>(
        folder: &Path,
        options: WriteAheadLogOptions,
        open_file: OpenFile,
        mut replay: impl FnMut(u64, Bytes) -> Result<(), E>,
    ) -> Result<Self, WriteAheadLogError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Self::recover(folder, options, open_file, 0, &mut |record| match record {
            RecoveredRecord::Whole { sequence, payload } => {
                replay(sequence, payload).map_err(|error| WriteAheadLogError::replay(sequence, error))
            }
            RecoveredRecord::Lost(lost) => Err(lost.to_error()),
        })
    }

    /// As [`WriteAheadLog::open`], but damaged and missing records are passed on, too, and the log goes on after them.
    /// The records up to `acknowledged` are known to have been in the log: none of them is taken for an incomplete end.
    pub(crate) fn open_damaged(
        folder: &Path,
        options: WriteAheadLogOptions,
        acknowledged: u64,
        mut visit: impl FnMut(RecoveredRecord) -> Result<(), WriteAheadLogError>,
    ) -> Result<Self, WriteAheadLogError> {
        Self::recover(folder, options, Box::new(open_log_file), acknowledged, &mut visit)
    }

    fn recover(
        folder: &Path,
        options: WriteAheadLogOptions,
        open_file: OpenFile,
        acknowledged: u64,
        visit: &mut dyn FnMut(RecoveredRecord) -> Result<(), WriteAheadLogError>,
    ) -> Result<Self, WriteAheadLogError> {
        private_file::create_folder(folder).map_err(WriteAheadLogError::io("create", folder))?;
        let lock = lock_folder(folder)?;
        let segments = recovery::recover(folder, acknowledged, visit)?;
        let status = Arc::new(LogStatus::default());
        let writer = WriteAheadLogWriter::new(folder.to_owned(), options, open_file, segments, status.clone(), lock)?;
        let (commands, inbox) = mpsc::channel(COMMANDS_WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("write-ahead-log".to_owned())
            .spawn(move || writer.run(inbox))
            .map_err(WriteAheadLogError::io("start the writer thread of", folder))?;
        let queue_bytes = Arc::new(Semaphore::new(QUEUE_BYTES_MAX as usize));
        Ok(Self { folder: folder.to_owned(), commands, queue_bytes, status, thread: Mutex::new(Some(thread)) })
    }

    /// Appends a record of the parts of `payload`, and returns its sequence number when it is synced. Waits while too many
    /// records are before it. If the future is dropped, the record may be appended or not.
    ///
    /// # Errors
    /// [`WriteAheadLogError::NoSpace`], [`WriteAheadLogError::Full`], [`WriteAheadLogError::TooLarge`] and
    /// [`WriteAheadLogError::Write`]: the record was not stored, and the log remains usable.
    /// [`WriteAheadLogError::Failed`]: a sync failed, so it is unknown what is on disk, and the log must be opened
    /// again. [`WriteAheadLogError::Closed`].
    pub async fn append(&self, payload: Vec<Bytes>) -> Result<u64, WriteAheadLogError> {
        self.send(payload, None).await
    }

    /// As [`WriteAheadLog::append`]; `on_synced` gets the sequence number when the record is synced and before `append`
    /// returns, in the order of the sequence numbers. It runs on the writer thread and must not block.
    ///
    /// # Errors
    /// As [`WriteAheadLog::append`]; `on_synced` is dropped.
    pub async fn append_with(
        &self,
        payload: Vec<Bytes>,
        on_synced: impl FnOnce(u64) + Send + 'static,
    ) -> Result<u64, WriteAheadLogError> {
        self.send(payload, Some(Box::new(on_synced))).await
    }

    async fn send(&self, payload: Vec<Bytes>, on_synced: Option<SyncedAction>) -> Result<u64, WriteAheadLogError> {
        let bytes = payload.iter().map(|part| part.len() as u64).sum::<u64>();
        if bytes > RECORD_BYTES_MAX {
            return Err(WriteAheadLogError::TooLarge { bytes, bytes_max: RECORD_BYTES_MAX });
        }
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX).clamp(1, QUEUE_BYTES_MAX);
        let permit =
            self.queue_bytes.clone().acquire_many_owned(permits).await.map_err(|_| WriteAheadLogError::Closed)?;
        let (answer, answered) = oneshot::channel();
        let bytes = bytes + RECORD_HEADER_BYTES;
        let append = Append { payload, bytes, on_synced, answer, _queue_bytes: permit };
        self.commands.send(Command::Append(append)).await.map_err(|_| WriteAheadLogError::Closed)?;
        answered.await.unwrap_or(Err(WriteAheadLogError::Closed))
    }

    /// Deletes the segments whose records all have a sequence number of at most `up_to`.
    ///
    /// # Errors
    /// [`WriteAheadLogError::Io`] if a file cannot be deleted; it is deleted with the next release.
    /// [`WriteAheadLogError::Failed`] and [`WriteAheadLogError::Closed`].
    pub async fn release(&self, up_to: u64) -> Result<(), WriteAheadLogError> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(Command::Release { up_to, answer }).await.map_err(|_| WriteAheadLogError::Closed)?;
        answered.await.unwrap_or(Err(WriteAheadLogError::Closed))
    }

    /// What compares the files of the log with what was acknowledged.
    pub(crate) fn checker(&self) -> LogChecker {
        LogChecker { folder: self.folder.clone(), status: self.status.clone() }
    }

    /// The bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.status.bytes.load(Ordering::Acquire)
    }

    /// The sequence number of the oldest record in the log. It may be released already, if its segment has a record that
    /// is not. `None` if the log has no records.
    pub fn oldest_sequence(&self) -> Option<u64> {
        Some(self.status.oldest_sequence.load(Ordering::Acquire)).filter(|sequence| *sequence > 0)
    }

    /// The sequence number of the last record that was ever appended and synced, 0 before the first.
    pub fn last_sequence(&self) -> u64 {
        self.status.next_sequence.load(Ordering::Acquire).saturating_sub(1)
    }

    /// Whether the log refuses everything until it is opened again.
    pub fn has_failed(&self) -> bool {
        self.status.has_failed.load(Ordering::Acquire)
    }

    /// Writes the records that wait, and closes the log. When it returns, the log can be opened again.
    pub async fn close(&self) {
        // An error means that the writer thread has ended.
        let _ = self.commands.send(Command::Close).await;
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && tokio::task::spawn_blocking(move || thread.join().is_err()).await.unwrap_or(true)
        {
            tracing::error!("the writer thread of a write-ahead log panicked");
        }
    }
}

/// Opens a segment for appending.
type OpenFile = Box<dyn Fn(&Path) -> std::io::Result<Box<dyn LogFile>> + Send>;

fn lock_folder(folder: &Path) -> Result<File, WriteAheadLogError> {
    let path = folder.join(LOCK_FILE);
    let file = private_file::set_owner_only(File::options().create(true).truncate(false).write(true))
        .open(&path)
        .map_err(WriteAheadLogError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(WriteAheadLogError::Locked { folder: folder.to_owned() }),
        Err(TryLockError::Error(error)) => Err(WriteAheadLogError::io("lock", &path)(error)),
    }
}

/// Records that share a sync.
const GROUP_RECORDS_MAX: usize = 1024;
/// Bytes that share a sync. A larger record is synced alone.
const GROUP_BYTES_MAX: u64 = 16 * 1024 * 1024;

struct WriteAheadLogWriter {
    folder: PathBuf,
    options: WriteAheadLogOptions,
    open_file: OpenFile,
    /// All segments but the active one, oldest first.
    complete: VecDeque<Segment>,
    active: ActiveSegment,
    next_sequence: u64,
    /// Why the log refuses everything.
    failure: Option<WriteAheadLogError>,
    status: Arc<LogStatus>,
    /// Held until the thread ends.
    _lock: File,
}

/// The segment that takes records.
struct ActiveSegment {
    file: Box<dyn LogFile>,
    segment: Segment,
    marker: u64,
}

impl ActiveSegment {
    fn has_records(&self) -> bool {
        self.segment.bytes > SEGMENT_HEADER_BYTES
    }
}

impl WriteAheadLogWriter {
    fn new(
        folder: PathBuf,
        options: WriteAheadLogOptions,
        open_file: OpenFile,
        recovered: RecoveredLog,
        status: Arc<LogStatus>,
        lock: File,
    ) -> Result<Self, WriteAheadLogError> {
        let path = segment_path(&folder, recovered.last.first_sequence);
        let mut file = open_file(&path).map_err(WriteAheadLogError::io("open", &path))?;
        // The system alone may have the last records of a process that was killed. Rows are moved, and a segment begins, as
        // if they were on disk.
        if recovered.last.bytes > SEGMENT_HEADER_BYTES {
            file.sync().map_err(WriteAheadLogError::io("sync", &path))?;
        }
        let active = ActiveSegment { file, segment: recovered.last, marker: recovered.last_marker };
        let writer = Self {
            folder,
            options,
            open_file,
            complete: recovered.complete.into(),
            active,
            next_sequence: recovered.next_sequence,
            failure: None,
            status,
            _lock: lock,
        };
        writer.publish_status();
        Ok(writer)
    }

    /// Runs until the log is closed or dropped.
    fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        let mut group = Vec::new();
        while let Some(command) = inbox.blocking_recv() {
            let mut group_bytes = 0;
            let mut other = collect(command, &mut group, &mut group_bytes);
            while other.is_none() && group.len() < GROUP_RECORDS_MAX && group_bytes < GROUP_BYTES_MAX {
                let Ok(command) = inbox.try_recv() else { break };
                other = collect(command, &mut group, &mut group_bytes);
            }
            self.append_group(std::mem::take(&mut group));
            match other {
                // A caller that no longer waits needs no answer.
                Some(Command::Release { up_to, answer }) => drop(answer.send(self.release(up_to))),
                Some(Command::Close) => inbox.close(),
                Some(Command::Append(_)) | None => {}
            }
        }
    }

    fn append_group(&mut self, mut group: Vec<Append>) {
        self.refuse_excess(&mut group);
        if group.is_empty() {
            return;
        }
        match self.write_and_sync(&group) {
            Ok(first_sequence) => {
                self.publish_status();
                let mut answers = Vec::with_capacity(group.len());
                for (sequence, append) in (first_sequence..).zip(group) {
                    if let Some(on_synced) = append.on_synced {
                        on_synced(sequence);
                    }
                    answers.push((append.answer, sequence));
                }
                answers.into_iter().for_each(|(answer, sequence)| drop(answer.send(Ok(sequence))));
            }
            Err(error) => {
                tracing::error!(%error, records = group.len(), "records were not written to the log");
                group.into_iter().for_each(|append| drop(append.answer.send(Err(error.clone()))));
            }
        }
    }

    /// Answers the records that do not fit into the log.
    fn refuse_excess(&mut self, group: &mut Vec<Append>) {
        let bytes_max = self.options.bytes_max;
        let mut bytes = self.bytes();
        let mut accepted = Vec::with_capacity(group.len());
        for append in group.drain(..) {
            if bytes + append.bytes + MARK_BYTES > bytes_max {
                drop(append.answer.send(Err(WriteAheadLogError::Full { bytes, bytes_max })));
            } else {
                bytes += append.bytes;
                accepted.push(append);
            }
        }
        *group = accepted;
    }

    /// Writes the records, and returns the sequence number of the first when all of them are synced.
    fn write_and_sync(&mut self, group: &[Append]) -> Result<u64, WriteAheadLogError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let group_bytes: u64 = group.iter().map(|append| append.bytes).sum();
        if self.active.has_records() && self.active.segment.bytes + group_bytes > self.options.segment_bytes {
            self.begin_segment()?;
        }
        let first_sequence = self.next_sequence;
        let marker = self.active.marker;
        let headers: Vec<_> = (first_sequence..)
            .zip(group)
            .map(|(sequence, append)| encode_record_header(marker, sequence, &append.payload))
            .collect();
        let mut parts: Vec<IoSlice<'_>> = headers
            .iter()
            .zip(group)
            .flat_map(|(header, append)| {
                let payload = append.payload.iter().map(|part| IoSlice::new(part));
                std::iter::once(IoSlice::new(header)).chain(payload)
            })
            .collect();
        if let Err(error) = write_all(self.active.file.as_mut(), &mut parts) {
            return Err(self.undo_write(error));
        }
        self.active.file.sync().map_err(|error| self.fail(error))?;
        self.active.segment.bytes += group_bytes;
        self.next_sequence += group.len() as u64;
        self.write_mark();
        Ok(first_sequence)
    }

    /// Marks the records so far as acknowledged. They are on disk without the mark, too.
    fn write_mark(&mut self) {
        let mark = encode_mark(self.active.marker, self.next_sequence - 1);
        match write_all(self.active.file.as_mut(), &mut [IoSlice::new(&mark)]) {
            Ok(()) => self.active.segment.bytes += MARK_BYTES,
            Err(error) => drop(self.undo_write(error)),
        }
    }

    /// Removes what a failed write left behind the last good record.
    fn undo_write(&mut self, error: std::io::Error) -> WriteAheadLogError {
        match self.active.file.truncate(self.active.segment.bytes) {
            Ok(()) => WriteAheadLogError::not_written(error),
            Err(truncate_error) => self.fail(truncate_error),
        }
    }

    /// From now on, the log refuses everything. After a failed sync the system may have dropped the bytes, so a further
    /// sync that succeeds would prove nothing.
    fn fail(&mut self, error: std::io::Error) -> WriteAheadLogError {
        let failure = WriteAheadLogError::Failed { source: Arc::new(error) };
        self.failure = Some(failure.clone());
        self.status.has_failed.store(true, Ordering::Release);
        failure
    }

    fn begin_segment(&mut self) -> Result<(), WriteAheadLogError> {
        let header = SegmentHeader::new(self.next_sequence);
        let path = create_segment(&self.folder, self.next_sequence, &header.encode())
            .map_err(WriteAheadLogError::not_written)?;
        let opened = sync_folder(&self.folder).and_then(|()| (self.open_file)(&path));
        // The new file exists, and records in the one before would follow it.
        let file = opened.map_err(|error| self.fail(error))?;
        let segment = Segment { first_sequence: self.next_sequence, bytes: SEGMENT_HEADER_BYTES };
        let active = ActiveSegment { file, segment, marker: header.marker };
        let complete = std::mem::replace(&mut self.active, active);
        self.complete.push_back(complete.segment);
        self.publish_status();
        Ok(())
    }

    fn release(&mut self, up_to: u64) -> Result<(), WriteAheadLogError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let is_covered = self.active.has_records() && up_to.saturating_add(1) >= self.next_sequence;
        // On a full disk, no segment can begin before others are deleted.
        let begun = if is_covered { self.begin_segment() } else { Ok(()) };
        let mut is_changed = false;
        while let Some(oldest) = self.complete.front() {
            let next_first =
                self.complete.get(1).map_or(self.active.segment.first_sequence, |next| next.first_sequence);
            if up_to.saturating_add(1) < next_first {
                break;
            }
            let path = segment_path(&self.folder, oldest.first_sequence);
            // Before the file disappears, so that a check does not miss it.
            self.status.oldest_sequence.store(next_first, Ordering::Release);
            if let Err(error) = remove_segment(&path) {
                self.publish_status();
                return Err(WriteAheadLogError::io("remove", &path)(error));
            }
            // The deletions must reach the disk in this order, or segments would be missing between others.
            sync_folder(&self.folder).map_err(WriteAheadLogError::io("sync", &self.folder))?;
            self.complete.pop_front();
            is_changed = true;
        }
        if is_changed {
            self.publish_status();
        }
        begun
    }

    fn bytes(&self) -> u64 {
        self.complete.iter().map(|segment| segment.bytes).sum::<u64>() + self.active.segment.bytes
    }

    fn publish_status(&self) {
        let oldest = match self.complete.front() {
            Some(oldest) => oldest.first_sequence,
            None if self.active.has_records() => self.active.segment.first_sequence,
            None => 0,
        };
        self.status.bytes.store(self.bytes(), Ordering::Release);
        self.status.oldest_sequence.store(oldest, Ordering::Release);
        self.status.next_sequence.store(self.next_sequence, Ordering::Release);
    }
}

/// Adds a record to the group, and returns any other command.
fn collect(command: Command, group: &mut Vec<Append>, group_bytes: &mut u64) -> Option<Command> {
    match command {
        Command::Append(append) => {
            *group_bytes += append.bytes;
            group.push(append);
            None
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod failing_file_tests;
