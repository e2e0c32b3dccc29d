//! The thread that writes the log.

use std::collections::VecDeque;
use std::fs::File;
use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;

use super::recovery::{RecoveredLog, Segment};
use super::segment::{
    LogFile, SEGMENT_HEADER_BYTES, SegmentHeader, create_segment, encode_record_header, segment_path, sync_folder,
    write_all,
};
use super::{Append, Command, LogError, LogOptions, LogStatus, OpenFile};

/// Records that share a sync.
const GROUP_RECORDS_MAX: usize = 1024;
/// Bytes that share a sync. A larger record is synced alone.
const GROUP_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(super) struct LogWriter {
    folder: PathBuf,
    options: LogOptions,
    open_file: OpenFile,
    /// All segments but the active one, oldest first.
    complete: VecDeque<Segment>,
    active: ActiveSegment,
    next_sequence: u64,
    /// Why the log refuses everything.
    failure: Option<LogError>,
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

impl LogWriter {
    pub(super) fn new(
        folder: PathBuf,
        options: LogOptions,
        open_file: OpenFile,
        recovered: RecoveredLog,
        status: Arc<LogStatus>,
        lock: File,
    ) -> Result<Self, LogError> {
        let path = segment_path(&folder, recovered.last.first_sequence);
        let file = open_file(&path).map_err(LogError::io("open", &path))?;
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
    pub(super) fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
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
            if bytes + append.bytes > bytes_max {
                drop(append.answer.send(Err(LogError::Full { bytes, bytes_max })));
            } else {
                bytes += append.bytes;
                accepted.push(append);
            }
        }
        *group = accepted;
    }

    /// Writes the records, and returns the sequence number of the first when all of them are synced.
    fn write_and_sync(&mut self, group: &[Append]) -> Result<u64, LogError> {
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
        Ok(first_sequence)
    }

    /// Removes what a failed write left behind the last good record.
    fn undo_write(&mut self, error: std::io::Error) -> LogError {
        match self.active.file.truncate(self.active.segment.bytes) {
            Ok(()) => LogError::not_written(error),
            Err(truncate_error) => self.fail(truncate_error),
        }
    }

    /// From now on, the log refuses everything. After a failed sync the system may have dropped the bytes, so a further
    /// sync that succeeds would prove nothing.
    fn fail(&mut self, error: std::io::Error) -> LogError {
        let failure = LogError::Failed { source: Arc::new(error) };
        self.failure = Some(failure.clone());
        self.status.has_failed.store(true, Ordering::Release);
        failure
    }

    fn begin_segment(&mut self) -> Result<(), LogError> {
        let header = SegmentHeader::new(self.next_sequence);
        let path = create_segment(&self.folder, self.next_sequence, &header.encode()).map_err(LogError::not_written)?;
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

    fn release(&mut self, up_to: u64) -> Result<(), LogError> {
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
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    self.publish_status();
                    return Err(LogError::io("remove", &path)(error));
                }
                _ => {}
            }
            // The deletions must reach the disk in this order, or segments would be missing between others.
            sync_folder(&self.folder).map_err(LogError::io("sync", &self.folder))?;
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
