//! Reads a log when it is opened: passes on its records, and cuts off an incomplete end. Reads the records of an open log
//! again, while others are appended and released.
//!
//! A crash can only leave the end of the last segment incomplete, as a segment begins after the one before is synced. What
//! is before a mark was acknowledged. What is before a complete record counts as acknowledged, too: records that share a
//! sync are written together, and a crash of the system may leave only a later one of them, but nothing distinguishes that
//! from damage. Damage of either is no incomplete end: records are lost. They are passed on as such, with what is left of
//! their bytes, and the damaged file stays as it is.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::segment::{
    HeaderError, MARK_BYTES, RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_SUFFIX, SegmentHeader, VERSION,
    create_segment, decode_mark, decode_record, find_record, last_mark, marker_positions, segment_path, sync_folder,
};
use super::{LogStatus, WriteAheadLogError};

const CHANGED: &str = "a record was changed, and complete records follow it";
const CHANGED_LAST: &str = "a record was changed after it was acknowledged";
const CHANGED_OR_INCOMPLETE: &str = "a record is incomplete or was changed";
const CHANGED_MARK: &str = "a mark was changed, and the records around it are whole";
const MISSING: &str = "the records that follow are missing";
const UNREADABLE: &str = "neither its header nor its first record can be read";
const FOLDER: &str = "a folder is in the place of the file";

/// What a log has, in the order of the sequence numbers.
#[derive(Debug)]
pub(crate) enum RecoveredRecord {
    /// A record as it was written.
    Whole { sequence: u64, payload: Bytes },
    /// Damaged or missing records.
    Lost(LostRecords),
}

/// Records that were acknowledged and cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct LostRecords {
    /// The segment.
    pub(crate) file: PathBuf,
    /// Where the damage begins, in bytes.
    pub(crate) offset: u64,
    /// What is wrong.
    pub(crate) problem: &'static str,
    pub(crate) sequences: RangeInclusive<u64>,
    /// The payload of each record as it is now. Empty if it is not known where each begins.
    pub(crate) payloads: Vec<Bytes>,
}

impl LostRecords {
    /// The error of a log that must be whole.
    pub(crate) fn to_error(&self) -> WriteAheadLogError {
        WriteAheadLogError::Damaged { file: self.file.clone(), offset: self.offset, problem: self.problem }
    }
}

/// A segment on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) first_sequence: u64,
    pub(crate) bytes: u64,
}

/// The segments of a log whose records were replayed.
#[derive(Debug)]
pub(crate) struct RecoveredLog {
    /// All but the last.
    pub(crate) complete: Vec<Segment>,
    pub(crate) last: Segment,
    pub(crate) last_marker: u64,
    pub(crate) next_sequence: u64,
}

/// Whether what a crash left is put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repair {
    Yes,
    No,
}

/// Reads the log in `folder`, and passes all records to `visit`. Those up to `acknowledged` are known to have been in it. A
/// log without segments begins after them, and none of them is passed on.
pub(crate) fn recover(
    folder: &Path,
    acknowledged: u64,
    visit: &mut dyn FnMut(RecoveredRecord) -> Result<(), WriteAheadLogError>,
) -> Result<RecoveredLog, WriteAheadLogError> {
    remove_unfinished(folder)?;
    if list_segments(folder)?.is_empty() {
        create(folder, acknowledged + 1)?;
    }
    // There is a segment.
    read_segments(folder, acknowledged, Repair::Yes, visit)?.ok_or(WriteAheadLogError::Closed)
}

/// As [`recover`], without changing anything.
pub(crate) fn read_log(
    folder: &Path,
    acknowledged: u64,
    visit: &mut dyn FnMut(RecoveredRecord) -> Result<(), WriteAheadLogError>,
) -> Result<(), WriteAheadLogError> {
    read_segments(folder, acknowledged, Repair::No, visit).map(drop)
}

/// `None` if there is no segment to append to.
fn read_segments(
    folder: &Path,
    acknowledged: u64,
    repair: Repair,
    visit: &mut dyn FnMut(RecoveredRecord) -> Result<(), WriteAheadLogError>,
) -> Result<Option<RecoveredLog>, WriteAheadLogError> {
    let first_sequences = list_segments(folder)?;
    let mut complete = Vec::new();
    let mut first_sequences = first_sequences.into_iter().peekable();
    while let Some(first_sequence) = first_sequences.next() {
        let following = first_sequences.peek().copied();
        let reader = SegmentReader::open(folder, first_sequence, following.is_none(), repair)?;
        let (segment, next_sequence) = reader.replay(following, acknowledged, visit)?;
        match (following, reader.header) {
            (Some(following), _) if following < next_sequence => {
                let path = segment_path(folder, following);
                return Err(damaged(&path, 0, "its first records are in the segment before it, too"));
            }
            (Some(_), _) => complete.push(segment),
            (None, Some(header)) => {
                return Ok(Some(RecoveredLog { complete, last: segment, last_marker: header.marker, next_sequence }));
            }
            (None, None) if repair == Repair::No => {}
            // Nothing can be appended to it.
            (None, None) => {
                complete.push(segment);
                let header = create(folder, next_sequence)?;
                let last = Segment { first_sequence: next_sequence, bytes: SEGMENT_HEADER_BYTES };
                return Ok(Some(RecoveredLog { complete, last, last_marker: header.marker, next_sequence }));
            }
        }
    }
    Ok(None)
}

/// A segment in memory.
struct SegmentReader {
    path: PathBuf,
    content: Vec<u8>,
    first_sequence: u64,
    /// `None` if it is lost, so that no record can be found.
    header: Option<SegmentHeader>,
    repair: Repair,
}

impl SegmentReader {
    fn open(folder: &Path, first_sequence: u64, is_last: bool, repair: Repair) -> Result<Self, WriteAheadLogError> {
        let path = segment_path(folder, first_sequence);
        let mut content = match std::fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                return Ok(Self { path, content: Vec::new(), first_sequence, header: None, repair });
            }
            Err(error) => return Err(WriteAheadLogError::io("read", &path)(error)),
        };
        let header = match SegmentHeader::decode(&content) {
            Ok(header) if header.first_sequence == first_sequence => Some(header),
            Err(HeaderError::Version(version)) => {
                return Err(WriteAheadLogError::Version { file: path, version, supported: VERSION });
            }
            // The file system lost the end of a new file, or the header was changed before there was a record. The name
            // of the file has the sequence counter.
            _ if is_last && content.len() <= SEGMENT_HEADER_BYTES as usize => {
                let header = match repair {
                    Repair::Yes => create(folder, first_sequence)?,
                    Repair::No => SegmentHeader::new(first_sequence),
                };
                content = header.encode();
                Some(header)
            }
            _ => {
                tracing::warn!(file = %path.display(), "the header of a segment is damaged");
                SegmentHeader::from_first_record(&content, first_sequence)
            }
        };
        Ok(Self { path, content, first_sequence, header, repair })
    }

    /// Passes the records on, and returns the segment with the sequence number that follows. `following`: the first
    /// sequence number of the next segment, if there is one.
    fn replay(
        &self,
        following: Option<u64>,
        acknowledged: u64,
        visit: &mut dyn FnMut(RecoveredRecord) -> Result<(), WriteAheadLogError>,
    ) -> Result<(Segment, u64), WriteAheadLogError> {
        let bytes = self.content.len();
        let mut sequence = self.first_sequence;
        let Some(SegmentHeader { marker, .. }) = self.header else {
            // No record is shorter than its header, so no later one has a number of these.
            let count = bytes as u64 / RECORD_HEADER_BYTES + 1;
            let next = following.unwrap_or_else(|| (sequence + count).max(acknowledged + 1));
            let problem = if self.path.is_dir() { FOLDER } else { UNREADABLE };
            visit(RecoveredRecord::Lost(self.lost(0..0, sequence..=next - 1, problem)))?;
            return Ok((Segment { first_sequence: self.first_sequence, bytes: bytes as u64 }, next));
        };
        let mut offset = SEGMENT_HEADER_BYTES as usize;
        while let Some(rest) = self.content.get(offset..).filter(|rest| !rest.is_empty()) {
            if let Some(record) = decode_record(marker, rest).filter(|record| record.sequence == sequence) {
                visit(RecoveredRecord::Whole { sequence, payload: Bytes::copy_from_slice(record.payload) })?;
                offset += record.bytes();
                sequence += 1;
                continue;
            }
            if decode_mark(marker, rest).is_some_and(|last| last < sequence) {
                offset += MARK_BYTES as usize;
                continue;
            }
            let (end, next, problem) = match (find_record(marker, rest, sequence), following) {
                (Some((start, next)), _) => (offset + start, next, CHANGED),
                (None, Some(following)) => (bytes, following.max(sequence), CHANGED_OR_INCOMPLETE),
                (None, None) => match last_mark(marker, rest) {
                    // What follows the mark may be incomplete.
                    Some((end, last)) if last >= sequence.max(acknowledged) => (offset + end, last + 1, CHANGED_LAST),
                    _ if sequence <= acknowledged => (bytes, acknowledged + 1, CHANGED_OR_INCOMPLETE),
                    _ => {
                        self.cut(offset)?;
                        break;
                    }
                },
            };
            // Bytes between two records that follow each other are no loss.
            if sequence < next {
                visit(RecoveredRecord::Lost(self.lost(offset..end, sequence..=next - 1, problem)))?;
            }
            (offset, sequence) = (end, next);
        }
        let next = following.unwrap_or(acknowledged + 1);
        if sequence < next {
            visit(RecoveredRecord::Lost(self.lost(offset..offset, sequence..=next - 1, MISSING)))?;
            sequence = next;
        }
        Ok((Segment { first_sequence: self.first_sequence, bytes: offset as u64 }, sequence))
    }

    /// The records `sequences`, which were at `bytes`.
    fn lost(&self, bytes: Range<usize>, sequences: RangeInclusive<u64>, problem: &'static str) -> LostRecords {
        let (offset, count) = (bytes.start as u64, sequences.end() - sequences.start() + 1);
        let content = self.content.get(bytes).unwrap_or_default();
        // The marker of the first one may be what was changed.
        let markers = self.header.iter().flat_map(|header| marker_positions(header.marker, content));
        let mut starts: Vec<usize> = std::iter::once(0).chain(markers.filter(|start| *start > 0)).collect();
        starts.push(content.len());
        let is_mark = |start: usize| {
            let bytes = content.get(start..).unwrap_or_default();
            self.header.is_some_and(|header| decode_mark(header.marker, bytes).is_some())
        };
        let payload = |[start, end]: &[usize; 2]| {
            content.get(start + RECORD_HEADER_BYTES as usize..*end).map(Bytes::copy_from_slice)
        };
        let records = starts.array_windows().filter(|[start, _]| !is_mark(*start));
        let payloads = records.map(payload).collect::<Option<Vec<Bytes>>>();
        let payloads = payloads.filter(|payloads| payloads.len() as u64 == count).unwrap_or_default();
        LostRecords { file: self.path.clone(), offset, problem, sequences, payloads }
    }

    /// Cuts off the incomplete record at `offset`, which was never acknowledged.
    fn cut(&self, offset: usize) -> Result<(), WriteAheadLogError> {
        if self.repair == Repair::No {
            return Ok(());
        }
        let bytes = self.content.len() - offset;
        let file = self.path.display();
        tracing::warn!(%file, offset, bytes, "cut the incomplete end of the log off, which was not acknowledged");
        File::options()
            .write(true)
            .open(&self.path)
            .and_then(|file| file.set_len(offset as u64).and_then(|()| file.sync_all()))
            .map_err(WriteAheadLogError::io("cut the incomplete end off", &self.path))
    }
}

fn create(folder: &Path, first_sequence: u64) -> Result<SegmentHeader, WriteAheadLogError> {
    let header = SegmentHeader::new(first_sequence);
    create_segment(folder, first_sequence, &header.encode())
        .and_then(|_| sync_folder(folder))
        .map_err(WriteAheadLogError::io("create a segment in", folder))?;
    Ok(header)
}

/// The first sequence numbers of the segments, ascending. They have 63 bits, as in Delta tables.
pub(crate) fn list_segments(folder: &Path) -> Result<Vec<u64>, WriteAheadLogError> {
    let sequence = |path: &PathBuf| {
        let number = path.file_name()?.to_str()?.strip_suffix(SEGMENT_SUFFIX)?.parse::<u64>().ok()?;
        (number > 0 && i64::try_from(number).is_ok()).then_some(number)
    };
    let mut first_sequences: Vec<u64> = list_files(folder)?.iter().filter_map(sequence).collect();
    first_sequences.sort_unstable();
    Ok(first_sequences)
}

/// Removes files whose creation was interrupted.
fn remove_unfinished(folder: &Path) -> Result<(), WriteAheadLogError> {
    for path in list_files(folder)? {
        if path.extension().is_some_and(|extension| extension == "new") && !path.is_dir() {
            std::fs::remove_file(&path).map_err(WriteAheadLogError::io("remove", &path))?;
        }
    }
    Ok(())
}

fn list_files(folder: &Path) -> Result<Vec<PathBuf>, WriteAheadLogError> {
    let entries = std::fs::read_dir(folder).map_err(WriteAheadLogError::io("list", folder))?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(WriteAheadLogError::io("list", folder))).collect()
}

fn damaged(file: &Path, offset: usize, problem: &'static str) -> WriteAheadLogError {
    WriteAheadLogError::Damaged { file: file.to_owned(), offset: offset as u64, problem }
}

/// Compares the files of an open log with what was acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct LogChecker {
    pub(super) folder: PathBuf,
    pub(super) status: Arc<LogStatus>,
}

/// What a check has read.
#[derive(Debug, Default)]
pub(crate) struct LogCheck {
    /// The sequence number of the oldest record that is not released, 0 if there is none.
    pub(crate) oldest_sequence: u64,
    /// The sequence number of the last record that had to be there.
    pub(crate) last_sequence: u64,
    /// Where records are damaged or missing, and what is wrong.
    pub(crate) problems: Vec<(PathBuf, String)>,
}

/// A segment as far as it could be read.
struct ReadSegment {
    first_sequence: u64,
    next_sequence: u64,
    problem: Option<WriteAheadLogError>,
}

impl LogChecker {
    /// The folder of the log.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads all records that were acknowledged before the call and are not released, compares each with its checksum,
    /// and passes its sequence number and payload to `visit`. A segment that is released meanwhile is left out.
    ///
    /// Blocks the thread while it reads the log.
    ///
    /// # Errors
    /// [`WriteAheadLogError::Io`] if a file cannot be read.
    pub(crate) fn check(&self, mut visit: impl FnMut(u64, &[u8])) -> Result<LogCheck, WriteAheadLogError> {
        let acknowledged = self.status.next_sequence.load(Ordering::Acquire).saturating_sub(1);
        let mut segments = Vec::new();
        for first_sequence in list_segments(&self.folder)? {
            segments.extend(read_segment(&self.folder, first_sequence, acknowledged, &mut visit)?);
        }
        let oldest_sequence = self.status.oldest_sequence.load(Ordering::Acquire);
        let is_needed = |segment: &ReadSegment| segment.next_sequence >= oldest_sequence;
        let problems = segments.iter().filter(|segment| is_needed(segment)).filter_map(|segment| {
            let problem = segment.problem.as_ref()?;
            Some((segment_path(&self.folder, segment.first_sequence), problem.to_string()))
        });
        let mut problems: Vec<_> = problems.collect();
        // Of a segment that was not read to its end, the records after the damage are no further problem.
        let is_read = |segment: &ReadSegment| {
            matches!(&segment.problem, None | Some(WriteAheadLogError::Damaged { problem: CHANGED_MARK, .. }))
        };
        if segments.iter().filter(|segment| is_needed(segment)).all(is_read)
            && let Some(missing) = first_missing(&segments, oldest_sequence, acknowledged)
        {
            problems.push((self.folder.clone(), format!("the record {missing} is missing")));
        }
        Ok(LogCheck { oldest_sequence, last_sequence: acknowledged, problems })
    }
}

/// Reads the acknowledged records of a segment. `None` if it does not exist.
fn read_segment(
    folder: &Path,
    first_sequence: u64,
    acknowledged: u64,
    visit: &mut impl FnMut(u64, &[u8]),
) -> Result<Option<ReadSegment>, WriteAheadLogError> {
    let path = segment_path(folder, first_sequence);
    let content = match std::fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            let problem = Some(damaged(&path, 0, FOLDER));
            return Ok(Some(ReadSegment { first_sequence, next_sequence: first_sequence, problem }));
        }
        Err(error) => return Err(WriteAheadLogError::io("read", &path)(error)),
    };
    let mut sequence = first_sequence;
    let mut problem = None;
    match SegmentHeader::decode(&content) {
        Ok(header) if header.first_sequence == first_sequence => {
            let mut offset = SEGMENT_HEADER_BYTES as usize;
            // What follows the acknowledged records may be half written.
            while sequence <= acknowledged
                && let Some(rest) = content.get(offset..).filter(|rest| !rest.is_empty())
            {
                if decode_mark(header.marker, rest).is_some() {
                    offset += MARK_BYTES as usize;
                    continue;
                }
                if let Some(record) = decode_record(header.marker, rest).filter(|record| record.sequence == sequence) {
                    visit(sequence, record.payload);
                    offset += record.bytes();
                    sequence += 1;
                    continue;
                }
                // Only marks stand between two records that follow each other.
                let Some((start, _)) =
                    find_record(header.marker, rest, sequence).filter(|(_, found)| *found == sequence)
                else {
                    problem = Some(damaged(&path, offset, CHANGED_OR_INCOMPLETE));
                    break;
                };
                problem.get_or_insert_with(|| damaged(&path, offset, CHANGED_MARK));
                offset += start;
            }
        }
        _ => problem = Some(damaged(&path, 0, "it has no valid header")),
    }
    Ok(Some(ReadSegment { first_sequence, next_sequence: sequence, problem }))
}

/// The first record that no segment has, of those from `oldest` to `last`.
fn first_missing(segments: &[ReadSegment], oldest: u64, last: u64) -> Option<u64> {
    if oldest == 0 {
        return None;
    }
    let mut next = oldest;
    for segment in segments {
        if segment.first_sequence > next {
            break;
        }
        next = next.max(segment.next_sequence);
    }
    (next <= last).then_some(next)
}
