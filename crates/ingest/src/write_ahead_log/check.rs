//! Reads the records of an open log again, while others are appended and released.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::files::segment_path;
use super::record::{SEGMENT_HEADER_BYTES, SegmentHeader, decode_record};
use super::recovery::{damaged, list_segments};
use super::{LogError, LogStatus};

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
    problem: Option<LogError>,
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
    /// [`LogError::Io`] if a file cannot be read.
    pub(crate) fn check(&self, mut visit: impl FnMut(u64, &[u8])) -> Result<LogCheck, LogError> {
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
        if problems.is_empty()
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
) -> Result<Option<ReadSegment>, LogError> {
    let path = segment_path(folder, first_sequence);
    let content = match std::fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LogError::io("read", &path)(error)),
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
                let Some(record) = decode_record(header.marker, rest).filter(|record| record.sequence == sequence)
                else {
                    problem = Some(damaged(&path, offset, "a record is incomplete or was changed"));
                    break;
                };
                visit(sequence, record.payload);
                offset += record.bytes();
                sequence += 1;
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
