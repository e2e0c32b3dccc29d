//! The payload of the log's records: a write, or the removal of a table.
//!
//! ```text
//! length of the description u32 · description (JSON) · one Arrow stream for each table
//! · the description again · its CRC-32 u32 · its length u32
//! ```
//!
//! All numbers are little-endian. Whatever byte of a record is changed, one of the two descriptions remains, so that it
//! is known which tables have lost rows. Records without the second one are read, too.
//!
//! The stream of a table has its columns, even if all rows are in data files, and begins at a multiple of 8 bytes, so
//! that its values are used where they are.

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use memmap2::MmapMut;
use serde::{Deserialize, Serialize};
use tidegate_query::{WriteMode, WriteReceipt, batch_bytes};

use super::writer::StagedFile;

/// Arrow's alignment of buffers.
const ALIGNMENT: usize = 8;
/// About the bytes of a stream for each batch beside its values.
const STREAM_OVERHEAD_BYTES: usize = 4 << 10;
/// A stream of so many bytes gets pages of its own.
const PAGES_BYTES_MIN: usize = 256 << 10;
/// The bytes of the length before the description.
const PREFIX_BYTES: usize = 4;
/// The bytes of the checksum and the length after the second description.
const SUFFIX_BYTES: usize = 8;

/// What a record does.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum RecordDescription {
    /// Adds rows.
    Write(WriteDescription),
    /// Removes a table.
    DropTable {
        /// The name.
        table: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WriteDescription {
    /// Milliseconds since 1970.
    pub(crate) time_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// The rows of each table of the request, for the receipt.
    pub(crate) rows: Vec<u64>,
    /// The tables in the order of their streams.
    pub(crate) tables: Vec<TableDescription>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TableDescription {
    pub(crate) table: String,
    #[serde(default)]
    pub(crate) replaces: bool,
    /// The bytes of the stream.
    pub(crate) stream_bytes: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) staged: Vec<StagedFile>,
}

impl WriteDescription {
    pub(crate) fn receipt(&self, sequence: u64) -> WriteReceipt {
        WriteReceipt { sequence, rows: self.rows.clone() }
    }
}

impl TableDescription {
    pub(crate) fn new(table: &str, mode: WriteMode, stream: &Bytes, staged: Vec<StagedFile>) -> Self {
        Self { table: table.to_owned(), replaces: mode == WriteMode::Replace, stream_bytes: stream.len(), staged }
    }
}

/// The parts of a record's payload.
pub(crate) fn encode_record(description: &RecordDescription, streams: Vec<Bytes>) -> Result<Vec<Bytes>, ArrowError> {
    let mut head = vec![0; PREFIX_BYTES];
    serde_json::to_writer(&mut head, description).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
    // JSON may end with blanks.
    head.resize(head.len().next_multiple_of(ALIGNMENT), b' ');
    let length = u32::try_from(head.len() - PREFIX_BYTES)
        .map_err(|_| ArrowError::InvalidArgumentError("the description of the write is too large".to_owned()))?;
    for (byte, digit) in head.iter_mut().zip(length.to_le_bytes()) {
        *byte = digit;
    }
    let head = Bytes::from(head);
    let copy = head.slice(PREFIX_BYTES..);
    let mut suffix = crc32fast::hash(&copy).to_le_bytes().to_vec();
    suffix.extend(length.to_le_bytes());
    let mut parts = vec![head];
    parts.extend(streams);
    parts.extend([copy, Bytes::from(suffix)]);
    Ok(parts)
}

/// The description of a record, and the stream of each table of it. `None` if the payload is not that of a record.
pub(crate) fn decode_record(payload: &Bytes) -> Option<(RecordDescription, Vec<Bytes>)> {
    let length = u32::from_le_bytes(*payload.first_chunk()?) as usize;
    let end = PREFIX_BYTES.checked_add(length)?;
    let description: RecordDescription = serde_json::from_slice(payload.get(PREFIX_BYTES..end)?).ok()?;
    let mut streams = Vec::new();
    let mut start = end;
    if let RecordDescription::Write(write) = &description {
        for table in &write.tables {
            let end = start.checked_add(table.stream_bytes)?;
            payload.get(start..end)?;
            streams.push(payload.slice(start..end));
            start = end;
        }
    }
    let rest = payload.len().checked_sub(start)?;
    (rest == 0 || rest == length + SUFFIX_BYTES).then_some((description, streams))
}

/// The description of a record of which some bytes were changed; `None` if none of the two descriptions is certain.
pub(crate) fn recover_description(payload: &[u8]) -> Option<RecordDescription> {
    let (content, suffix) = payload.split_at_checked(payload.len().checked_sub(SUFFIX_BYTES)?)?;
    let checksum = u32::from_le_bytes(*suffix.first_chunk()?);
    let lengths = [u32::from_le_bytes(*suffix.last_chunk()?), u32::from_le_bytes(*payload.first_chunk()?)];
    lengths.into_iter().find_map(|length| {
        let length = length as usize;
        let end = PREFIX_BYTES.checked_add(length)?;
        let first = content.get(PREFIX_BYTES..end);
        let second = content.len().checked_sub(length).filter(|start| *start >= end);
        let second = second.and_then(|start| content.get(start..));
        // If it is the checksum that was changed, both are the same.
        let is_certain = |description: &&[u8]| crc32fast::hash(description) == checksum || first == second;
        let mut certain = [first, second].into_iter().flatten().filter(is_certain);
        certain.find_map(|description| serde_json::from_slice(description).ok())
    })
}

/// `batches` as an Arrow stream.
pub(crate) fn encode_stream(schema: &Schema, batches: &[RecordBatch]) -> Result<Bytes, ArrowError> {
    let bytes = batches.iter().map(|batch| batch_bytes(batch) + STREAM_OVERHEAD_BYTES).sum();
    let mut writer = StreamWriter::try_new(Vec::with_capacity(bytes), schema)?;
    for batch in batches {
        writer.write(batch)?;
    }
    // Messages are padded to more than our alignment, and so is the end of the stream.
    Ok(keep(writer.into_inner()?))
}

/// Moves a stream to where it stays until its rows are in a Delta table. A large one gets pages of its own, which return
/// to the system with it: among the short-lived blocks of bodies, it would keep their memory from being reused.
fn keep(stream: Vec<u8>) -> Bytes {
    if stream.len() >= PAGES_BYTES_MIN
        && let Ok(mut pages) = MmapMut::map_anon(stream.len())
    {
        pages.copy_from_slice(&stream);
        return Bytes::from_owner(pages);
    }
    Bytes::from(stream.into_boxed_slice())
}

/// The columns and rows of a stream. The rows use the memory of the stream.
pub(crate) fn decode_stream(stream: Bytes) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
    let mut decoder = StreamDecoder::new();
    let mut buffer = Buffer::from(stream);
    let mut batches = Vec::new();
    while !buffer.is_empty() {
        batches.extend(decoder.decode(&mut buffer)?);
    }
    decoder.finish()?;
    let schema = decoder.schema().ok_or_else(|| ArrowError::IpcError("the stream has no columns".to_owned()))?;
    Ok((schema, batches))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Vec<u8> {
        let tables = [("sensors", 8), ("events", 16)].map(|(table, stream_bytes)| TableDescription {
            table: table.to_owned(),
            replaces: false,
            stream_bytes,
            staged: Vec::new(),
        });
        let write = WriteDescription { time_ms: 5, key: Some("k".to_owned()), rows: vec![1, 2], tables: tables.into() };
        let streams = vec![Bytes::from(vec![7; 8]), Bytes::from(vec![8; 16])];
        encode_record(&RecordDescription::Write(write), streams).unwrap().concat()
    }

    fn tables_of(description: Option<RecordDescription>) -> Vec<String> {
        match description {
            Some(RecordDescription::Write(write)) => write.tables.into_iter().map(|table| table.table).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_tables_of_a_record_are_known_whatever_byte_is_changed() {
        let record = record();
        let (description, streams) = decode_record(&Bytes::from(record.clone())).unwrap();
        assert_eq!((tables_of(Some(description)).len(), streams.len()), (2, 2));
        for position in 0..record.len() {
            for bit in 0..8 {
                let mut changed = record.clone();
                changed[position] ^= 1 << bit;
                assert_eq!(tables_of(recover_description(&changed)), ["sensors", "events"], "{position}.{bit}");
            }
        }
        for bytes in 0..record.len() {
            assert!(recover_description(&record[..bytes]).is_none(), "{bytes}");
        }
    }

    #[test]
    fn a_record_without_a_second_description_is_read() {
        let record = record();
        let length = u32::from_le_bytes(*record.first_chunk().unwrap()) as usize;
        let first = record.len() - SUFFIX_BYTES - length;
        assert!(decode_record(&Bytes::copy_from_slice(&record[..first])).is_some());
        assert!(decode_record(&Bytes::copy_from_slice(&record[..first + 1])).is_none());
    }
}
