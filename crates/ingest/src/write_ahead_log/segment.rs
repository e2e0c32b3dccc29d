//! The files of the log: the bytes of segments and records. All numbers are little-endian.
//!
//! ```text
//! segment  magic 8 · version u32 · marker u64 · first sequence u64 · CRC-32 of the fields before u32 · records
//! record   marker u64 · length of the payload u32 · CRC-32 of length, sequence and payload u32 · sequence u64 · payload
//! mark     marker u64 · 0 u32 · all bits of the CRC-32 of an empty record inverted u32 · sequence u64
//! ```
//!
//! A mark follows records that were acknowledged, up to its number. A reader that does not know marks finds no record in
//! them, and goes on with the next one.
//!
//! The marker is a random number of the segment. So no payload, whatever a client sends, contains bytes that can be
//! mistaken for a record when the end of a segment is searched for complete records.
//!
//! The files are behind a trait, so that tests can replace the disk by one that fails.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tidegate_core::private_file;

/// How the names of segments end.
pub(crate) const SEGMENT_SUFFIX: &str = ".log";
/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// The bytes before the payload of a record.
pub(crate) const RECORD_HEADER_BYTES: u64 = 24;
/// The bytes of a mark.
pub(crate) const MARK_BYTES: u64 = RECORD_HEADER_BYTES;
/// The bytes before the first record of a segment.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 32;

const MAGIC: [u8; 8] = *b"TGIngLog";

/// The first bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) marker: u64,
    pub(crate) first_sequence: u64,
}

/// Why the first bytes of a file are not the header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The file ends before the header does.
    Incomplete,
    /// The bytes are not those of a header.
    Invalid,
    /// The header has another version.
    Version(u32),
}

impl SegmentHeader {
    /// A header with a new marker.
    pub(crate) fn new(first_sequence: u64) -> Self {
        let (marker, _) = uuid::Uuid::new_v4().as_u64_pair();
        Self { marker, first_sequence }
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        let mut header = Vec::with_capacity(SEGMENT_HEADER_BYTES as usize);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend(self.marker.to_le_bytes());
        header.extend(self.first_sequence.to_le_bytes());
        let checksum = crc32fast::hash(&header);
        header.extend(checksum.to_le_bytes());
        header
    }

    pub(crate) fn decode(segment: &[u8]) -> Result<Self, HeaderError> {
        let header = segment.get(..SEGMENT_HEADER_BYTES as usize).ok_or(HeaderError::Incomplete)?;
        if !header.starts_with(&MAGIC) {
            return Err(HeaderError::Invalid);
        }
        let number = |at: usize| read_u64(header, at).ok_or(HeaderError::Invalid);
        let checksum = read_u32(header, 28).ok_or(HeaderError::Invalid)?;
        let version = read_u32(header, 8).ok_or(HeaderError::Invalid)?;
        if header.get(..28).map(crc32fast::hash) != Some(checksum) {
            return Err(HeaderError::Invalid);
        }
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        Ok(Self { marker: number(12)?, first_sequence: number(20)? })
    }

    /// The header of a segment whose own one is damaged, as its first record has it.
    pub(crate) fn from_first_record(segment: &[u8], first_sequence: u64) -> Option<Self> {
        let records = segment.get(SEGMENT_HEADER_BYTES as usize..)?;
        let marker = read_u64(records, 0)?;
        let record = decode_record(marker, records)?;
        (record.sequence == first_sequence).then_some(Self { marker, first_sequence })
    }
}

/// The header of a record with this payload.
pub(crate) fn encode_record_header(
    marker: u64,
    sequence: u64,
    payload: &[Bytes],
) -> [u8; RECORD_HEADER_BYTES as usize] {
    let length: usize = payload.iter().map(Bytes::len).sum();
    // Records are refused above 1 GiB, so the length fits.
    let length = length as u32;
    let mut checksum = start_checksum(length, sequence);
    payload.iter().for_each(|part| checksum.update(part));
    let mut header = [0; RECORD_HEADER_BYTES as usize];
    header[..8].copy_from_slice(&marker.to_le_bytes());
    header[8..12].copy_from_slice(&length.to_le_bytes());
    header[12..16].copy_from_slice(&checksum.finalize().to_le_bytes());
    header[16..].copy_from_slice(&sequence.to_le_bytes());
    header
}

/// A record that was read and whose checksum is right.
#[derive(Debug)]
pub(crate) struct DecodedRecord<'a> {
    pub(crate) sequence: u64,
    pub(crate) payload: &'a [u8],
}

impl DecodedRecord<'_> {
    /// The bytes of the record in its segment.
    pub(crate) fn bytes(&self) -> usize {
        RECORD_HEADER_BYTES as usize + self.payload.len()
    }
}

/// The record at the beginning of `bytes`, if it is complete and unchanged.
pub(crate) fn decode_record(marker: u64, bytes: &[u8]) -> Option<DecodedRecord<'_>> {
    if read_u64(bytes, 0)? != marker {
        return None;
    }
    let length = read_u32(bytes, 8)?;
    let checksum = read_u32(bytes, 12)?;
    let sequence = read_u64(bytes, 16)?;
    let payload = bytes.get(RECORD_HEADER_BYTES as usize..)?.get(..length as usize)?;
    let mut actual = start_checksum(length, sequence);
    actual.update(payload);
    (actual.finalize() == checksum).then_some(DecodedRecord { sequence, payload })
}

/// The mark behind the acknowledged record `sequence`.
pub(crate) fn encode_mark(marker: u64, sequence: u64) -> [u8; MARK_BYTES as usize] {
    let mut mark = encode_record_header(marker, sequence, &[]);
    mark[12..16].copy_from_slice(&mark_checksum(sequence).to_le_bytes());
    mark
}

/// The number of the mark at the beginning of `bytes`, if there is one.
pub(crate) fn decode_mark(marker: u64, bytes: &[u8]) -> Option<u64> {
    let sequence = read_u64(bytes, 16)?;
    let is_mark = read_u64(bytes, 0)? == marker && read_u32(bytes, 8)? == 0;
    (is_mark && read_u32(bytes, 12)? == mark_checksum(sequence)).then_some(sequence)
}

/// The last mark in `bytes`: where it ends, and its number.
pub(crate) fn last_mark(marker: u64, bytes: &[u8]) -> Option<(usize, u64)> {
    let mark = |start: usize| Some((start + MARK_BYTES as usize, decode_mark(marker, bytes.get(start..)?)?));
    marker_positions(marker, bytes).filter_map(mark).last()
}

fn mark_checksum(sequence: u64) -> u32 {
    !start_checksum(0, sequence).finalize()
}

/// The first complete record in `bytes` whose sequence number is at least `sequence`: where it begins, and its number.
pub(crate) fn find_record(marker: u64, bytes: &[u8], sequence: u64) -> Option<(usize, u64)> {
    marker_positions(marker, bytes).find_map(|start| {
        let record = decode_record(marker, bytes.get(start..)?)?;
        (record.sequence >= sequence).then_some((start, record.sequence))
    })
}

/// Where records and marks begin in `bytes`, complete or not.
pub(crate) fn marker_positions(marker: u64, bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let pattern = marker.to_le_bytes();
    let starts = bytes.windows(pattern.len()).enumerate().filter(move |(_, window)| **window == pattern);
    starts.map(|(start, _)| start)
}

fn start_checksum(length: u32, sequence: u64) -> crc32fast::Hasher {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&length.to_le_bytes());
    checksum.update(&sequence.to_le_bytes());
    checksum
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A segment that is open for appending.
pub(crate) trait LogFile: Send {
    /// Appends some of the bytes, and returns how many.
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Makes everything durable that was appended.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file off behind `bytes`.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;
}

impl LogFile for File {
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Write::write_vectored(self, parts)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}

pub(crate) fn open_log_file(path: &Path) -> io::Result<Box<dyn LogFile>> {
    Ok(Box::new(File::options().append(true).open(path)?))
}

/// Appends all bytes of `parts`.
pub(crate) fn write_all(file: &mut dyn LogFile, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Removes empty parts at the front, so that 0 written bytes are an error.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match file.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes created, renamed and deleted names in `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The file of the segment whose first record has this sequence number.
pub(crate) fn segment_path(folder: &Path, first_sequence: u64) -> PathBuf {
    folder.join(format!("{first_sequence:020}{SEGMENT_SUFFIX}"))
}

/// Removes a segment, which may be gone. A folder in its place is put aside, as it is unknown what is in it.
pub(crate) fn remove_segment(path: &Path) -> io::Result<()> {
    let removed = match path.is_dir() {
        true => std::fs::rename(path, path.with_extension("aside")),
        false => std::fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes a segment file with `header` under its name. It has the name only when it is complete and synced.
pub(crate) fn create_segment(folder: &Path, first_sequence: u64, header: &[u8]) -> io::Result<PathBuf> {
    let path = segment_path(folder, first_sequence);
    let temporary = path.with_extension("new");
    let written = private_file::create(&temporary)
        .and_then(|mut file| file.write_all(header).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, &path));
    if let Err(error) = written {
        // It may not exist. The next start removes it otherwise.
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(path)
}
