//! Reads a log when it is opened: replays its records and cuts off an incomplete end.
//!
//! A crash can only leave the end of the last segment incomplete, as a segment begins after the one before is synced.
//! Anything else is damage, which is an error: what follows the damage was acknowledged.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::LogError;
use super::files::{create_segment, segment_path, sync_folder};
use super::record::{
    HeaderError, SEGMENT_HEADER_BYTES, SEGMENT_SUFFIX, SegmentHeader, VERSION, contains_record, decode_record,
};

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

pub(crate) fn recover<E>(
    folder: &Path,
    mut replay: impl FnMut(u64, Bytes) -> Result<(), E>,
) -> Result<RecoveredLog, LogError>
where
    E: std::error::Error + Send + Sync + 'static,
{
    remove_unfinished(folder)?;
    let mut first_sequences = list_segments(folder)?;
    if first_sequences.is_empty() {
        create(folder, 1)?;
        first_sequences.push(1);
    }
    let last_index = first_sequences.len() - 1;
    let mut complete = Vec::new();
    let mut next_sequence = None;
    for (index, first_sequence) in first_sequences.iter().copied().enumerate() {
        let is_last = index == last_index;
        let path = segment_path(folder, first_sequence);
        if next_sequence.is_some_and(|next| next != first_sequence) {
            return Err(damaged(&path, 0, "the records between this segment and the one before are missing"));
        }
        let reader = SegmentReader::open(folder, path, first_sequence, is_last)?;
        let (segment, next) = reader.replay(is_last, &mut replay)?;
        if is_last {
            let last_marker = reader.header.marker;
            return Ok(RecoveredLog { complete, last: segment, last_marker, next_sequence: next });
        }
        complete.push(segment);
        next_sequence = Some(next);
    }
    // The loop returns with the last segment, and there is one.
    Err(LogError::Closed)
}

/// A segment in memory.
struct SegmentReader {
    path: PathBuf,
    content: Vec<u8>,
    header: SegmentHeader,
}

impl SegmentReader {
    fn open(folder: &Path, path: PathBuf, first_sequence: u64, is_last: bool) -> Result<Self, LogError> {
        let mut content = std::fs::read(&path).map_err(LogError::io("read", &path))?;
        let header = match SegmentHeader::decode(&content) {
            // The file system lost the end of a new file. Its name has the sequence counter.
            Err(HeaderError::Incomplete) if is_last => {
                create(folder, first_sequence)?;
                content = std::fs::read(&path).map_err(LogError::io("read", &path))?;
                SegmentHeader::decode(&content)
            }
            header => header,
        };
        let header = header.map_err(|error| match error {
            HeaderError::Version(version) => LogError::Version { file: path.clone(), version, supported: VERSION },
            HeaderError::Incomplete | HeaderError::Invalid => damaged(&path, 0, "it has no valid header"),
        })?;
        if header.first_sequence != first_sequence {
            return Err(damaged(&path, 0, "its header belongs to another segment"));
        }
        Ok(Self { path, content, header })
    }

    /// Replays the records, and returns the segment with the sequence number that follows.
    fn replay<E>(
        &self,
        is_last: bool,
        replay: &mut impl FnMut(u64, Bytes) -> Result<(), E>,
    ) -> Result<(Segment, u64), LogError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let marker = self.header.marker;
        let mut sequence = self.header.first_sequence;
        let mut offset = SEGMENT_HEADER_BYTES as usize;
        while let Some(rest) = self.content.get(offset..).filter(|rest| !rest.is_empty()) {
            let Some(record) = decode_record(marker, rest) else {
                if !is_last {
                    return Err(damaged(&self.path, offset, "a record is incomplete or was changed"));
                }
                if rest.get(1..).is_some_and(|rest| contains_record(marker, rest)) {
                    return Err(damaged(&self.path, offset, "a record was changed, and complete records follow it"));
                }
                self.cut(offset)?;
                break;
            };
            if record.sequence != sequence {
                return Err(damaged(&self.path, offset, "a record has the wrong sequence number"));
            }
            replay(sequence, Bytes::copy_from_slice(record.payload))
                .map_err(|error| LogError::Replay { sequence, source: Arc::new(error) })?;
            offset += record.bytes();
            sequence += 1;
        }
        let segment = Segment { first_sequence: self.header.first_sequence, bytes: offset as u64 };
        Ok((segment, sequence))
    }

    /// Cuts off the incomplete record at `offset`, which was never acknowledged.
    fn cut(&self, offset: usize) -> Result<(), LogError> {
        let bytes = self.content.len() - offset;
        tracing::warn!(file = %self.path.display(), offset, bytes, "cut the incomplete end of the log off");
        File::options()
            .write(true)
            .open(&self.path)
            .and_then(|file| file.set_len(offset as u64).and_then(|()| file.sync_all()))
            .map_err(LogError::io("cut the incomplete end off", &self.path))
    }
}

fn create(folder: &Path, first_sequence: u64) -> Result<(), LogError> {
    let header = SegmentHeader::new(first_sequence).encode();
    create_segment(folder, first_sequence, &header)
        .and_then(|_| sync_folder(folder))
        .map_err(LogError::io("create a segment in", folder))
}

/// The first sequence numbers of the segments, ascending.
pub(crate) fn list_segments(folder: &Path) -> Result<Vec<u64>, LogError> {
    let sequence = |path: &PathBuf| path.file_name()?.to_str()?.strip_suffix(SEGMENT_SUFFIX)?.parse().ok();
    let mut first_sequences: Vec<u64> = list_files(folder)?.iter().filter_map(sequence).collect();
    first_sequences.sort_unstable();
    Ok(first_sequences)
}

/// Removes files whose creation was interrupted.
fn remove_unfinished(folder: &Path) -> Result<(), LogError> {
    for path in list_files(folder)? {
        if path.extension().is_some_and(|extension| extension == "new") {
            std::fs::remove_file(&path).map_err(LogError::io("remove", &path))?;
        }
    }
    Ok(())
}

fn list_files(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
    let entries = std::fs::read_dir(folder).map_err(LogError::io("list", folder))?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(LogError::io("list", folder))).collect()
}

pub(crate) fn damaged(file: &Path, offset: usize, problem: &'static str) -> LogError {
    LogError::Damaged { file: file.to_owned(), offset: offset as u64, problem }
}
